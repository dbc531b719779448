"""`ortimg fetch`: bring the inputs of a build into the cache."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ortimg.core.lock import merge, planned
from ortimg.core.mirrors import NO_MIRRORS, Mirrors
from ortimg.core.model import Cell, Flavour
from ortimg.core.selectors import select
from ortimg.errors import EnvironmentFault
from ortimg.helping import Guide, Verb
from ortimg.inputs.cache import Cache, megabytes
from ortimg.inputs.lockfile import read_lock, write_lock
from ortimg.inputs.progress import show
from ortimg.inputs.result import Fetched, Missing, Result
from ortimg.options import shard_option, take_shard
from ortimg.project import Project, pass_project

if TYPE_CHECKING:
    from ortimg.inputs.fetch import Fetcher

SCHEMA = 1  # version of the JSON; more keys may come, none goes


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg fetch", "the inputs of all cells: gigabytes"),
            ("ortimg fetch '1.16.2-*-debian12'", "those of one cell"),
        ),
        done="every input is in the cache, or is pulled by the engine itself",
        environment="one could not be had; why is shown",
        more=("docs/origins.md", "docs/supply-chain.md"),
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option("--skip", multiple=True, metavar="SELECTOR", help="Leave these cells out. Repeatable.")
@shard_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@pass_project
def fetch(
    project: Project, selectors: tuple[str, ...], skip: tuple[str, ...], shard: str | None, as_json: bool
) -> None:
    """Bring the inputs of the cells into the cache, and record in images.lock what was seen.

    SELECTOR is a glob over identifiers and tags; without one, all cells are meant. Each input comes from the
    first origin that has it; why others were passed over is shown.
    """
    cells = take_shard(select(project.plan.cells, selectors, skip, project.plan.excluded), shard)
    results = fetch_all(project.root, cells, project.plan.mirrors)
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "inputs": [as_data(result) for result in results]}))
    else:
        click.echo(table(results), nl=False)
    missing = [result for result in results if isinstance(result, Missing)]
    if missing:
        hints = dict.fromkeys(result.hint for result in missing if result.hint)
        names = ", ".join(f"{result.kind.value} {result.key}" for result in missing)
        raise EnvironmentFault(
            f"{len(missing)} of {len(results)} inputs could not be had: {names}", "; ".join(hints)
        )


def fetch_all(root: Path, cells: tuple[Cell, ...], mirrors: Mirrors = NO_MIRRORS) -> list[Result]:
    """Fetch every input of `cells`, showing the progress on stderr, and write what was seen to the lock."""
    from ortimg.inputs.fetch import Fetcher

    with show(sys.stderr) as on_update:
        cache = Cache.default(lambda text: click.echo(text, err=True))
        # what the catalogue and the lock both know must agree before anything is fetched
        lock = merge(read_lock(root), planned(cells))
        with Fetcher(cache, lock=lock, mirrors=mirrors, on_update=on_update) as fetcher:
            futures = ask_for(fetcher, cells)
            results = [futures[key].result() for key in sorted(futures)]
        # read again: another run may have added what it saw
        write_lock(root, merge(merge(read_lock(root), planned(cells)), fetcher.seen))
    return results


def ask_for(fetcher: Fetcher, cells: Sequence[Cell]) -> dict[tuple[str, str], Future[Result]]:
    """All inputs by kind and key; no CUDA libraries, gigabytes, for images that cannot be built anyway."""
    futures: dict[tuple[str, str], Future[Result]] = {}
    unsure: list[Cell] = []
    for cell in cells:
        futures |= _small(fetcher, cell)
        if fetcher.upstream.may_have(cell):
            futures["cuda", cell.cuda_set.key] = fetcher.cuda(cell.cuda_set)
        else:
            unsure.append(cell)
    for cell in unsure:
        if all(isinstance(future.result(), Fetched) for future in _small(fetcher, cell).values()):
            futures["cuda", cell.cuda_set.key] = fetcher.cuda(cell.cuda_set)
    return futures


def _small(fetcher: Fetcher, cell: Cell) -> dict[tuple[str, str], Future[Result]]:
    """All inputs of the cell but the CUDA libraries."""
    key = cell.ort_key
    found = {("base", cell.base_key): fetcher.base(cell.base, cell.flavour)}
    if cell.wheels:
        found["python", key] = fetcher.python(key, cell.wheels)
    else:
        found["ort", key] = fetcher.ort(cell.release)
    if cell.flavour is Flavour.DEVEL:
        found["headers", key] = fetcher.headers(cell.release)
    return found


def as_data(result: Result) -> dict[str, object]:
    """One row of `--json`."""
    row: dict[str, object] = {"kind": result.kind.value, "key": result.key}
    if isinstance(result, Missing):
        cause = "; ".join(result.reasons)
        return row | {"result": "wrong" if result.wrong else "missing", "origin": None, "cause": cause}
    return row | {
        "result": "cached" if result.cached else "fetched" if result.files else "upstream",
        "origin": result.origin.value,
        "identity": result.identity,
        "bytes": result.size,
        "reasons": list(result.reasons),
        "files": [{"name": file.name, "sha256": file.sha256, "bytes": file.size} for file in result.files],
    }


def table(results: list[Result]) -> str:
    """What came from where, and why."""
    rows = [(result.kind.value, result.key, *_words(result)) for result in results]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    text = ""
    for row in rows:
        cells = (f"{word:{width}}" for word, width in zip(row, widths, strict=False))
        text += f"{'  '.join(cells)}  {row[4]}".rstrip() + "\n"
    return text


def _words(result: Result) -> tuple[str, str, str]:
    if isinstance(result, Missing):
        return ("WRONG FILE" if result.wrong else "missing", "", "; ".join(result.reasons))
    return (result.origin.value, _size(result), "; ".join(result.reasons))


def _size(result: Fetched) -> str:
    if not result.files:
        return "pulled by the engine"
    return f"{megabytes(result.size)} MB{', cached' if result.cached else ''}"
