"""`ortimg push`: images to a registry, alias tags last."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from ortimg.errors import ConfigError, ExitCode, OrtimgError
from ortimg.helping import Guide, Verb
from ortimg.options import shard_option, take_shard
from ortimg.project import Project, pass_project

# What says how images are pushed: of no use where none is.
_ONLY_WITH_IMAGES = ("no_aliases", "sboms", "force", "compression", "digests", "available")


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            (
                "ortimg push --tier load --registry-prefix registry.example.com/team",
                "images that no GPU has run",
            ),
            ("ortimg push '1.16.2-*' --sbom spdx-json", "some, each with a bill of materials"),
            ("ortimg push --aliases-only --tier load", "the last step, after several pushes with --shard"),
        ),
        done="every image is in the registry",
        failed="an image is below the tier, or is not built; below the tier nothing is pushed",
        environment="registry, log-in, network or disk; the next run goes on where this one ended",
        more=("docs/push.md", "docs/supply-chain.md"),
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option("--skip", multiple=True, metavar="SELECTOR", help="Leave these cells out. Repeatable.")
@shard_option
@click.option(
    "--tier",
    type=click.Choice(["static", "load", "run"]),
    default="run",
    show_default=True,
    help="The least that an image must be verified to; `run` needs a record of a GPU run of its digest.",
)
@click.option(
    "--registry-prefix",
    "prefixes",
    multiple=True,
    metavar="HOST[/PATH]",
    help="Push below this. Repeatable. [default: images.yaml's own registry]",
)
@click.option("--available", is_flag=True, help="A cell that is not built is listed, not a failure.")
@click.option(
    "--compression",
    type=click.Choice(["built", "zstd", "gzip"]),
    default="built",
    show_default=True,
    help="built: layers as they are. zstd, gzip: packed anew, smaller or for old registries; digests change.",
)
@click.option("--force", is_flag=True, help="Also push where the registry has the same content.")
@click.option("--no-aliases", is_flag=True, help="Leave alias tags where they are.")
@click.option(
    "--aliases-only",
    is_flag=True,
    help="Move alias tags to images that the registry has: the last step of a fleet. Needs no engine.",
)
@click.option("--plain-http", is_flag=True, help="Speak HTTP without TLS to a registry on another machine.")
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=5,
    show_default=True,
    metavar="N",
    help="How often a request is tried again where the trouble may pass: 429, 5xx, a cut connection.",
)
@click.option(
    "--digests",
    type=click.Path(dir_okay=False, path_type=Path),
    default="digests.json",
    show_default=True,
    metavar="NAME.json",
    help="Where digests are written; the same as text goes beside it, as NAME.txt.",
)
@click.option(
    "--sbom",
    "sboms",
    type=click.Choice(["spdx-json", "cyclonedx-json"]),
    multiple=True,
    help="Attach a bill of materials in this format to each image. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@pass_project
def push(
    project: Project,
    selectors: tuple[str, ...],
    skip: tuple[str, ...],
    shard: str | None,
    tier: str,
    prefixes: tuple[str, ...],
    available: bool,
    compression: str,
    force: bool,
    no_aliases: bool,
    aliases_only: bool,
    plain_http: bool,
    retries: int,
    digests: Path,
    sboms: tuple[str, ...],
    as_json: bool,
) -> None:
    """Push images of the cells to a registry, alias tags last.

    SELECTOR is a glob over identifiers and tags; without one, all cells are pushed. Layers that the registry
    has are not sent again. Alias tags are moved when every cell has passed.
    """
    from ortimg.core.model import Tier
    from ortimg.core.problems import quote
    from ortimg.core.selectors import select
    from ortimg.publishing import run
    from ortimg.publishing.compression import Compression
    from ortimg.publishing.push import Wish
    from ortimg.publishing.result import summary

    if digests.suffix != ".json":
        raise ConfigError(
            f"--digests {quote(str(digests))} does not end in .json",
            hint="The same as text goes beside it, with .txt in its place.",
        )
    if not (folder := (project.root / digests).parent).is_dir():
        raise ConfigError(
            f"--digests {quote(str(digests))}: there is no folder {folder}",
            hint="Make it first, or name another place.",
        )
    if aliases_only and (other := _given(_ONLY_WITH_IMAGES)):
        raise ConfigError(
            f"--aliases-only and {other} are two different wishes",
            hint="--aliases-only pushes no image: leave out one of the two.",
        )
    cells = take_shard(select(project.plan.cells, selectors, skip, project.plan.excluded), shard)
    if aliases_only:
        from ortimg.publishing import aliases

        rows = aliases.of_project(project, cells, Tier(tier), prefixes, plain_http, retries=retries)
        click.echo(json.dumps(aliases.as_data(rows)) if as_json else aliases.summary(rows))
        return
    wish = Wish(
        tier=Tier(tier),
        compression=Compression(compression),
        available=available,
        aliases=not no_aliases and shard is None,  # other shards may not be there yet
        force=force,
    )
    report = run.push(project, cells, wish, prefixes=prefixes, plain_http=plain_http, retries=retries)
    click.echo(json.dumps(report.as_data()) if as_json else summary(report).rstrip("\n"))
    run.write_digests(project, report, digests)
    if sboms and report.exit_code is not ExitCode.INTERRUPTED:
        from ortimg.sbom.attach import attach_sboms
        from ortimg.sbom.documents import Format

        formats = [Format(name) for name in dict.fromkeys(sboms)]
        try:
            found = attach_sboms(project, cells, report, formats, plain_http=plain_http, retries=retries)
            click.echo(f"{len(found)} bill{'s' if len(found) != 1 else ''} of materials attached", err=True)
        except OrtimgError as error:
            if report.exit_code is ExitCode.DONE:
                raise
            # how it ends is for the push to say
            click.echo(f"not every bill of materials was attached: {error}", err=True)
    if report.exit_code is ExitCode.INTERRUPTED:
        click.echo("interrupted", err=True)
    if report.exit_code is not ExitCode.DONE:
        sys.exit(report.exit_code)


def _given(names: Sequence[str]) -> str | None:
    """The first of these options that stands in the command line, as it is written there."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            return option.opts[0]
    return None
