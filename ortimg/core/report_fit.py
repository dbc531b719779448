"""The grids of a report: cells against GPUs, CUDA versions against drivers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from ortimg.core.drivers import Driver, Drivers, Runs
from ortimg.core.fit import loaded
from ortimg.core.fit_rules import RANK, Finding, Host, Verdict, findings
from ortimg.core.gpu import Capability, read_capability
from ortimg.core.gpu_names import Gpu
from ortimg.core.host_facts import HostFacts
from ortimg.core.model import Cell, Tier
from ortimg.core.report_facts import VerdictFact
from ortimg.core.versions import number

WORDS = {Verdict.NATIVE: "native", Verdict.JIT: "jit", Verdict.UNKNOWN: "?", Verdict.REFUSED: "no"}
_SPOKEN = {Verdict.UNKNOWN: "not known", Verdict.REFUSED: "refused", Verdict.JIT: "compiled at first start"}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one compute capability."""

    capability: str
    architecture: str
    names: str


class Square(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of images.yaml on GPUs of one column."""

    verdict: str  # "native"
    word: str
    spoken: str
    ran: str | None = None  # "passed" or "failed": a recorded verdict of this very image


class FitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell."""

    identifier: str
    tier: str  # "load", or "not built here"
    lowest: str  # driver
    compiling: str | None  # driver that GPUs of the verdict jit need
    squares: tuple[Square, ...]


class Reasons(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said of a release and its CUDA set, with the GPUs that it is about."""

    name: str
    rows: tuple[tuple[str, str], ...]  # reason, capabilities


class FitGrid(msgspec.Struct, frozen=True, kw_only=True):
    """Cells against GPUs."""

    columns: tuple[Column, ...]
    groups: tuple[tuple[str, int], ...]  # architecture and how many columns it has
    rows: tuple[FitRow, ...]
    reasons: tuple[Reasons, ...]
    left_out: str  # capabilities that every cell refuses


class DriverGrid(msgspec.Struct, frozen=True, kw_only=True):
    """CUDA versions against drivers."""

    drivers: tuple[str, ...]  # each the lowest of its column
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # CUDA version, (kind, word) a driver


_Judged = Mapping[str, tuple[Finding, ...]]  # by capability


def fit_grid(
    cells: Sequence[Cell],
    hosts: HostFacts,
    tiers: Mapping[str, Tier | None],
    verdicts: Mapping[str, Sequence[VerdictFact]],
) -> FitGrid:
    """A row for each cell. `tiers`: of images that are there; `verdicts`: of those very images."""
    drivers = Drivers(hosts.drivers)
    columns = [*_columns(hosts)]
    judged: dict[tuple[str, str, bool], _Judged] = {}
    for cell in cells:
        if _pair(cell) not in judged:
            judged[_pair(cell)] = _judge(cell, columns, drivers)
    shown = [
        column
        for column in columns
        if any(_worst(found[column.capability]) is not Verdict.REFUSED for found in judged.values())
    ]
    rows = [
        FitRow(
            identifier=cell.identifier,
            tier=_tier(cell.identifier, tiers),
            lowest=drivers.lowest(cell.cuda_set.cuda) or "not known",
            compiling=_compiling(cell, judged[_pair(cell)], drivers),
            squares=tuple(
                _square(judged[_pair(cell)][column.capability], column, verdicts.get(cell.identifier, ()))
                for column in shown
            ),
        )
        for cell in cells
    ]
    by_name = {_pair_name(cell): judged[_pair(cell)] for cell in cells}
    return FitGrid(
        columns=tuple(shown),
        groups=tuple((name, len([*group])) for name, group in groupby(shown, lambda row: row.architecture)),
        rows=tuple(rows),
        reasons=tuple(_reasons(name, found, shown) for name, found in by_name.items()),
        left_out=", ".join(f"{row.architecture} {row.capability}" for row in columns if row not in shown),
    )


def _tier(identifier: str, tiers: Mapping[str, Tier | None]) -> str:
    if identifier not in tiers:
        return "not built here"
    tier = tiers[identifier]
    return tier.value if tier else "not told"


def _pair(cell: Cell) -> tuple[str, str, bool]:
    return (cell.release.key, cell.cuda_set.key, cell.flavour.python is not None)


def _pair_name(cell: Cell) -> str:
    wheel = " (the wheel)" if cell.flavour.python else ""
    return f"{cell.release.version}-cuda{cell.cuda_set.key}{wheel}"


def _columns(hosts: HostFacts) -> Iterator[Column]:
    """GPUs beside an x86-64 processor, the oldest first."""
    for row in reversed(hosts.gpus):
        if not row.names or read_capability(row.capability) is None:
            continue
        architecture = next(
            (a.name for a in hosts.drivers.architectures if row.capability in a.capabilities), ""
        )
        yield Column(
            capability=row.capability, architecture=architecture, names=", ".join((*row.names, *row.more))
        )


def _judge(cell: Cell, columns: Sequence[Column], drivers: Drivers) -> _Judged:
    return {
        column.capability: findings(
            loaded(cell),
            cell.cuda_set,
            Host(gpus=(Gpu(name=None, capability=_capability(column)),)),
            drivers,
        )
        for column in columns
    }


def _capability(column: Column) -> Capability:
    found = read_capability(column.capability)
    assert found is not None  # `_columns` lets no other through
    return found


def _worst(found: Sequence[Finding]) -> Verdict:
    return max((finding.verdict for finding in found), key=RANK.__getitem__, default=Verdict.NATIVE)


def _compiling(cell: Cell, judged: _Judged, drivers: Drivers) -> str | None:
    if all(_worst(found) is not Verdict.JIT for found in judged.values()):
        return None
    made_with = drivers.ptx_cuda(loaded(cell).gpu, cell.release.cuda_build)
    return drivers.own(made_with) if made_with else None


def _square(found: Sequence[Finding], column: Column, verdicts: Sequence[VerdictFact]) -> Square:
    verdict = _worst(found)
    here = [row for row in verdicts if row.compute == column.capability]
    ran = None
    if here:
        ran = "passed" if all(row.passed for row in here) else "failed"
    return Square(
        verdict=verdict.value, word=WORDS[verdict], spoken=_SPOKEN.get(verdict, verdict.value), ran=ran
    )


def _reasons(name: str, judged: _Judged, columns: Sequence[Column]) -> Reasons:
    """Reasons of the verdict alone: what is said of every GPU stands in the columns for drivers."""
    found: dict[str, list[str]] = {}
    for column in columns:
        worst = _worst(judged[column.capability])
        for finding in judged[column.capability]:
            if finding.verdict is worst and worst is not Verdict.NATIVE:
                found.setdefault(finding.text, []).append(column.capability)
    return Reasons(name=name, rows=tuple((text, ", ".join(about)) for text, about in found.items()))


def driver_grid(cells: Sequence[Cell], hosts: HostFacts) -> DriverGrid:
    """Drivers between which nothing changes share a column, under the lowest of them."""
    drivers = Drivers(hosts.drivers)
    cudas = sorted({cell.cuda_set.cuda for cell in cells}, key=number)
    facts = hosts.drivers
    known = {*facts.toolkits.values(), *facts.minor_version_compatibility.values()}
    columns: dict[str, tuple[Runs, ...]] = {}
    last: tuple[Runs, ...] | None = None
    for version in sorted(known, key=number):
        runs = tuple(drivers.runs(Driver(version), cuda) for cuda in cudas)
        if runs != last:
            columns[version] = last = runs
    words = {
        Runs.FULLY: ("native", "yes"),
        Runs.BY_MINOR_VERSION: ("jit", "minor"),
        Runs.NOT: ("refused", "no"),
        Runs.UNKNOWN: ("unknown", "?"),
    }
    return DriverGrid(
        drivers=tuple(columns),
        rows=tuple(
            (cuda, tuple(words[runs[position]] for runs in columns.values()))
            for position, cuda in enumerate(cudas)
        ),
    )
