"""`ortimg lock`: pin what the images are made of, and see whether the pins still hold."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import click
import msgspec

from ortimg.core.lock_changes import NOTHING, Change, Weight, accept, changes, dated
from ortimg.errors import CheckFailed, ConfigError
from ortimg.helping import Guide, Verb
from ortimg.project import Project, pass_project

SCHEMA = 1  # version of the JSON; more keys may come, none goes


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg lock", "pin what is not pinned yet"),
            ("ortimg lock --check", "in CI: do the pins still hold?"),
            ("ortimg lock --update '*-debian12'", "take what has changed, for some cells"),
        ),
        done="the lock holds, or what was new is in it",
        failed="something is not as it was locked; it is shown",
        environment="images.lock cannot be written",
        more=("docs/origins.md", "docs/supply-chain.md"),
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option(
    "--check", is_flag=True, help="Write nothing; tell whether the lock differs from what is so now."
)
@click.option("--update", is_flag=True, help="Take what has changed, for the cells of SELECTOR or for all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@pass_project
def lock(project: Project, selectors: tuple[str, ...], check: bool, update: bool, as_json: bool) -> None:
    """Write images.lock: hashes of archives and wheels, digests of base images, tags.

    Asked are the catalogue, the cache, the release host, the registries. What does not answer stays as it
    is, and is said. Without --update only what was not known yet is added, and what has changed is shown.
    """
    from ortimg.core.selectors import select
    from ortimg.inputs.cache import Cache
    from ortimg.inputs.lockfile import NAME, read_lock, write_lock
    from ortimg.inputs.release_api import ReleaseApi
    from ortimg.locking import Looker, scope_of
    from ortimg.registry.client import Registries
    from ortimg.registry.transport import Patience

    if check and update:
        raise ConfigError("--check and --update are two different wishes", hint="Leave one out.")
    if selectors and not update:
        raise ConfigError("a selector belongs to --update only", hint="The lock is checked as a whole.")
    plan = project.plan
    scope = scope_of(select(plan.cells, selectors, (), plan.excluded)) if update else NOTHING
    old = read_lock(project.root)
    # A base whose registry does not answer stays as it was locked: no reason to wait long for it.
    registries = Registries(Patience(retries=1, backoff=0.2))
    looker = Looker(registries.digest, ReleaseApi().file, Cache.default(), plan.mirrors)
    seen = looker.look(plan.cells, old)
    new = old
    if not check:
        new = dated(old, accept(old, seen.now, scope), int(time.time()), take=update)
    taken, left = changes(old, new), changes(new, seen.now)
    written = not check and write_lock(project.root, new)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "schema": SCHEMA,
                    "written": written,
                    "changes": [_row(change) for change in taken],
                    "differences": [_row(change) for change in (*seen.conflicts, *left)],
                    "unresolved": [{"what": row.what, "why": row.why} for row in seen.unresolved],
                }
            )
        )
    else:
        click.echo(_words(taken) + _words((*seen.conflicts, *left)), nl=False)
        for row in seen.unresolved:
            click.echo(f"not resolved: {row.what} ({row.why})", err=True)
        if written:
            click.echo(f"{NAME} written; `ortimg render` puts it into the Dockerfiles", err=True)
    if differences := (*seen.conflicts, *left):
        plural = "" if len(differences) == 1 else "s"
        raise CheckFailed(
            f"{NAME} differs from what is so now: {len(differences)} difference{plural}.",
            hint=_next(bool(seen.conflicts), differences),
        )
    if not (taken or written or as_json):
        click.echo(f"{NAME} holds{', as far as could be seen' if seen.unresolved else ''}.", err=True)


def _row(change: Change) -> object:
    return msgspec.to_builtins(change)


def _next(conflict: bool, rows: Sequence[Change]) -> str:
    if conflict:
        return "No option takes what is LOUD: read what is said there."
    if any(row.weight is Weight.LOUD for row in rows):
        return "`ortimg lock --update` takes them. Read what is LOUD first."
    return f"`ortimg lock{' --update' if any(row.before for row in rows) else ''}` takes them."


def _words(rows: Sequence[Change]) -> str:
    """What is new takes one line, what has changed is told with its reason."""
    text = ""
    for row in rows:
        if row.before is None and row.after is not None and row.weight is Weight.CALM:
            text += f"new   {row.what}: {row.after}\n"
            continue
        text += f"{'LOUD' if row.weight is Weight.LOUD else '    '}  {row.what}\n"
        text += (
            f"        was {row.before or 'not known'}\n        now {row.after or 'gone'}\n        {row.why}\n"
        )
    return text
