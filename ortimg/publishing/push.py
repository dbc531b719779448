"""One push: what the registry lacks goes there, each layer once; then manifests; alias tags last of all.

A tag is put on a manifest only when all that it names is there, so no tag is ever on half an image. Alias
tags move together, when every cell of the push has passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ortimg.core.model import Cell, Tier
from ortimg.engine.client import Engine, Image
from ortimg.engine.live import LiveTable
from ortimg.errors import CheckFailed, EnvironmentFault, OrtimgError
from ortimg.inputs.cache import Cache
from ortimg.publishing.compression import Compression
from ortimg.publishing.layers import Carrier
from ortimg.publishing.memory import Memory
from ortimg.publishing.result import GOOD, Pushed, PushReport, PushResult
from ortimg.publishing.saved import SavedImage, full_name
from ortimg.publishing.targets import reaches, tier_fault
from ortimg.records.attach import attach
from ortimg.records.record import Record
from ortimg.registry.client import Registries, Repository
from ortimg.registry.errors import Denied
from ortimg.registry.labels import labels_of
from ortimg.registry.model import CONFIG, MANIFEST, Manifest, canonical, digest_of
from ortimg.registry.transport import StoppedTransfer

_QUESTIONS = 8
_CONTENT = "ortimg.content"  # label
_NOT_BUILT = "the engine has no such image: run `ortimg build`, or say --available"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """How to push."""

    tier: Tier = Tier.RUN  # the least that an image must have reached
    compression: Compression = Compression.BUILT
    available: bool = False  # cells that are not built are listed, no failure
    aliases: bool = True  # move alias tags, where everything has passed
    force: bool = False  # also what the registry has with the same content


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A cell and its image in the engine."""

    cell: Cell
    reference: str
    image: Image | None
    tier: str | None


