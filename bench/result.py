"""The file of a run, and its ratios. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bench.limit import Limit
from bench.machine import Machine
from bench.naive import NaiveCell
from bench.noise import Timing
from bench.nvidia import NvidiaSet
from bench.ours import Ours
from bench.packing import Packing
from bench.planning import Planning
from bench.pulling import Pull
from bench.pushing import Second

SCHEMA = "ortimg-bench-1"


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Two numbers of one run held against each other. `goal`: None where there is none."""

    name: str
    title: str
    ours: float
    against: float
    unit: str  # of both: "s", "bytes"
    value: float
    of: str  # "against / ours", or "ours / against": what the value is
    goal: float | None = None
    met: bool | None = None
    noisy: bool = False  # others used the machine in one of its parts


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts gave; None: the part was not asked for."""

    planning: Planning | None = None
    ours: Ours | None = None
    second: Second | None = None
    limit: Limit | None = None
    packing: Packing | None = None
    pulls: dict[str, Pull] = {}  # by packing: built (zstd 3), zstd (9, long), gzip
    naive: dict[str, NaiveCell] = {}  # by cell
    spared: float | None = None  # seconds that a kept builder cache would have spared the naive side
    classic: NaiveCell | None = None  # the first cell of the naive side, in the engine's older store
    nvidia: NvidiaSet | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    schema: str
    date: str  # UTC, when it ended
    version: str  # of ortimg
    commit: str
    machine: Machine
    cells: tuple[str, ...]
    measured: Measured
    ratios: tuple[Ratio, ...]


def pairs(cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cells that differ in their Debian alone: first the one that a node has, then the one it pulls."""
    for name in cells:
        twin = name.replace("debian12", "debian13")
        if twin != name and twin in cells:
            yield name, twin


def beyond(layers: Mapping[str, Mapping[str, int]], first: str, second: str) -> int:
    """Bytes of `second` that a node with `first` does not have."""
    return sum(size for digest, size in layers[second].items() if digest not in layers[first])


def distinct(layers: Mapping[str, Mapping[str, int]]) -> int:
    """Bytes that a registry stores of all of them."""
    return sum({digest: size for cell in layers.values() for digest, size in cell.items()}.values())


def ratios(found: Measured) -> tuple[Ratio, ...]:
    """All that the parts allow."""
    rows: list[Ratio] = []
    if found.ours and found.naive:
        rows += _naive(found.ours, found.naive, found.spared or 0.0)
    if found.classic and found.naive:
        rows.append(_classic(found.classic, next(iter(found.naive.values()))))
    if found.nvidia and found.ours and found.limit:
        rows += _nvidia(found.nvidia, found.ours, found.limit)
    if found.ours and found.limit:
        noisy = _noisy(found.ours.build, found.limit.timing)
        rows.append(
            _at_most("limit", "building against copy + one write + one compression", found.ours.build.seconds,
                     found.limit.seconds, "s", 1.3, noisy)
        )  # fmt: skip
    rows += _pulls(found.pulls)
    if found.ours:
        rows += _again(found.ours)
    if found.second:
        both = found.second
        rows.append(
            _at_most("second-repository", "pushing to a second repository, against docker push",
                     both.ortimg.seconds, both.docker.seconds, "s", None, _noisy(both.ortimg, both.docker))
        )  # fmt: skip
    if found.planning:
        rows += _planning(found.planning)
    return tuple(rows)


def _naive(ours: Ours, naive: Mapping[str, NaiveCell], spared: float) -> Iterator[Ratio]:
    cells = naive.values()
    timings = [timing for cell in cells for timing in (cell.build, cell.push)]
    noisy = _noisy(ours.build, ours.push, *timings)
    wall = sum(timing.seconds for timing in timings)
    own = ours.build.seconds + ours.push.seconds
    yield _at_least("wall", "build and push of all cells", own, wall, "s", 4.0, noisy)
    yield _at_least(
        "wall-kept-cache", "the same, less what a kept builder cache would have spared", own, wall - spared,
        "s", None, noisy,
    )  # fmt: skip
    build = sum(cell.build.seconds for cell in cells)
    yield _at_least("build", "build of all cells", ours.build.seconds, build, "s", None, noisy)
    stored = sum(cell.stored for cell in cells)
    yield _at_most("stored", "bytes on the engine's disk", ours.stored, stored, "bytes", 0.25)
    theirs = {name: cell.layers for name, cell in naive.items()}
    mine = {name: layers for name, layers in ours.layers.items() if name in theirs}
    yield _at_most("pushed", "bytes pushed", distinct(mine), distinct(theirs), "bytes", 0.25)
    found = [(beyond(mine, *pair), beyond(theirs, *pair)) for pair in pairs(list(theirs))]
    if found:
        one = statistics.median_high([mine for mine, _ in found])
        other = statistics.median_low([theirs for _, theirs in found])
        title = "bytes pulled for the same image on the other Debian"
        yield _at_most("second-image", title, one, other, "bytes", 0.02)


