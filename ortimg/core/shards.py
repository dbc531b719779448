"""Splits cells over a fleet by the heavy layers that they share, not by their number.

A CUDA set is the heaviest layer, and each ONNX Runtime unit stands on one: so all cells of a set go into one
shard, and no shard makes a layer that another one makes. Bases are light against them; among equals, a shard
that has a base already is preferred. The same cells give the same shards on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ortimg.core.disk_need import CELL_KEPT, CUDA_KEPT, ORT_KEPT, download_need, engine_need
from ortimg.core.model import Cell
from ortimg.core.problems import quote
from ortimg.errors import ConfigError

_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([kMGT]i?)?B?", re.ASCII)
_UNITS = {
    "": 1,
    **{name: 1000**power for power, name in enumerate("kMGT", 1)},
    **{f"{name}i": 1024**power for power, name in enumerate("kMGT", 1)},
}


class ShardName(msgspec.Struct, frozen=True):
    """Which of how many: 1/4 is the first of four."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> ShardName:
        """Read `I/N`. Raises ConfigError unless 1 <= I <= N."""
        match = _SHARD.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ConfigError(
                f"{quote(text)} is no shard", hint="Write I/N, the I-th of N: --shard 1/4 to --shard 4/4."
            )
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """The cells that one builder of a fleet makes."""

    name: ShardName
    cells: tuple[Cell, ...]

    @property
    def need(self) -> int:
        """Bytes of disk that its builder needs at the most, inputs and engine together."""
        return disk_need(self.cells)


def disk_need(cells: Sequence[Cell]) -> int:
    """Bytes of disk that making `cells` from nothing takes at the most, inputs and engine together."""
    return engine_need(cells) + download_need(cells) if cells else 0


def split(cells: Sequence[Cell], count: int) -> tuple[Shard, ...]:
    """`count` shards, each cell in one of them, each CUDA set in one; some are empty where there are more.

    The heaviest set goes first, into the shard with the least in it.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.cuda_set.key, []).append(cell)
    keys: list[set[str]] = [set() for _ in range(count)]
    weights = [0] * count
    bases: list[set[str]] = [set() for _ in range(count)]
    for key, group in sorted(groups.items(), key=lambda item: (-weight(item[1]), item[0])):
        needed = {cell.base_key for cell in group}
        lightest = min(range(count), key=lambda place: (weights[place], len(needed - bases[place]), place))
        keys[lightest].add(key)
        weights[lightest] += weight(group)
        bases[lightest] |= needed
    return tuple(
        Shard(
            name=ShardName(place + 1, count),
            cells=tuple(cell for cell in cells if cell.cuda_set.key in keys[place]),
        )
        for place in range(count)
    )


def of_shard(cells: Sequence[Cell], name: ShardName) -> Shard:
    """One of the shards of `cells`."""
    return split(cells, name.count)[name.number - 1]


def weight(cells: Sequence[Cell]) -> int:
    """Bytes that the layers of `cells`, each counted once, take where they are built."""
    sets = {cell.cuda_set.key: sum(wheel.size for wheel in cell.cuda_set.wheels) for cell in cells}
    units = {cell.unit_key for cell in cells}
    return int(CUDA_KEPT * sum(sets.values())) + ORT_KEPT * len(units) + CELL_KEPT * len(cells)


def shards_for(cells: Sequence[Cell], budget: int) -> tuple[Shard, ...]:
    """The fewest shards of which none needs more than `budget` bytes of disk.

    Raises ConfigError where one CUDA set with its cells needs more: it is never split.
    """
    sets = {cell.cuda_set.key for cell in cells}
    for count in range(1, max(len(sets), 1) + 1):
        shards = split(cells, count)
        if all(shard.need <= budget for shard in shards):
            return shards
    shard = max(split(cells, len(sets)), key=lambda shard: shard.need)
    raise ConfigError(
        f"CUDA {shard.cells[0].cuda_set.key} with its {len(shard.cells)} cells needs {gigabytes(shard.need)}"
        f" of disk, the budget is {gigabytes(budget)}; a CUDA set is not split over shards",
        hint="Give the builders more disk, or select fewer cells.",
    )


def parse_size(text: str) -> int:
    """Bytes of `14GB`, `13.5 GiB` or `14000000000`. Raises ConfigError for anything else, and for 0."""
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2] or ""]) if match else 0
    if not size:
        raise ConfigError(f"{quote(text)} is no size", hint="Write it as 14GB or 13GiB.")
    return size


def gigabytes(size: int) -> str:
    """Bytes for people: `13.5 GB`."""
    return f"{size / 1e9:.1f} GB"