class Push:
    """One run of `ortimg push`."""

    def __init__(
        self,
        engine: Engine,
        cache: Cache,
        registries: Registries,
        repositories: Sequence[str],
        memory: Memory,
        table: LiveTable,
        cancel: threading.Event,
        wish: Wish,
        records: Sequence[Record] = (),
    ) -> None:
        """`cancel`: the one that `registries` look at too. `records`: verdicts of GPU runs to send along."""
        self._targets = [registries.repository(name) for name in repositories]
        self._names = dict(zip(self._targets, repositories, strict=True))
        self._cancel, self._wish = cancel, wish
        self._memory, self._records = memory, records
        self._carrier = Carrier(engine, cache, memory, table, wish.compression, cancel)
        self._results: dict[tuple[str, Repository], PushResult] = {}
        self._refused: Denied | None = None

    def run(self, candidates: Sequence[Candidate]) -> PushReport:
        """Push. A fault of one cell is in its result; Ctrl-C in the report."""
        began = time.monotonic()
        interrupted = False
        try:
            self._push(candidates)
        except (KeyboardInterrupt, StoppedTransfer):
            interrupted = True
            self._cancel.set()
        finally:
            self._memory.save()
        return PushReport(
            results=tuple(
                self._results[row.cell.identifier, target]
                for target in self._targets
                for row in candidates
                if (row.cell.identifier, target) in self._results
            ),
            traffic=self._carrier.traffic,
            seconds=time.monotonic() - began,
            available=self._wish.available,
            interrupted=interrupted,
        )

    def require_tier(self, candidates: Sequence[Candidate]) -> None:
        """Raises CheckFailed where an image is verified less than is wished: it is asked before all else."""
        low = [row for row in candidates if row.image and not reaches(row.tier, self._wish.tier)]
        if low:
            why = tier_fault(low[0].tier, self._wish.tier)
            names = ", ".join(row.cell.identifier for row in low)
            raise CheckFailed(f"{names}: {why}", "Nothing was pushed.")

    def _push(self, candidates: Sequence[Candidate]) -> None:
        there = [row for row in candidates if row.image is not None]
        for row in candidates:
            if row.image is None:
                self._end(row, *self._targets, result=Pushed.NOT_BUILT, cause=_NOT_BUILT)
        todo = self._compare(there)
        saved = self._carry(there, todo) if todo else {}
        for row, target in todo:
            self._publish(row, target, saved)
        self._attach(there)
        if self._wish.aliases:
            self._move_aliases(there)

    # what is there already

    def _compare(self, rows: Sequence[Candidate]) -> list[tuple[Candidate, Repository]]:
        """The pairs that must be pushed; the others get their result."""
        pairs = [(row, target) for row in rows for target in self._targets]
        with ThreadPoolExecutor(_QUESTIONS, thread_name_prefix="compare") as pool:
            found = list(pool.map(lambda pair: self._present(*pair), pairs))
        todo = []
        for (row, target), digest in zip(pairs, found, strict=True):
            if digest is None:
                todo.append((row, target))
            else:
                self._end(row, target, result=Pushed.UNCHANGED, digest=digest)
        return todo

    def _present(self, row: Candidate, target: Repository) -> str | None:
        """Digest under the cell's tag where it is the same image, or another build of the same content."""
        assert row.image is not None
        manifest = target.manifest(row.cell.identifier)
        if manifest is None:
            return None
        if manifest.digest == row.image.digest and self._wish.compression is Compression.BUILT:
            return manifest.digest
        content = row.image.labels.get(_CONTENT)
        same = content is not None and labels_of(target, manifest).get(_CONTENT) == content
        return manifest.digest if same and not self._wish.force else None

    # images

    def _carry(
        self, rows: Sequence[Candidate], todo: Sequence[tuple[Candidate, Repository]]
    ) -> dict[str, SavedImage] | OrtimgError:
        """The images whose layers have arrived, by reference; or why it was of no use to go on."""
        wanted = {row.reference for row, _ in todo}
        targets = list(dict.fromkeys(target for _, target in todo))
        try:
            return self._carrier.carry(
                {
                    row.reference: row.image.digest if row.image else None
                    for row in rows
                    if row.reference in wanted
                },
                targets,
            )
        except OrtimgError as error:
            return error

    def _publish(
        self, row: Candidate, target: Repository, saved: dict[str, SavedImage] | OrtimgError
    ) -> None:
        """The manifest of a cell and its tag, where all its layers are there."""
        try:
            if isinstance(saved, OrtimgError):
                raise saved
            if self._refused is not None:
                raise self._refused
            if (image := saved.get(full_name(row.reference))) is None:
                raise EnvironmentFault(
                    f"the engine did not hand out {row.reference}: it was removed meanwhile"
                )
            for layer in image.layers:
                if (fault := self._carrier.faults.get(layer.digest)) is not None:
                    raise fault
            for data in image.documents.values():
                target.upload_bytes(data)
            manifest = self._manifest(image)
            digest = target.put_manifest(manifest.data, manifest.media_type, row.cell.identifier)
        except OrtimgError as error:
            self._refused = error if isinstance(error, Denied) else self._refused
            self._end(row, target, result=Pushed.FAILED, cause=str(error), environment=True)
            return
        self._memory.pushed_to(target.registry, target.path)
        self._end(row, target, result=Pushed.PUSHED, digest=digest)

    def _manifest(self, saved: SavedImage) -> Manifest:
        """The manifest as the engine has it, or with the layers as they were packed anew."""
        moved = [self._carrier.moved[layer.digest] for layer in saved.layers]
        if [layer.digest for layer in moved] == [layer.digest for layer in saved.layers]:
            return saved.manifest
        data = canonical(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {**saved.config.as_data(), "mediaType": CONFIG},
                "layers": [layer.as_data() for layer in moved],
            }
        )
        return Manifest(digest=digest_of(data), media_type=MANIFEST, data=data)

    # what goes with them

    def _attach(self, rows: Sequence[Candidate]) -> None:
        """Verdicts of GPU runs go along, bound to the digest that they speak of."""
        for row in rows:
            for target in self._targets:
                result = self._results[row.cell.identifier, target]
                if result.digest is None or not self._records:
                    continue
                try:
                    attach(target, result.digest, self._records)
                except OrtimgError as error:
                    cause = f"pushed, but its verdicts were not attached: {error}"
                    self._end(row, target, result=Pushed.FAILED, cause=cause, environment=True)

    def _move_aliases(self, rows: Sequence[Candidate]) -> None:
        bad = [row for row in self._results.values() if row.result not in GOOD]
        if any(row.result is not Pushed.NOT_BUILT or not self._wish.available for row in bad):
            return
        for row in rows:
            for target in self._targets:
                key = (row.cell.identifier, target)
                result = self._results[key]
                try:
                    moved = self._alias(row.cell, target, result.digest or "")
                except OrtimgError as error:
                    cause = f"its alias tags were not moved: {error}"
                    self._end(row, target, result=Pushed.FAILED, cause=cause, environment=True)
                    return
                self._results[key] = msgspec.structs.replace(result, aliases=moved)

    def _alias(self, cell: Cell, target: Repository, digest: str) -> tuple[str, ...]:
        manifest: Manifest | None = None
        for alias in cell.tags:
            if target.digest(alias) != digest:
                manifest = manifest or target.manifest(digest)
                if manifest is None:
                    raise EnvironmentFault(f"{target.name} has {digest} no more", "push it again")
                target.put_manifest(manifest.data, manifest.media_type, alias)
        return cell.tags

    def _end(self, row: Candidate, *targets: Repository, result: Pushed, **facts: object) -> None:
        for target in targets:
            self._results[row.cell.identifier, target] = PushResult(
                identifier=row.cell.identifier,
                repository=self._names[target],
                result=result,
                tier=row.tier,
                **facts,  # type: ignore[arg-type]
            )