def _classic(classic: NaiveCell, naive: NaiveCell) -> Ratio:
    """Whether the store that the naive side was measured with made it slow."""
    timings = (classic.build, classic.push, naive.build, naive.push)
    first, second = sum(row.seconds for row in timings[:2]), sum(row.seconds for row in timings[2:])
    title = "the first naive cell in the engine's older store, against its containerd store"
    return _at_most("classic", title, first, second, "s", None, _noisy(*timings))


def _nvidia(nvidia: NvidiaSet, ours: Ours, limit: Limit) -> Iterator[Ratio]:
    """The image of one cell, and the same with NVIDIA's packages in place of its CUDA layer."""
    cell = nvidia.cell_of(tuple(ours.layers))
    if cell is None:
        return
    packed = ours.layers[cell]
    raw = {digest: limit.raw_layers[digest] for digest in packed if digest in limit.raw_layers}
    cuda = max(raw, key=lambda digest: raw[digest])
    rest_raw = sum(raw.values()) - raw[cuda]
    rest_packed = sum(packed.values()) - packed[cuda]
    yield _at_most("nvidia-raw", f"bytes of {cell}, unpacked", sum(raw.values()), rest_raw + nvidia.raw,
                   "bytes", 0.6)  # fmt: skip
    title = f"bytes of {cell}, packed: zstd against NVIDIA's gzip"
    yield _at_most("nvidia-packed", title, sum(packed.values()), rest_packed + nvidia.gzip, "bytes", 0.6)
    title = f"bytes of {cell}, packed: zstd on both sides"
    yield _at_most("nvidia-zstd", title, sum(packed.values()), rest_packed + nvidia.zstd, "bytes", None)


def _pulls(found: Mapping[str, Pull]) -> Iterator[Ratio]:
    gzip = found.get("gzip")
    for packing, words in (("built", "zstd 3"), ("zstd", "zstd 9, long window")):
        pull = found.get(packing)
        if pull and gzip:
            noisy = _noisy(pull.pull, pull.load, gzip.pull, gzip.load)
            title = f"pull, unpack, first load: {words} against gzip"
            yield _at_most(f"pull-{packing}", title, pull.seconds, gzip.seconds, "s", None, noisy)


def _again(ours: Ours) -> Iterator[Ratio]:
    first = ours.build.seconds
    for name, title, timing, limit in (
        ("unchanged", "nothing changed, against the first build", ours.unchanged, None),
        ("label", "a label changed in every cell, against the first build", ours.label, None),
    ):
        yield _at_most(name, title, timing.seconds, first, "s", limit, _noisy(timing, ours.build))


def _planning(found: Planning) -> Iterator[Ratio]:
    noisy = _noisy(found.timing)
    for name, title, seconds, limit in (
        ("start", "`ortimg list` beyond the bare interpreter, against 0.25 s", found.list - found.bare, 0.25),
        ("plan", "planning 10,000 cells, against 1 s", found.plan, 1.0),
        ("render", "rendering 1,000 cells, against 0.5 s", found.render, 0.5),
    ):
        yield _at_most(name, title, round(seconds, 4), limit, "s", 1.0, noisy)


def _noisy(*timings: Timing) -> bool:
    return any(timing.noisy for timing in timings)


def _at_least(
    name: str, title: str, ours: float, against: float, unit: str, goal: float | None, noisy: bool = False
) -> Ratio:
    value = against / ours if ours else 0.0
    met = None if goal is None else value >= goal
    return Ratio(name=name, title=title, ours=ours, against=against, unit=unit, value=round(value, 4),
                 of="against / ours", goal=goal, met=met, noisy=noisy)  # fmt: skip


def _at_most(
    name: str, title: str, ours: float, against: float, unit: str, goal: float | None, noisy: bool = False
) -> Ratio:
    value = ours / against if against else 0.0
    met = None if goal is None else value <= goal
    return Ratio(name=name, title=title, ours=ours, against=against, unit=unit, value=round(value, 4),
                 of="ours / against", goal=goal, met=met, noisy=noisy)  # fmt: skip
