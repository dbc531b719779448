"""Layers from the engine's stream to the repositories that lack them, each once.

A layer that is wanted somewhere is written to the cache's disk first, so that an upload that is cut can begin
again, and is gone from there when it has arrived. Only a few are on their way at a time.
"""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, cast

import msgspec
from requests import RequestException

from ortimg.engine.client import Engine
from ortimg.engine.live import LiveTable
from ortimg.errors import EnvironmentFault, OrtimgError
from ortimg.inputs.cache import Cache
from ortimg.publishing.compression import Compression, Packing, method, packing_of, repack, repacked_as
from ortimg.publishing.couriers import Couriers
from ortimg.publishing.memory import Memory, Repacked
from ortimg.publishing.result import Traffic
from ortimg.publishing.saved import Layer, Saved, SavedImage, full_name
from ortimg.publishing.store import ContentStore
from ortimg.registry.client import Repository
from ortimg.registry.errors import Denied
from ortimg.registry.model import Descriptor
from ortimg.registry.transport import StoppedTransfer
from ortimg.registry.upload import Blob, How

_UPLOADS = 3  # at a time: so many layers, and two more, take disk on their way
_WORTH_A_MOUNT = 1 << 20  # bytes: below, an upload is as quick
_GRACE = 3.0  # seconds for uploads to end after an interrupt
_CHUNK = 1 << 20
_GONE = "a layer is in the engine's store no more: another program removed its image"


