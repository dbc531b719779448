"""Which cells a command works on: globs over identifiers and tags."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ortimg.core.model import Cell, Exclusion
from ortimg.core.problems import quote
from ortimg.errors import ConfigError


def select(
    cells: Sequence[Cell],
    globs: Iterable[str],
    skip: Iterable[str] = (),
    excluded: Sequence[Exclusion] = (),
    hint: str = "`ortimg list` shows every cell.",
) -> tuple[Cell, ...]:
    """Cells that match any of `globs` (no glob: all) and none of `skip`, in their own order.

    A glob matches the identifier or one of the tags. Raises ConfigError for a glob that matches nothing, with
    near names (for a combination in `excluded`, with its reason), and where nothing is left.
    """
    wanted, unwanted = tuple(globs), tuple(skip)
    problems = [
        _unknown(glob, cells, excluded)
        for glob in (*wanted, *unwanted)
        if not any(_matches(cell, glob) for cell in cells)
    ]
    if problems:
        raise ConfigError(*problems, hint=hint)
    chosen = tuple(
        cell
        for cell in cells
        if (not wanted or any(_matches(cell, glob) for glob in wanted))
        and not any(_matches(cell, glob) for glob in unwanted)
    )
    if cells and not chosen:
        raise ConfigError("no cell is left: --skip takes out all that were selected")
    return chosen


def _matches(cell: Cell, glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in (cell.identifier, *cell.tags))


def _unknown(glob: str, cells: Sequence[Cell], excluded: Sequence[Exclusion]) -> str:
    for row in excluded:
        if fnmatchcase(row.identifier, glob):
            nearest = f"; nearest: {row.nearest}" if row.nearest else ""
            return f"{quote(glob)} matches no cell; {row.identifier} is not built: {row.reason}{nearest}"
    names = [name for cell in cells for name in (cell.identifier, *cell.tags)]
    found = difflib.get_close_matches(glob.replace("*", ""), names, n=3, cutoff=0.3)
    return f"{quote(glob)} matches no cell" + (f"; near: {', '.join(found)}" if found else "")
