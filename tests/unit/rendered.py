"""What the tests of rendering share: cells of the whole catalogue, and their files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec
from wishes import CATALOGUE, RULES

from ortimg.core.model import Cell
from ortimg.core.render import Pins, Sources, dockerfile_path, render
from ortimg.core.rules import Refusal
from ortimg.sources import read_sources

SOURCES = read_sources()
REPOSITORY = "onnxruntime-gpu"


@cache
def all_cells() -> tuple[Cell, ...]:
    """Each release with each CUDA set that can exist, on two bases; two releases on every base."""
    versions = dict.fromkeys(row.version for row in CATALOGUE.releases)
    found = [
        RULES.resolve(version, row.cuda, row.cudnn, base.name)
        for row, version, base in itertools.product(CATALOGUE.cuda_sets, versions, CATALOGUE.bases)
        if base.name in ("debian12", "rocky9") or version in ("1.16.2", "1.23.2")
    ]
    return tuple(
        Cell(release=row[0], cuda_set=row[1], base=row[2]) for row in found if not isinstance(row, Refusal)
    )


@cache
def all_files() -> Mapping[str, str]:
    return render(REPOSITORY, all_cells(), SOURCES)


@cache
def dockerfiles() -> dict[str, str]:
    """Identifier → text."""
    return {cell.identifier: all_files()[dockerfile_path(cell)] for cell in all_cells()}


def one(cell: Cell, sources: Sources = SOURCES, pins: Pins | None = None) -> str:
    """The Dockerfile of one cell."""
    return render(REPOSITORY, [cell], sources, pins)[dockerfile_path(cell)]


def with_template(name: str, text: str) -> Sources:
    """The built-in templates with one of them replaced, as a user's `templates/` does."""
    assert name in SOURCES.templates
    return msgspec.structs.replace(SOURCES, templates={**SOURCES.templates, name: text})


class Heredoc(msgspec.Struct, frozen=True):
    """A here-document of a Dockerfile."""

    instruction: str  # "RUN", "COPY"
    lines: tuple[str, ...]
    following: str  # the line after its end


def heredocs(text: str) -> Iterator[Heredoc]:
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        start = number
        while lines[number].endswith("\\"):
            number += 1
        if match := re.search(r"<<'?(\w+)'?", lines[number]):
            end = lines.index(match[1], number)
            following = lines[end + 1] if end + 1 < len(lines) else ""
            yield Heredoc(lines[start].split()[0], tuple(lines[number + 1 : end]), following)
            number = end
        number += 1
