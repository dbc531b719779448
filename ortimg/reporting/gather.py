"""The facts of a report: from the project, the cache, the engine and files of measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from ortimg import __version__
from ortimg.core.lock import Lock
from ortimg.core.mirrors import Reference
from ortimg.core.model import Cell
from ortimg.core.report_facts import ReportFacts, VerdictFact
from ortimg.data import read_host_facts
from ortimg.inputs.cache import Cache
from ortimg.inputs.lockfile import read_lock
from ortimg.project import Project, project_warnings
from ortimg.records.record import Record, proves_run
from ortimg.records.store import read_records
from ortimg.reporting.engine import EngineImages
from ortimg.reporting.files import read_builds, read_measurements
from ortimg.reporting.inputs import input_facts
from ortimg.verify.report import Verdict


def gather(
    project: Project,
    cells: Sequence[Cell],
    *,
    now: datetime,
    prefix: str | None = None,
    bench: Sequence[Path] = (),
    builds: Sequence[Path] = (),
    ask_engine: bool = True,
) -> ReportFacts:
    """Everything that is known here. A part that cannot be had is said in the facts, and is no error.

    Raises ConfigError for files of `bench` and `builds` that are none.
    """
    told = read_builds(builds)
    measured = read_measurements(project.root, bench)
    lock: Lock = read_lock(project.root)
    records = read_records(project.root)
    asked = EngineImages(project.plan.repository, records.records)
    images, fault = asked.read(cells) if ask_engine else ({}, "it was not asked")
    repository = _repository(project.plan.repository, prefix)
    return ReportFacts(
        repository=repository,
        registry=Reference.parse(repository).registry == repository.partition("/")[0],
        cells=tuple(cells),
        excluded=project.plan.excluded,
        hosts=read_host_facts(),
        lock=lock,
        now=now,
        version=__version__,
        engine=fault,
        images=images,
        builds={name: row for name, row in told.items() if any(cell.identifier == name for cell in cells)},
        verdicts=tuple(_verdict(record) for record in records.records),
        inputs=input_facts(cells, lock, Cache.default()),
        benches=measured.benches,
        runs=measured.runs,
        factory=measured.factory,
        numbers=measured.numbers,
        notes=(*records.problems, *measured.problems, *_warnings(project_warnings(project, cells))),
    )


def _repository(own: str, prefix: str | None) -> str:
    if prefix is None:
        return own
    from ortimg.publishing.targets import repositories

    return repositories(own, [prefix])[0]


def _verdict(record: Record) -> VerdictFact:
    return VerdictFact(
        identifier=record.identity.identifier,
        digest=record.digest,
        passed=record.verdict is Verdict.PASS,
        proves_run=record.digest is not None and proves_run(record, record.digest),
        gpu=record.gpu.name if record.gpu else None,
        compute=record.gpu.compute if record.gpu else None,
        driver=record.gpu.driver if record.gpu else None,
        date=record.date,
    )


def _warnings(found: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"{', '.join(names)}: {text}" for text, names in found.items())
