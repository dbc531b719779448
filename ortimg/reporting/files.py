"""Files with measurements and results of builds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ortimg.benching.judgement import judge, words
from ortimg.core.model import Tier
from ortimg.core.report_facts import BenchFact, BuildFact, FactoryFact, NumbersFact, RatioFact, RunFact
from ortimg.core.report_words import amount
from ortimg.errors import CheckFailed, ConfigError
from ortimg.verify.report import Report, parse_report

FOLDERS = ("bench/results", "docs/gpu-runs")  # of a project: read without being asked
_FACTORY = "ortimg-bench-1"  # the schema that `make bench` writes
_LARGEST = 20_000_000  # bytes
_MOST_NUMBERS = 300  # of one file
_BENCH_HINT = "Name files that `ortimg bench --json` or `ortimg verify --tier run --json` printed."
_BUILD_HINT = "Name files that `ortimg build --json` printed."


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    benches: tuple[BenchFact, ...] = ()
    runs: tuple[RunFact, ...] = ()
    factory: FactoryFact | None = None  # the newest run of `make bench`
    numbers: tuple[NumbersFact, ...] = ()
    problems: tuple[str, ...] = ()


def read_measurements(root: Path, named: Sequence[Path]) -> Measurements:
    """Files that were named, then those of the project's own folders.

    Raises ConfigError for a named file that holds no measurement; one of the folders is a problem to tell.
    """
    benches: list[BenchFact] = []
    runs: list[RunFact] = []
    factories: list[FactoryFact] = []
    numbers: list[NumbersFact] = []
    problems: list[str] = []
    files = [(path, str(path), True) for path in named]
    for folder in FOLDERS:
        found = sorted((root / folder).rglob("*.json"))
        files += [(path, path.relative_to(root).as_posix(), False) for path in found]
    for path, name, asked in files:
        try:
            data = _json(path, name, _BENCH_HINT)
            # A page is handed on: where a named file lay on this machine is nobody's business.
            fact = _measurement(data, name, path.name if asked else name, only_reports=asked)
        except ConfigError as error:
            if asked:
                raise
            problems.append(f"ignored: {error.message}")
            continue
        if isinstance(fact, BenchFact):
            benches.append(fact)
        elif isinstance(fact, RunFact):
            runs.append(fact)
        elif isinstance(fact, FactoryFact):
            factories.append(fact)
        elif fact is not None:
            numbers.append(fact)
    return Measurements(
        benches=tuple(benches),
        runs=tuple(runs),
        factory=_newest(factories),
        numbers=tuple(numbers),
        problems=tuple(problems),
    )


def read_builds(paths: Sequence[Path]) -> dict[str, BuildFact]:
    """Rows of `build --json` by identifier; the last file that names a cell counts. Raises ConfigError."""
    found: dict[str, BuildFact] = {}
    for path in paths:
        data = _json(path, str(path), _BUILD_HINT)
        try:
            rows = msgspec.convert(data, _Built, strict=True).cells
        except msgspec.ValidationError as error:
            raise ConfigError(f"{path} is no result of a build: {error}", hint=_BUILD_HINT) from None
        for row in rows:
            found[row.identifier] = BuildFact(
                source=path.name,
                result=row.result,
                tier=row.tier,
                digest=row.digest,
                bytes_total=row.bytes_total,
                bytes_own=row.bytes_own,
                origins={part: origin for part, origin in row.origins.items() if origin},
            )
    return found


def _newest(runs: Sequence[FactoryFact]) -> FactoryFact | None:
    """The last one; of the others only where they are. Numbers of several runs are not held together."""
    if not runs:
        return None
    *earlier, last = sorted(runs, key=lambda run: run.date)
    return msgspec.structs.replace(last, earlier=tuple(run.source for run in earlier))


class _Machine(msgspec.Struct, frozen=True):
    cpu: str
    cores: int
    memory: int
    disk_write: int


class _Factory(msgspec.Struct, frozen=True):
    """What is read of a file that `make bench` wrote."""

    date: str
    cells: tuple[str, ...]
    machine: _Machine
    ratios: tuple[RatioFact, ...]


class _BuiltCell(msgspec.Struct, frozen=True):
    identifier: str
    result: str
    tier: Tier | None = None
    digest: str | None = None
    bytes_total: int | None = None
    bytes_own: int | None = None
    origins: dict[str, str | None] = {}


class _Built(msgspec.Struct, frozen=True):
    cells: tuple[_BuiltCell, ...]


def _json(path: Path, name: str, hint: str) -> Any:
    try:
        with path.open("rb") as stream:  # a pipe or a device has no size to ask for
            text = stream.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ConfigError(f"{name} is too large for a report", hint=hint)
        return msgspec.json.decode(text)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}", hint=hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{name} is no JSON: {error}", hint=hint) from None


def _measurement(
    data: Any, name: str, shown: str, *, only_reports: bool
) -> BenchFact | RunFact | FactoryFact | NumbersFact | None:
    """What the file holds; None: a report that measured nothing. Raises ConfigError."""
    # `ortimg compare --json` has findings too, of an old and a new side.
    if isinstance(data, dict) and "findings" in data and "old" not in data:
        try:
            report = parse_report(msgspec.json.encode(data))
        except CheckFailed as error:
            raise ConfigError(f"{name}: {error.message}", hint=_BENCH_HINT) from None
        return _of_report(report, name, shown, only_reports)
    if only_reports:
        raise ConfigError(f"{name} holds no measurement", hint=_BENCH_HINT)
    if isinstance(data, dict) and data.get("schema") == _FACTORY:
        return _factory(data, name, shown)
    rows = [*_leaves(data, "")]
    if (more := len(rows) - _MOST_NUMBERS) > 0:
        rows = [*rows[:_MOST_NUMBERS], ("not shown", f"{more:,} more values of the file")]
    return NumbersFact(source=shown, rows=tuple(rows)) if rows else None


def _factory(data: Any, name: str, shown: str) -> FactoryFact:
    try:
        run = msgspec.convert(data, _Factory)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{name} is no run of make bench: {error}", hint="Run `make bench` again."
        ) from None
    machine = run.machine
    return FactoryFact(
        source=shown,
        date=run.date,
        cells=run.cells,
        machine=f"{machine.cores} cores of {machine.cpu}, {amount(machine.memory)} of memory,"
        f" {amount(machine.disk_write)} a second to the disk",
        ratios=run.ratios,
    )


def _of_report(report: Report, name: str, shown: str, asked: bool) -> BenchFact | RunFact | None:
    if report.bench:
        lines = tuple(line for one in judge(report.bench) for line in words(one))
        return BenchFact(source=shown, target=report.target, report=report.bench, judgement=lines)
    if report.run:
        return RunFact(source=shown, target=report.target, verdict=report.verdict.value, run=report.run)
    if asked:
        raise ConfigError(f"{name} holds no measurement", hint=_BENCH_HINT)
    return None


def _leaves(data: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every value of a JSON file with its path: `ratios.wall.naive`."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, f"{place}.{key}" if place else str(key))
    elif isinstance(data, list):
        for position, value in enumerate(data):
            yield from _leaves(value, f"{place}[{position}]")
    else:
        yield place or "value", data if isinstance(data, str) else json.dumps(data)
