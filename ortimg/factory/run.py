"""One `ortimg build`: render, look at the engine and the disk, build, write the lock, tidy up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from ortimg.core.disk_need import download_need
from ortimg.core.drift import find_drift
from ortimg.core.lock import merge, planned
from ortimg.core.model import Cell
from ortimg.core.render import DOCKERFILES
from ortimg.engine.check import require_free_space
from ortimg.engine.client import Sizes
from ortimg.engine.live import LiveTable
from ortimg.errors import EnvironmentFault, ExitCode
from ortimg.factory.disk import prune_intermediates, require_space
from ortimg.factory.factory import Factory
from ortimg.factory.result import SCHEMA, CellResult, Outcome, exit_code
from ortimg.factory.site import Site, Wish, open_site
from ortimg.factory.steps import Builder
from ortimg.generated import read_generated, write_generated
from ortimg.inputs.cache import Cache
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock, write_lock
from ortimg.inputs.result import Update
from ortimg.project import Project
from ortimg.rendering import build_context, render_project, template_faults

TOOLS_REQUIREMENTS = Path(DOCKERFILES) / "tools" / "requirements.txt"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a build came to."""

    results: tuple[CellResult, ...]
    exit_code: ExitCode
    seconds: float  # wall time
    fetch_seconds: float  # until the last input was there; units are built meanwhile
    unit_seconds: float  # of units and roots, added up over builds that ran side by side

    def as_data(self) -> dict[str, object]:
        """The stable JSON."""
        return {
            "schema": SCHEMA,
            "cells": [result.as_data() for result in self.results],
            "seconds": {
                "wall": round(self.seconds, 2),
                "fetch": round(self.fetch_seconds, 2),
                "units": round(self.unit_seconds, 2),
                "cells": round(self._cell_seconds(), 2),
                "verify": round(self._verify_seconds(), 2),
            },
        }

    def timing_line(self) -> str:
        """Where the time went."""
        return (
            f"{self.seconds:.1f} s: inputs there after {self.fetch_seconds:.1f} s; engine seconds, two builds"
            f" at a time: units {self.unit_seconds:.1f}, cells {self._cell_seconds():.1f},"
            f" of that verifying {self._verify_seconds():.1f}"
        )

    def _cell_seconds(self) -> float:
        return sum(result.seconds for result in self.results if result.result is Outcome.BUILT)

    def _verify_seconds(self) -> float:
        return sum(result.verify_seconds or 0.0 for result in self.results)


def run(
    project: Project, cells: Sequence[Cell], *, available: bool, fail_fast: bool, wish: Wish | None = None
) -> Report:
    """Build `cells`. Raises EnvironmentFault where there is no good engine or builder, or too little disk."""
    began = time.monotonic()
    cache = Cache.default(lambda text: click.echo(text, err=True))
    wish = wish or Wish()
    repository = wish.repository(project.plan.repository)
    site = open_site(wish, repository, cache)
    lock = merge(read_lock(project.root), planned(cells))
    files = write_files(project)
    context = build_context(files)
    cancel = threading.Event()
    logs = cache.root / "logs"
    fetched_at = began

    with cache.workdir() as work, LiveTable() as table:

        def on_update(update: Update) -> None:
            nonlocal fetched_at
            fetched_at = time.monotonic()
            table.step(f"{update.kind.value} {update.key}", _progress(update))

        with Fetcher(
            cache,
            lock=lock,
            mirrors=project.plan.mirrors,
            on_update=on_update,
            has_image=site.has_image,
        ) as fetcher:
            factory = Factory(
                repository,
                files,
                context,
                project.root / TOOLS_REQUIREMENTS,
                project.plan.mirrors.tools_image,
                site.store,
                site.delivery,
                site.handed,
                fetcher,
                Builder(project.root, work, logs, site.builder, cancel, lock.epoch, wish.provenance),
                table,
                available=available,
                fail_fast=fail_fast,
            )
            same = {cell.identifier: factory.unchanged(cell) for cell in cells}
            todo = [cell for cell in cells if same[cell.identifier] is None]
            interrupted = False
            built: dict[str, CellResult] = {}
            if todo:
                reachable = [cell for cell in todo if fetcher.upstream.may_have(cell)]
                _require_space(reachable, site, cache)
                try:
                    built = {result.identifier: result for result in factory.build(todo)}
                except KeyboardInterrupt:
                    interrupted = True
                    built = factory.so_far()
                if factory.timing.units and site.own is not None:
                    with suppress(EnvironmentFault):  # it is gone; what was built before is told all the same
                        prune_intermediates(site.own)
        # read again: another run may have added what it saw
        lock = merge(read_lock(project.root), planned(cells))
        write_lock(project.root, merge(lock, fetcher.seen))
    results = [found for cell in cells if (found := same[cell.identifier] or built.get(cell.identifier))]
    results = _with_sizes(site, results)
    return Report(
        results=tuple(results),
        exit_code=exit_code(results, interrupted),
        seconds=time.monotonic() - began,
        fetch_seconds=fetched_at - began,
        unit_seconds=factory.timing.units,
    )