class Carrier:
    """Carries layers of one push. After `carry`, `moved` tells what each layer has become on its way."""

    def __init__(
        self,
        engine: Engine,
        cache: Cache,
        memory: Memory,
        table: LiveTable,
        compression: Compression,
        cancel: threading.Event,
    ) -> None:
        self._engine, self._cache, self._memory = engine, cache, memory
        self._table, self._compression, self._cancel = table, compression, cancel
        self._mutex = threading.Lock()
        self.moved: dict[str, Descriptor] = {}
        self.faults: dict[str, OrtimgError] = {}  # by layer, as the engine calls it
        self.traffic = Traffic()

    def carry(self, wanted: Mapping[str, str | None], targets: Sequence[Repository]) -> dict[str, SavedImage]:
        """Bring the layers of images to `targets`; gives the images by their full names.

        `wanted`: reference → digest of the manifest, where the engine knows it.

        Raises `Denied` and `Unreachable` where it is of no use to go on, EnvironmentFault (engine, disk) and
        `StoppedTransfer`. Other faults are kept in `faults`.
        """
        couriers = Couriers(_UPLOADS, self._cancel)
        self.faults = couriers.faults
        try:
            with self._cache.workdir() as spool:
                on_layer = partial(self._layer, couriers, spool, targets)
                saved = self._from_store(wanted, on_layer)
                if rest := [name for name in wanted if full_name(name) not in saved]:
                    with self._engine.saved(rest) as chunks:
                        saved |= Saved(chunks, on_layer).read()
                couriers.finish()
        except BaseException as error:
            couriers.stop(_GRACE)
            if isinstance(error, StoppedTransfer):  # by a fault, or by nobody but the user
                self._look_for_an_end()
            raise
        self._look_for_an_end()
        return saved

    def _from_store(
        self, wanted: Mapping[str, str | None], on_layer: Callable[[Layer], None]
    ) -> dict[str, SavedImage]:
        """Those of the images that the engine's store has whole, as files that can be read here."""
        store = ContentStore.of(self._engine)
        if store is None:
            return {}
        found = {
            full_name(name): image
            for name, digest in wanted.items()
            if digest is not None and (image := store.image(digest)) is not None
        }
        for layer in {layer.digest: layer for image in found.values() for layer in image.layers}.values():
            path = store.path(layer.digest)
            if path is None:
                raise EnvironmentFault(_GONE, "build it again")
            with path.open("rb") as file:
                head = file.read(512)
                file.seek(0)
                on_layer(Layer(digest=layer.digest, size=layer.size, head=head, data=file, path=path))
        return found

    def _look_for_an_end(self) -> None:
        if self._cancel.is_set():
            raise next(iter(self.faults.values()), StoppedTransfer())

    def _layer(self, couriers: Couriers, spool: Path, targets: Sequence[Repository], layer: Layer) -> None:
        """A layer passes: skip it, or write it down and hand it to a courier."""
        self._look_for_an_end()
        now = packing_of(layer.head)
        packing = repacked_as(self._compression, now)
        lacking = [*targets]
        if (known := self._known(layer, now, packing)) is not None:
            self.moved[layer.digest] = known
            try:
                lacking = [row for row in targets if not self._placed(row, known, targets)]
            except OrtimgError as error:
                self._fault(layer.digest, error)
                return
        if lacking and packing is None and layer.path is not None:
            descriptor = self.moved[layer.digest]
            self._table.start(_short(layer.digest))
            job = partial(self._upload, layer.digest, descriptor, layer.path, lacking, targets, keep=True)
            couriers.give(layer.digest, job)
        elif lacking:
            path = spool / layer.digest.removeprefix("sha256:")
            self.moved[layer.digest] = moved = self._write(layer, now, packing, path)
            job = partial(self._upload, layer.digest, moved, path, lacking, targets)
            couriers.give(layer.digest, job)

    def _known(self, layer: Layer, now: Packing, packing: Packing | None) -> Descriptor | None:
        """What the layer will be, where that is known before it is read."""
        if packing is None:
            return Descriptor(media_type=now.media_type, digest=layer.digest, size=layer.size)
        before = self._memory.repacked(layer.digest, method(packing))
        if before is None:
            return None
        return Descriptor(media_type=packing.media_type, digest=before.digest, size=before.size)

    def _placed(self, target: Repository, layer: Descriptor, targets: Sequence[Repository]) -> bool:
        how = target.place(layer.digest, self._sources(target, layer, targets))
        if how is not None:
            self._count(how, layer.size)
        return how is not None

    def _sources(self, target: Repository, layer: Descriptor, targets: Sequence[Repository]) -> list[str]:
        """Other repositories of the registry that may have the layer: of this push, of earlier ones."""
        if layer.size < _WORTH_A_MOUNT:
            return []
        these = [row.path for row in targets if row.registry == target.registry]
        known = self._memory.repositories(target.registry)
        return [path for path in dict.fromkeys((*these, *known)) if path != target.path]

    def _write(self, layer: Layer, now: Packing, packing: Packing | None, path: Path) -> Descriptor:
        """The layer as a file, packed anew where that is wanted; checked by its digest on the way."""
        own, packed = hashlib.sha256(), hashlib.sha256()
        source = cast(IO[bytes], _Hashing(layer.data.read, own.update))
        name = _short(layer.digest)
        self._table.start(name)
        if packing is not None:
            self._table.step(name, f"packing anew as {packing.value}")
        try:
            with path.open("wb") as file:
                for chunk in _chunks(source) if packing is None else repack(source, now, packing):
                    if self._cancel.is_set():
                        raise StoppedTransfer
                    file.write(chunk)
                    if packing is not None:
                        packed.update(chunk)
                size = file.tell()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise EnvironmentFault(
                f"{self._cache.root}: no space left for a layer of {layer.size / 1e6:.0f} MB on its way",
                "free some, or set ORTIMG_CACHE to a larger disk; what has arrived is not sent again",
            ) from error
        while source.read(_CHUNK):  # what a packer leaves after its end
            pass
        if f"sha256:{own.hexdigest()}" != layer.digest:
            raise EnvironmentFault(f"{layer.digest} is damaged in the engine's store", "build it again")
        if packing is None:
            return Descriptor(media_type=now.media_type, digest=layer.digest, size=size)
        digest = f"sha256:{packed.hexdigest()}"
        self._memory.learn(layer.digest, method(packing), Repacked(digest=digest, size=size))
        return Descriptor(media_type=packing.media_type, digest=digest, size=size)

    def _upload(
        self,
        name: str,
        layer: Descriptor,
        path: Path,
        lacking: Sequence[Repository],
        targets: Sequence[Repository],
        keep: bool = False,
    ) -> None:
        row = _short(name)

        def progress(done: int) -> None:
            self._table.step(row, f"uploading {100 * done // max(layer.size, 1)} %")

        try:
            for target in lacking:
                blob = Blob.file(path, layer.digest, progress)
                how = target.upload(blob, self._sources(target, layer, targets))
                self._count(how, layer.size)
                self._table.finish(row, how.value, f"{layer.size / 1e6:.1f} MB")
        except OrtimgError as error:
            self._table.finish(row, "failed", error.message)
            self._fault(name, error)
        except OSError as error:
            self._table.finish(row, "failed", _GONE)
            self._fault(name, EnvironmentFault(f"{_GONE}: {error.strerror}", "build it again"))
        finally:
            if not keep:
                path.unlink(missing_ok=True)

    def _fault(self, layer: str, error: OrtimgError) -> None:
        """One layer's fault fails the images that have it; not let in, or not answered, is the end of all."""
        self.faults[layer] = error
        if isinstance(error, Denied) or isinstance(error.__cause__, RequestException):
            self._cancel.set()

    def _count(self, how: How, size: int) -> None:
        field = {How.UPLOADED: "uploaded", How.MOUNTED: "mounted", How.PRESENT: "present"}[how]
        with self._mutex:
            before = getattr(self.traffic, field)
            self.traffic = msgspec.structs.replace(self.traffic, **{field: before + size})


def _chunks(data: IO[bytes]) -> Iterator[bytes]:
    while chunk := data.read(_CHUNK):
        yield chunk


class _Hashing:
    """A stream whose bytes are hashed as they pass."""

    def __init__(self, read: Callable[[int], bytes], update: Callable[[bytes], None]) -> None:
        self._read, self._update = read, update

    def read(self, size: int = -1) -> bytes:
        data = self._read(size)
        self._update(data)
        return data


def _short(digest: str) -> str:
    return f"layer {digest.removeprefix('sha256:')[:12]}"
