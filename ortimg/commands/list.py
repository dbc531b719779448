"""`ortimg list`: the cells, or why the others are not there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ortimg.core.config import AXES
from ortimg.core.model import Cell, Exclusion
from ortimg.core.selectors import select
from ortimg.core.shards import Shard, gigabytes, parse_size, shards_for
from ortimg.errors import ConfigError
from ortimg.helping import Guide, Verb
from ortimg.options import shard_option, take_shard
from ortimg.project import Project, pass_project, project_warnings

SCHEMA = 1  # version of the JSON; more keys may come, none goes


@click.command(
    name="list",
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg list '1.16.2-*'", "the cells of one release, with the tags that they get"),
            ("ortimg list --excluded", "what is not built, why, and the nearest cell that is"),
            ("ortimg list --max-disk 14GB", "how the cells are split for runners with 14 GB of disk"),
        ),
        done="shown",
        environment="--stale: the registry does not answer",
        more=("docs/images-yaml.md", "docs/ci.md"),
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option("--skip", multiple=True, metavar="SELECTOR", help="Leave these cells out. Repeatable.")
@click.option("--excluded", is_flag=True, help="Show what is not built, why, and what works instead.")
@click.option(
    "--stale",
    metavar="REPOSITORY",
    is_flag=False,
    flag_value="registry",
    help="Show what `build --changed-since` the same repository would build. [default: images.yaml's own]",
)
@shard_option
@click.option(
    "--max-disk",
    metavar="SIZE",
    help="Show the shards if none may need more disk than this: 14GB, 13GiB, or bytes.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@pass_project
def list(
    project: Project,
    selectors: tuple[str, ...],
    skip: tuple[str, ...],
    excluded: bool,
    stale: str | None,
    shard: str | None,
    max_disk: str | None,
    as_json: bool,
) -> None:
    """Show the cells of images.yaml.

    SELECTOR is a glob over identifiers and tags, such as '1.16.2-*'; without one, every cell is shown.
    """
    cells = take_shard(select(project.plan.cells, selectors, skip, project.plan.excluded), shard)
    if stale is not None:
        _stale(project, cells, stale, as_json)
        return
    shards = shards_for(cells, parse_size(max_disk)) if max_disk is not None else ()
    warnings = project_warnings(project, cells)
    if not as_json:
        for text, names in warnings.items():
            click.echo(f"warning: {', '.join(names)}: {text}", err=True)
    if as_json:
        data = as_data(cells, project.plan.excluded, warnings, _verdicts(project.root))
        if max_disk is not None:
            data["shards"] = [_shard_data(row) for row in shards]
        click.echo(json.dumps(data))
    elif max_disk is not None:
        click.echo("".join(f"{_shard_line(row)}\n" for row in shards), nl=False)
    elif excluded:
        click.echo(_exclusions(project.plan.excluded), nl=False)
    else:
        click.echo(_table(cells), nl=False)


def _stale(project: Project, cells: Sequence[Cell], text: str, as_json: bool) -> None:
    from ortimg.publishing.changed import in_registry, is_lock, repository_of  # asks a registry

    if is_lock(text):
        hint = f"`ortimg build --changed-since {text}` compares pins."
        raise ConfigError(f"--stale asks a repository; {text} is a lock file", hint=hint)
    rows = in_registry(project, cells, repository_of(project, text))
    if as_json:
        data = [
            {"identifier": row.cell.identifier, "stale": row.stale, "digest": row.digest, "tier": row.tier}
            for row in rows
        ]
        click.echo(json.dumps({"schema": SCHEMA, "cells": data}))
        return
    width = max((len(row.cell.identifier) for row in rows), default=0)
    for row in rows:
        if row.stale is not None:
            click.echo(f"{row.cell.identifier:{width}}  {row.stale}")
    stale = sum(row.stale is not None for row in rows)
    click.echo(f"{stale} stale, {len(rows) - stale} up to date", err=True)
    if stale:
        click.echo(f"Next: `ortimg build --changed-since {text}`, then `ortimg push`.", err=True)


def as_data(
    cells: Sequence[Cell],
    excluded: Sequence[Exclusion],
    warnings: Mapping[str, Sequence[str]],
    verdicts: Mapping[str, Sequence[Mapping[str, object]]],
) -> dict[str, object]:
    """What `--json` prints. `verdicts`: those that are kept, by identifier, of whichever digest."""
    return {
        "schema": SCHEMA,
        "cells": [
            {
                "identifier": cell.identifier,
                "ort": cell.release.version,
                "cuda": cell.cuda_set.cuda,
                "cudnn": cell.cuda_set.cudnn,
                "base": cell.base.name,
                "flavour": cell.flavour.value,
                "tags": [*cell.tags],
                "verdicts": [*verdicts.get(cell.identifier, ())],
            }
            for cell in cells
        ],
        "excluded": [
            {**{axis: getattr(row, axis) for axis in AXES}, "reason": row.reason, "nearest": row.nearest}
            for row in excluded
        ],
        "warnings": [
            {"identifier": name, "warning": text} for text, names in warnings.items() for name in names
        ],
    }


def _verdicts(root: Path) -> dict[str, tuple[dict[str, object], ...]]:
    if not (root / "verdicts").is_dir():
        return {}
    from ortimg.records.record import row  # most projects have none
    from ortimg.records.store import read_records

    found = read_records(root)
    for problem in found.problems:
        click.echo(problem, err=True)
    rows: dict[str, tuple[dict[str, object], ...]] = {}
    for record in found.records:
        name = record.identity.identifier or ""
        rows[name] = (*rows.get(name, ()), row(record))
    return rows


def _shard_data(shard: Shard) -> dict[str, object]:
    cells = [cell.identifier for cell in shard.cells]
    return {"shard": str(shard.name), "bytes": shard.need, "cells": cells}


def _shard_line(shard: Shard) -> str:
    sets = ", ".join(dict.fromkeys(cell.cuda_set.key for cell in shard.cells))
    return f"--shard {shard.name}  {gigabytes(shard.need):>8}  {len(shard.cells):>3} cells  cuda {sets}"


def _table(cells: Sequence[Cell]) -> str:
    width = max((len(cell.identifier) for cell in cells), default=0)
    rows = (f"{cell.identifier:{width}}  {', '.join(cell.tags)}".rstrip() for cell in cells)
    return "".join(f"{row}\n" for row in rows)


def _exclusions(excluded: Sequence[Exclusion]) -> str:
    """One paragraph a reason: what is told twenty times is read by nobody."""
    if not excluded:
        return "Every combination of the matrix is built.\n"
    by_reason: dict[str, tuple[Exclusion, ...]] = {}
    for row in excluded:
        by_reason[row.reason] = (*by_reason.get(row.reason, ()), row)
    text = ""
    for reason, rows in by_reason.items():
        text += f"{reason}\n"
        for row in rows:
            works = f"  (nearest: {row.nearest})" if row.nearest else "  (excluded by images.yaml)"
            text += f"  {row.identifier}{works}\n"
    return text