def with_kept(
    cells: Sequence[Cell], kept: Mapping[str, CellResult], make: Callable[[Sequence[Cell]], Report]
) -> Report:
    """The report of a build of `cells` without those in `kept`, which stand in it as they are."""
    todo = [cell for cell in cells if cell.identifier not in kept]
    if not todo and kept:
        rows = tuple(kept[cell.identifier] for cell in cells)
        return Report(results=rows, exit_code=ExitCode.DONE, seconds=0.0, fetch_seconds=0.0, unit_seconds=0.0)
    report = make(todo)
    made = {row.identifier: row for row in report.results}
    found = [kept.get(cell.identifier) or made.get(cell.identifier) for cell in cells]
    results = [row for row in found if row is not None]
    interrupted = report.exit_code is ExitCode.INTERRUPTED
    return msgspec.structs.replace(report, results=tuple(results), exit_code=exit_code(results, interrupted))


def write_files(project: Project) -> dict[str, str]:
    """What is built is what is committed: write the generated files before anything else."""
    wanted = render_project(project)
    for text in template_faults(project):
        click.echo(f"warning: {text}", err=True)
    present = read_generated(project.root)
    drift = find_drift(wanted, present)
    if drift.stale or drift.missing:
        write_generated(project.root, wanted, drift)
        click.echo(f"rendered {len(drift.stale) + len(drift.missing)} files", err=True)
    return wanted


def _require_space(cells: Sequence[Cell], site: Site, cache: Cache) -> None:
    if site.own is not None and site.info is not None:
        require_space(cells, site.own, cache, site.info)
    else:
        # what else it takes is the builder's own matter
        require_free_space(cache.root, download_need(cells), "this build")


def _with_sizes(site: Site, results: Sequence[CellResult]) -> list[CellResult]:
    try:
        sizes = site.delivery.sizes([result.image for result in results if result.image])
    except EnvironmentFault:  # the engine is gone since: the images on its disk are not
        sizes = None
    return [*results] if sizes is None else [with_size(result, sizes) for result in results]


def with_size(result: CellResult, sizes: Mapping[str, Sizes]) -> CellResult:
    """The result with its bytes; one whose image is gone again, before anybody could use it, is a failure."""
    if result.image is None:
        return result
    if (size := sizes.get(result.image)) is None:
        cause = f"the engine has {result.image} no more: another program removed it, run `ortimg build` again"
        return CellResult(
            identifier=result.identifier,
            result=Outcome.FAILED,
            seconds=result.seconds,
            cause=cause,
            environment=True,
        )
    return msgspec.structs.replace(result, bytes_total=size.total, bytes_own=size.own)


def _progress(update: Update) -> str:
    if update.done and update.total and update.done < update.total:
        return f"{update.text} {100 * update.done // update.total} %"
    return update.text
