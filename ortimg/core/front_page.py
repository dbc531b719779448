"""Tables of a README, between markers that its author puts there. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ortimg.core.model import Cell, Flavour
from ortimg.core.problems import Problem, config_error, near, quote

README = "README*.md"  # and its translations: README.zh-CN.md
_MARKER = re.compile(r"^<!-- (/?)ortimg:([\w-]*) -->$")


def has_markers(text: str) -> bool:
    """Whether a README asks for any table."""
    return any(_MARKER.match(line.strip()) for line in text.splitlines())


def with_tables(text: str, tables: Mapping[str, str], file: str = "README.md") -> str:
    """The README with each table between its markers, `<!-- ortimg:NAME -->` and `<!-- /ortimg:NAME -->`.

    `file`: its name, for what is told. Raises ConfigError for a marker of an unknown table, and for one
    without its partner.
    """
    lines = text.splitlines(keepends=True)
    out: list[str] = []
    problems: list[Problem] = []
    inside: tuple[str, int] | None = None  # table, line of its first marker
    for number, line in enumerate(lines, start=1):
        match = _MARKER.match(line.strip())
        if match is None:
            if inside is None:
                out.append(line)
            continue
        closing, name = match[1] == "/", match[2]
        if name not in tables:
            known = near(name, tables) or f"; there are {', '.join(tables)}"
            problems.append(Problem(number, (), f"there is no table {quote(name)}{known}"))
        elif closing and (inside is None or inside[0] != name):
            problems.append(Problem(number, (), f"the table {quote(name)} ends here without a beginning"))
        elif not closing and inside is not None:
            problems.append(
                Problem(inside[1], (), f"the table {quote(inside[0])} has no end before line {number}")
            )
            inside = (name, number)
        else:
            out.append(line if closing else f"{line.rstrip()}\n{tables[name].rstrip()}\n")
            inside = None if closing else (name, number)
    if inside is not None:
        problems.append(Problem(inside[1], (), f"the table {quote(inside[0])} has no end"))
    if problems:
        raise config_error(file, problems)
    return "".join(out)


def with_bases(rows: str, cells: Sequence[Cell]) -> str:
    """A table of a row for each ONNX Runtime with its CUDA set, in the order of `cells`, with their bases."""
    bases: dict[tuple[str, str], dict[str, None]] = {}
    for cell in cells:
        flavour = "" if cell.flavour is Flavour.RUNTIME else f"-{cell.flavour.value}"
        bases.setdefault((cell.release.key, cell.cuda_set.key), {})[f"{cell.base.name}{flavour}"] = None
    column = [" bases ", "---", *(f" {', '.join(names)} " for names in bases.values())]
    lines = zip(rows.splitlines(), column, strict=True)
    return "".join(f"{line}{text}|\n" for line, text in lines)


def tags_table(cells: Sequence[Cell]) -> str:
    """Markdown: a row for each image that has more names."""
    rows = [
        (f"`{cell.identifier}`", ", ".join(f"`{tag}`" for tag in cell.tags)) for cell in cells if cell.tags
    ]
    return table(("image", "also called"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)
