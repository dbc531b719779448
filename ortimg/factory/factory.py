"""Builds cells: inputs as they arrive, each unit once, then the cells, two builds at a time; keeps going.

A unit or a base that cannot be had fails the cells that need it, and no other. Every step is a future, so
that the first cell is built while inputs of the last are still being fetched.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from ortimg.core.content import BELOW, Unit, base_content
from ortimg.core.disk_need import PARALLEL_BUILDS
from ortimg.core.model import Cell
from ortimg.core.render import dockerfile_path
from ortimg.engine.buildx import BuildOutcome
from ortimg.engine.failure import BuildFailure
from ortimg.engine.live import LiveTable
from ortimg.errors import EnvironmentFault
from ortimg.factory.asking import asks, at_once
from ortimg.factory.delivery import Delivery
from ortimg.factory.images import CellImage, Identities, UnitImage, cell_image, root_reference
from ortimg.factory.result import CellResult, Outcome
from ortimg.factory.steps import Builder, cell_contexts
from ortimg.factory.stores import Store, Target
from ortimg.inputs.cache import StoppedError
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.result import Fetched, Kind, Missing

WAITING = 64  # threads that wait for inputs and units; they cost nothing
# One compile makes both: asked for at once, they would take two turns for it, and heavier units would wait.
AFTER = {Unit.STUB: Unit.VERIFIER}
ARCHIVE_KINDS = {Unit.CUDA: Kind.CUDA, Unit.ORT: Kind.ORT, Unit.DEVEL: Kind.HEADERS}

HeavyBuild = Callable[[Target, Callable[[str], None]], BuildOutcome]

T = TypeVar("T")


class UnavailableError(Exception):
    """An input cannot be reached."""


class BrokenError(Exception):
    """A build on the way to a cell failed."""

    def __init__(self, cause: str, environment: bool) -> None:
        super().__init__(cause)
        self.environment = environment


class Timing(msgspec.Struct, kw_only=True):
    """Seconds that steps took, added up over everything that ran at the same time."""

    units: float = 0.0


class Factory:
    """One run of `ortimg build`."""

    def __init__(
        self,
        repository: str,
        files: Mapping[str, str],  # path → text of all generated files
        context: Mapping[str, str],  # path → text of the build context
        tools_requirements: Path,
        tools_image: str,
        store: Store,
        delivery: Delivery,
        handed: Callable[[str], str | None],  # image of this machine → context for a builder elsewhere
        fetcher: Fetcher,
        builder: Builder,
        table: LiveTable,
        *,
        available: bool,
        fail_fast: bool,
        parallel: int = PARALLEL_BUILDS,
    ) -> None:
        self._repository = repository
        self._files = files
        self._context = context
        self._tools_requirements = tools_requirements
        self._tools_image = tools_image
        self._store = store
        self._delivery = delivery
        self._handed = handed
        self._fetcher = fetcher
        self._builder = builder
        self._table = table
        self._available = available
        self._fail_fast = fail_fast
        self._locked = fetcher.cache.locked
        self._turns = threading.Semaphore(parallel)
        self._pool = ThreadPoolExecutor(WAITING, thread_name_prefix="build")
        self._once: dict[str, Future[str]] = {}
        self._mutex = threading.Lock()
        self._futures: list[Future[CellResult]] = []
        self._no_more: str | None = None  # why nothing is begun any more
        self.timing = Timing()

    def build(self, cells: Sequence[Cell]) -> list[CellResult]:
        """Build every cell; results come in the order of `cells`. KeyboardInterrupt ends builds cleanly."""
        self._futures = [self._pool.submit(self._cell, cell) for cell in cells]
        try:
            return [future.result() for future in self._futures]
        except BaseException:
            self.cancel()
            raise
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def so_far(self) -> dict[str, CellResult]:
        """After an interrupt: the cells that were finished before it."""
        done = [future.result() for future in self._futures if future.done() and not future.cancelled()]
        return {row.identifier: row for row in done if row.result in (Outcome.BUILT, Outcome.UNCHANGED)}

    def cancel(self) -> None:
        """End what runs, start nothing more."""
        self._builder.cancel.set()
        self._fetcher.cancel()

    def unchanged(self, cell: Cell) -> CellResult | None:
        """The result of a cell whose image is there and is made of the same; None where it must be built.

        Nothing is fetched or read for this: the cache's index and the image's label tell.
        """
        known = {kind: ask.known for kind, ask in asks(self._fetcher, cell).items()}
        there = {kind: found for kind, found in known.items() if found is not None}
        return self._same(self._image(cell, there)) if len(there) == len(known) else None

    # one cell

    def _cell(self, cell: Cell) -> CellResult:
        began = time.monotonic()
        try:
            return self._build_cell(cell)
        except UnavailableError as error:
            outcome = Outcome.UNAVAILABLE if self._available else Outcome.FAILED
            return self._end(cell, outcome, began, cause=str(error), environment=True)
        except BrokenError as error:
            if self._fail_fast:
                self.cancel()
            return self._end(cell, Outcome.FAILED, began, cause=str(error), environment=error.environment)
        except EnvironmentFault as error:  # between two builds: no engine, a full disk
            return self._end(cell, Outcome.FAILED, began, cause=str(error), environment=True)

    def _build_cell(self, cell: Cell) -> CellResult:
        # What the cache's index knows is read, and hashed, only where a unit must be built from it.
        asked = asks(self._fetcher, cell)
        for kind in at_once(asked, self._fetcher.upstream.may_have(cell)):
            asked[kind].fetch()
        inputs = {kind: ask.known or self._fetched(ask.fetch()) for kind, ask in asked.items()}
        image = self._image(cell, inputs)
        if (there := self._there(image)) is not None:
            return there

        def read(kind: Kind) -> Fetched:
            return self._read(inputs[kind], asked[kind].fetch())

        waits: dict[Unit, Future[str]] = {}
        for name, unit in image.units.items():
            below = waits[BELOW[name]] if name in BELOW else None
            archive = partial(read, ARCHIVE_KINDS[name]) if name in ARCHIVE_KINDS else None
            waits[name] = self._unit(unit, archive, below, waits.get(AFTER[name]) if name in AFTER else None)
        base = inputs[Kind.BASE]
        base_image = self._root("base-" + base.key, base, partial(read, Kind.BASE)) or self._with_packages(
            cell, base
        )
        for wait in waits.values():
            self._wait(wait)
        base_source = (
            self._upstream(base) if base_image is None else self._store.source(self._wait(base_image))
        )
        # A second run on this machine waits here, and finds the image that the first one made.
        with self._alone(self._reference(cell)):
            return self._there(image) or self._made(image, base_source)

    def _there(self, image: CellImage) -> CellResult | None:
        if (same := self._same(image)) is not None:
            self._table.finish(image.cell.identifier, same.result.value)
        return same

    def _made(self, image: CellImage, base_source: str | None) -> CellResult:
        cell, tags = image.cell, self._tags(image.cell)
        with self._turns:
            self._check_cancelled()
            began = time.monotonic()
            self._table.start(cell.identifier)
            outcome, verify_seconds = self._builder.cell(
                image,
                cell_contexts(image, base_source, self._store.source),
                self._delivery.target(tags),
                lambda step: self._table.step(cell.identifier, step),
            )
        if outcome.ok:
            self._delivery.keep(tags)
        else:
            with suppress(EnvironmentFault):  # an engine that is gone: what the build said of it counts
                self._delivery.discard(tags, image.content)
        self._check(outcome)
        return self._end(
            cell,
            Outcome.BUILT,
            began,
            image=self._delivery.place(self._reference(cell)),
            tier="load",
            verify_seconds=verify_seconds,
            origins=image.identities.origins,
        )

    def _same(self, image: CellImage) -> CellResult | None:
        cell = image.cell
        there = self._delivery.find(self._reference(cell))
        if there is None or there.labels.get("ortimg.content") != image.content:
            return None
        for tag in self._tags(cell):
            if tag not in there.references:
                self._delivery.alias(self._reference(cell), tag)
        return CellResult(
            identifier=cell.identifier,
            result=Outcome.UNCHANGED,
            image=self._delivery.place(self._reference(cell)),
            tier=there.labels.get("ortimg.tier"),
            origins=image.identities.origins,
        )

    def _image(self, cell: Cell, inputs: Mapping[Kind, Fetched]) -> CellImage:
        identities = Identities.of(
            inputs[Kind.ORT], inputs[Kind.CUDA], inputs[Kind.BASE], inputs.get(Kind.HEADERS)
        )
        return cell_image(cell, identities, self._files[dockerfile_path(cell)], self._context)

    # what cells share

    def _unit(
        self,
        unit: UnitImage,
        archive: Callable[[], Fetched] | None,
        below: Future[str] | None,
        after: Future[str] | None,
    ) -> Future[str]:
        def build() -> str:
            if after is not None:
                self._wait(after)
            if not self._store.has(unit.reference):
                tools, read = self._tools(), archive() if archive else None
                under = self._store.source(self._wait(below)) if below else None
                self._heavy(
                    unit.reference,
                    lambda target, on_step: self._builder.unit(unit, read, tools, under, target, on_step),
                )
            return unit.reference

        return self._shared(unit.reference, build)

    def _tools(self) -> str | None:
        """Context that stands in for the tools stage; None: Docker Hub has the stage's own."""

        def fetch() -> Fetched:
            return self._fetched(self._fetcher.tools(self._tools_image, self._tools_requirements))

        tools = self._fetcher.known_tools(self._tools_image, self._tools_requirements) or fetch()
        root = self._root("tools", tools, fetch)
        return self._upstream(tools) if root is None else self._store.source(self._wait(root))

    def _root(self, name: str, root: Fetched, read: Callable[[], Fetched]) -> Future[str] | None:
        if not root.files:
            return None
        reference = root_reference(name, root.identity)

        def build() -> str:
            if not self._store.has(reference):
                tar = read()
                self._heavy(
                    reference, lambda target, on_step: self._builder.root(reference, tar, target, on_step)
                )
            return reference

        return self._shared(reference, build)

    def _with_packages(self, cell: Cell, base: Fetched) -> Future[str] | None:
        """A base that the engine pulls, with what the flavour adds, once for all cells that stand on it."""
        if not cell.base.packages_for(cell.flavour):
            return None
        content = base_content(self._files[dockerfile_path(cell)], base.identity)
        reference = root_reference(f"base-{cell.base_key}", content)

        def build() -> str:
            if not self._store.has(reference):
                source = self._upstream(base)
                self._heavy(
                    reference,
                    lambda target, on_step: self._builder.base(reference, cell, source, target, on_step),
                )
            return reference

        return self._shared(reference, build)

    def _upstream(self, image: Fetched) -> str | None:
        """Context in place of an image that no build here makes; None: the builder pulls the stage's own."""
        name = image.image or image.identity
        if (source := self._handed(name)) is not None:
            return source
        return f"docker-image://{name}" if name != image.identity else None  # this machine has another mirror

    def _heavy(self, reference: str, build: HeavyBuild) -> None:
        """Build what cells share; a second run on this machine waits for it instead of doing the same."""
        with self._alone(reference):
            if not self._store.has(reference):
                self._build_heavy(reference, reference.rpartition("/")[2], build)

    @contextmanager
    def _alone(self, reference: str) -> Iterator[None]:
        """No other run on this machine makes `reference` meanwhile."""
        try:
            with self._locked(f"image/{reference.replace(':', '-')}", self._builder.cancel):
                yield
        except StoppedError:
            raise BrokenError("interrupted", environment=True) from None

    def _build_heavy(self, reference: str, name: str, build: HeavyBuild) -> None:
        with self._turns:
            self._check_cancelled()
            self._table.start(name)
            outcome = build(self._store.target(reference), lambda step: self._table.step(name, step))
        if self._made_meanwhile(reference, outcome):
            outcome = dataclasses.replace(outcome, failure=None, ok=True)
        if outcome.ok:
            self._store.keep(reference)
        with self._mutex:
            self.timing.units += outcome.seconds
        self._table.finish(name, "built" if outcome.ok else "failed")
        with suppress(EnvironmentFault):  # an engine that is gone: what the build said of it counts
            if not outcome.ok:
                self._store.discard(reference)
            # Now, before a cell stands on the builder's copy of the unit and so keeps it beside the image's.
            self._store.tidy()
        self._check(outcome, f"{name}: ")

    def _made_meanwhile(self, reference: str, outcome: BuildOutcome) -> bool:
        """Another run made the same image at the same time and was faster: its name tells its content."""
        failure = outcome.failure
        words = f'image "{reference}": already exists'
        return failure is not None and words in str(failure) and self._store.has(reference)

    def _shared(self, name: str, job: Callable[[], str]) -> Future[str]:
        """Run `job` once, whoever asks; in a thread of its own, so that it waits in nobody's way."""
        with self._mutex:
            if name not in self._once:
                future: Future[str] = Future()
                self._once[name] = future
                threading.Thread(target=_fill, args=(future, job), name=name, daemon=True).start()
            return self._once[name]

    # endings

    def _read(self, known: Fetched, future: Future[Fetched | Missing]) -> Fetched:
        """The input itself, its hash checked; it must be the one that names were made of."""
        read = self._fetched(future)
        if read.identity != known.identity:
            raise BrokenError(
                f"{read.kind.value} {read.key} in the cache was damaged and has been fetched anew from"
                f" {read.origin.value}\n  run `ortimg build` again",
                environment=True,
            )
        return read

    def _fetched(self, future: Future[Fetched | Missing] | None) -> Fetched:
        assert future is not None
        result = self._wait(future)
        if isinstance(result, Missing):
            if result.wrong:
                raise BrokenError(f"{result}. {result.hint or ''}".strip(), environment=True)
            raise UnavailableError(str(result))
        return result

    def _wait(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise BrokenError("interrupted", environment=True) from None

    def _check(self, outcome: BuildOutcome, prefix: str = "") -> None:
        if outcome.ok:
            return
        if outcome.cancelled:
            raise BrokenError("interrupted", environment=True)
        failure = outcome.failure or BuildFailure(None, None, "no reason given", (), environment=True)
        self._no_more = self._no_more or failure.ends_all
        raise BrokenError(f"{prefix}{failure}\n  log: {outcome.log}", failure.environment)

    def _check_cancelled(self) -> None:
        if self._builder.cancel.is_set():
            raise BrokenError("not started: the build was ended", environment=True)
        if self._no_more is not None:
            raise BrokenError(f"not started: {self._no_more}", environment=True)

    def _end(self, cell: Cell, outcome: Outcome, began: float, **facts: object) -> CellResult:
        result = CellResult(
            identifier=cell.identifier,
            result=outcome,
            seconds=time.monotonic() - began,
            **facts,  # type: ignore[arg-type]
        )
        detail = (result.cause or "").splitlines()
        self._table.finish(cell.identifier, outcome.value, detail[0] if detail else "")
        return result

    def _reference(self, cell: Cell) -> str:
        return f"{self._repository}:{cell.identifier}"

    def _tags(self, cell: Cell) -> list[str]:
        return [f"{self._repository}:{tag}" for tag in (cell.identifier, *cell.tags)]


def _fill(future: Future[str], job: Callable[[], str]) -> None:
    try:
        future.set_result(job())
    except BaseException as error:  # handed to whoever waits
        future.set_exception(error)
