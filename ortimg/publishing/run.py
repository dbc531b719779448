"""`push` from a planned project: which images, which tiers, where to, what is left behind."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import click

from ortimg.core.mirrors import Reference
from ortimg.core.model import Cell
from ortimg.engine.client import Engine
from ortimg.engine.live import LiveTable
from ortimg.errors import EnvironmentFault
from ortimg.generated import write_atomically
from ortimg.inputs.cache import Cache
from ortimg.project import Project
from ortimg.publishing.memory import Memory
from ortimg.publishing.push import Candidate, Push, Wish
from ortimg.publishing.result import GOOD, PushReport, digests_json, digests_text
from ortimg.publishing.targets import cudnn_notices, repositories
from ortimg.records.record import Record, best_tier
from ortimg.records.store import read_records
from ortimg.registry.client import Registries
from ortimg.registry.transport import Patience

DIGESTS = Path("digests.json")


def push(
    project: Project,
    cells: Sequence[Cell],
    wish: Wish,
    *,
    prefixes: Sequence[str] = (),
    plain_http: bool = False,
    retries: int = 5,
) -> PushReport:
    """Push the images of `cells` to images.yaml's repository, or below each of `prefixes`.

    Raises ConfigError (no registry named), CheckFailed (a tier that is too low), EnvironmentFault.
    """
    targets = repositories(project.plan.repository, prefixes)
    engine, cache = Engine(), Cache.default(lambda text: click.echo(text, err=True))
    cancel = threading.Event()
    plain = [Reference.parse(name).registry for name in targets] if plain_http else []
    registries = Registries(Patience(cancel=cancel, retries=retries), plain)
    memory = Memory(cache.root)
    records = read_records(project.root)
    for problem in records.problems:
        click.echo(problem, err=True)
    candidates = _candidates(project, cells, engine, records.records)
    with LiveTable() as table:
        run = Push(engine, cache, registries, targets, memory, table, cancel, wish, records.records)
        run.require_tier(candidates)
        for host, notice in cudnn_notices(cells, targets).items():
            if memory.first_time(f"cudnn {host}"):
                table.say(notice)
        return run.run(candidates)


def _candidates(
    project: Project, cells: Sequence[Cell], engine: Engine, records: Sequence[Record]
) -> list[Candidate]:
    """The cells with their images, and the tier of each: by its label, or by a record of its digest."""
    rows = []
    for cell in cells:
        reference = f"{project.plan.repository}:{cell.identifier}"
        image = engine.inspect(reference)
        label = image.labels.get("ortimg.tier") if image else None
        tier = best_tier(label, image.digest, records) if image else None
        rows.append(Candidate(cell=cell, reference=reference, image=image, tier=tier))
    return rows


def write_digests(project: Project, report: PushReport, digests: Path = DIGESTS) -> None:
    """Write the digests of what is in the registry now, as JSON, and beside it the same as text.

    `digests`: ends in .json, relative to the project. Nothing there, no file. Raises EnvironmentFault.
    """
    if not any(row.result in GOOD for row in report.results):
        return
    path = project.root / digests
    try:
        write_atomically(path, digests_json(report.results))
        write_atomically(path.with_suffix(".txt"), digests_text(report.results))
    except OSError as error:
        raise EnvironmentFault(
            f"{path} cannot be written: {error.strerror}", "what was pushed stays; name another --digests"
        ) from error
