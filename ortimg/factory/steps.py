"""The three kinds of builds: a root, a unit, a cell. Each is one `docker buildx build`."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ortimg.core.content import ARCHIVES, BASE_STAGE, BELOW, TOOLS_STAGE, Unit
from ortimg.core.lock import DEFAULT_EPOCH, UNIT_EPOCH
from ortimg.core.model import Cell
from ortimg.core.render import DOCKERFILES, dockerfile_path
from ortimg.engine.buildx import BuildOutcome, run_build
from ortimg.engine.rawjson import BuildEvent, EventKind
from ortimg.factory.images import CellImage, UnitImage
from ortimg.factory.stores import Target
from ortimg.factory.wording import step_words
from ortimg.inputs.result import Fetched, Kind

_ROOT_DOCKERFILE = 'FROM scratch\nADD root.tar /\nCMD ["bash"]\n'
VERIFY_STEP = re.compile(r"\bort-verify --tier load\b")

# The date in an image's configuration and in its history, and no more: `rewrite-timestamp=true` would pack
# every layer anew, the gigabytes too (88 and 109 s an image), and the engine's own store refuses it. The
# Dockerfile itself gives its files fixed times. https://reproducible-builds.org/specs/source-date-epoch/
_EPOCH = "SOURCE_DATE_EPOCH"
_TRIES = 3
_PAUSE = 2.0  # seconds
_LOST_SNAPSHOT = re.compile(r"failed to prepare extraction snapshot .* does not exist: not found", re.DOTALL)

OnStep = Callable[[str], None]


class Builder:
    """Runs builds for one project folder. `logs` gets one plain log a build."""

    def __init__(
        self,
        root: Path,
        work: Path,
        logs: Path,
        builder: str,
        cancel: threading.Event,
        epoch: int | None = None,
        provenance: bool = False,
    ) -> None:
        """`epoch`: date of the cells' images, seconds since 1970; SOURCE_DATE_EPOCH goes before it."""
        self._dockerfiles = root / DOCKERFILES
        self._root = root
        self._work = work
        self._logs = logs
        self._builder = builder
        self.cancel = cancel
        self._provenance = provenance
        self._date = os.environ.get(_EPOCH) or str(DEFAULT_EPOCH if epoch is None else epoch)

    def root(self, reference: str, tar: Fetched, target: Target, on_step: OnStep) -> BuildOutcome:
        """A bootstrapped root file system as an image."""
        with self._folder({"root.tar": tar.files[0].path}) as context:
            (context / "Dockerfile").write_text(_ROOT_DOCKERFILE, encoding="utf-8")
            return self._run(reference, target, {}, {}, context, context / "Dockerfile", on_step)

    def unit(
        self,
        image: UnitImage,
        archive: Fetched | None,
        tools: str | None,
        below: str | None,
        target: Target,
        on_step: OnStep,
    ) -> BuildOutcome:
        """A unit from its archive, upon the unit that it stands on: `below`, as a context.

        `tools`: context that replaces the tools stage; None: the stage's own.
        """
        contexts = {} if tools is None else {TOOLS_STAGE: tools}
        if below is not None:
            contexts[BELOW[image.unit].value] = below
        files: dict[str, Path] = {}
        if archive is not None:
            if archive.kind in (Kind.CUDA, Kind.PYTHON):
                files = {f"wheels/{file.name}": file.path for file in archive.files}
            else:
                files = {"onnxruntime.tgz": archive.files[0].path}
        with self._folder(files) as folder:
            if archive is not None:
                contexts[ARCHIVES[image.unit]] = str(folder)
            return self._run(
                image.reference,
                target,
                contexts,
                {},
                self._dockerfiles,
                self._root / dockerfile_path(image.cell),
                on_step,
                "--target",
                image.unit.value,
            )

    def base(
        self, reference: str, cell: Cell, source: str | None, target: Target, on_step: OnStep
    ) -> BuildOutcome:
        """A base with what its flavour adds. `source`: context in place of its image; None: it is pulled."""
        contexts = {} if source is None else {cell.base.image: source}
        dockerfile = self._root / dockerfile_path(cell)
        return self._run(
            reference, target, contexts, {}, self._dockerfiles, dockerfile, on_step, "--target", BASE_STAGE
        )

    def cell(
        self, image: CellImage, contexts: Mapping[str, str], target: Target, on_step: OnStep
    ) -> tuple[BuildOutcome, float | None]:
        """A cell from what replaces its stages; also how long its verifier ran (None: it was cached)."""
        labels = {"ortimg.origin": image.identities.label, "ortimg.content": image.content}
        timing = _Watcher(on_step)
        outcome = self._run(
            image.cell.identifier,
            target,
            contexts,
            labels,
            self._dockerfiles,
            self._root / dockerfile_path(image.cell),
            timing,
            *(["--provenance=mode=max"] if self._provenance else []),
            date=self._date,
        )
        return outcome, timing.seconds

    def _run(
        self,
        name: str,
        target: Target,
        contexts: Mapping[str, str],
        labels: Mapping[str, str],
        context: Path,
        dockerfile: Path,
        on_step: OnStep | _Watcher,
        *more: str,
        date: str = str(UNIT_EPOCH),
    ) -> BuildOutcome:
        args = ["build", f"--builder={self._builder}", f"--file={dockerfile}", *more]
        args += [f"--tag={tag}" for tag in target.tags]
        args += [f"--build-context={stage}={source}" for stage, source in contexts.items()]
        args += [f"--label={key}={value}" for key, value in labels.items()]
        args += [f"--output={target.output}", str(context)]
        handler = on_step if isinstance(on_step, _Watcher) else _Watcher(on_step)
        log = self._logs / f"{re.sub('[^A-Za-z0-9._-]', '_', name.rpartition('/')[2])}.log"
        for _ in range(_TRIES):
            outcome = run_build(args, on_event=handler.event, log=log, cancel=self.cancel, env={_EPOCH: date})
            if handler.stored and _only_the_history_failed(outcome):
                return dataclasses.replace(outcome, ok=True, failure=None)
            if not _lost_a_snapshot(outcome) or self.cancel.wait(_PAUSE):
                break
        return outcome

    @contextmanager
    def _folder(self, files: Mapping[str, Path]) -> Iterator[Path]:
        """A build context made of hard links into the cache: no byte is copied on the same disk."""
        self._work.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="context-", dir=self._work))
        try:
            for name, source in files.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    target.hardlink_to(source)
                except OSError:
                    shutil.copyfile(source, target)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _lost_a_snapshot(outcome: BuildOutcome) -> bool:
    """Whether a removal elsewhere took a snapshot from under an image that was being unpacked.

    The engine's garbage collection does that now and then. All steps are cached: trying again takes seconds.
    """
    failure = outcome.failure
    return failure is not None and bool(_LOST_SNAPSHOT.search(str(failure)))


def _only_the_history_failed(outcome: BuildOutcome) -> bool:
    """Whether the builder failed only to write the build into its history, once the image was stored.

    The history holds a provenance, asked for or not, and to make it BuildKit 0.13 looks up records of its
    cache that may have been given back meanwhile. It then says "not found", after everything was done.
    https://github.com/moby/buildkit/blob/v0.13.1/solver/llbsolver/solver.go (recordBuildHistory)
    """
    failure = outcome.failure
    return (
        failure is not None and failure.step is None and failure.cause.endswith("failed to solve: not found")
    )


def _docker_image(reference: str) -> str:
    return f"docker-image://{reference}"


def cell_contexts(
    image: CellImage, base: str | None, source: Callable[[str], str] = _docker_image
) -> dict[str, str]:
    """Stage → what replaces it in the build of a cell: ready units, and a base that its builder cannot pull.

    `base` is a context, `source` makes one of the reference of a unit.
    """
    contexts = {unit.value: source(unit_image.reference) for unit, unit_image in image.units.items()}
    # Nothing of the tools stage runs here, but the builder looks up the image of each stage that a
    # replaced one would have used. Any image that is there spares that question to Docker Hub.
    contexts[TOOLS_STAGE] = contexts[Unit.VERIFIER.value]
    if base is not None:
        contexts[BASE_STAGE] = base
    return contexts


class _Watcher:
    """Passes step names on; keeps how long the verifier's step took, and whether the image was stored."""

    def __init__(self, on_step: OnStep) -> None:
        self._on_step = on_step
        self.seconds: float | None = None
        self.stored = False

    def event(self, event: BuildEvent) -> None:
        if event.kind is EventKind.STARTED:
            if (words := step_words(event.step)) is not None:
                self._on_step(words)
        elif event.kind is EventKind.DONE:
            self.stored |= event.step.startswith("exporting to image")
            if VERIFY_STEP.search(event.step) and not event.cached:
                self.seconds = event.seconds
