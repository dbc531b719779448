"""The stream of `docker save`: an OCI layout in a tar file, read once from front to end.

Blobs come first, in the order of their digests, and the index last: which blob belongs to which image is
known only when all have passed. https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from ortimg.core.mirrors import Reference
from ortimg.engine.tar_stream import open_tar
from ortimg.errors import EnvironmentFault
from ortimg.registry.model import INDEXES, Descriptor, Manifest, digest_of

_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")
_DOCUMENT = 4 << 20  # bytes; configurations and manifests are smaller, as registries want them
_NAME = "io.containerd.image.name"
_BROKEN = "the engine broke off while it handed out the images"
_HINT = "see the engine's log, then run the same again"


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer. Where it has no path it is passing: `data` must be read now or never."""

    digest: str
    size: int  # bytes
    head: bytes  # the first of them, which `data` gives again
    data: IO[bytes]
    path: Path | None = None


class SavedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image of the stream."""

    manifest: Manifest
    documents: dict[str, bytes]  # digest → configuration
    layers: tuple[Descriptor, ...]
    config: Descriptor


class Saved:
    """Reads one stream. `on_layer` is called with each layer on its way."""

    def __init__(self, chunks: Iterable[bytes], on_layer: Callable[[Layer], None]) -> None:
        self._chunks, self._on_layer = chunks, on_layer
        self._documents: dict[str, bytes] = {}
        self._index: dict[str, Any] | None = None

    def read(self) -> dict[str, SavedImage]:
        """The images by their full names (`full_name`).

        Raises EnvironmentFault where the stream is not whole, or not what its digests say.
        """
        try:
            with open_tar(self._chunks) as tar:
                for member in tar:
                    self._take(tar, member)
        except (tarfile.TarError, EOFError) as error:
            raise EnvironmentFault(f"{_BROKEN}: {error}", _HINT) from error
        if self._index is None:
            raise EnvironmentFault(f"{_BROKEN}: no index came", _HINT)
        return dict(self._images(self._index))

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        data = tar.extractfile(member) if member.isfile() else None
        if data is None:
            return
        if member.name == "index.json":
            self._index = json.loads(data.read())
        elif (match := _BLOB.fullmatch(member.name)) is not None:
            digest = f"sha256:{match[1]}"
            head = data.read(min(512, member.size))
            if head.startswith(b"{") and member.size <= _DOCUMENT:
                text = head + data.read()
                if digest_of(text) != digest:
                    raise EnvironmentFault(f"{digest} is damaged in the engine's store", "build it again")
                self._documents[digest] = text
            else:
                rest = _Replay(head, data)
                self._on_layer(Layer(digest=digest, size=member.size, head=head, data=rest))  # type: ignore[arg-type]

    def _images(self, index: dict[str, Any]) -> Iterator[tuple[str, SavedImage]]:
        for row in index.get("manifests") or ():
            found = Descriptor.parse(row)
            name = full_name(found.annotations.get(_NAME, ""))
            manifest = self._manifest(found)
            content = manifest.content
            config = Descriptor.parse(content["config"])
            yield (
                name,
                SavedImage(
                    manifest=manifest,
                    documents={config.digest: self._document(config.digest)},
                    config=config,
                    layers=tuple(Descriptor.parse(layer) for layer in content["layers"]),
                ),
            )

    def _manifest(self, found: Descriptor) -> Manifest:
        """The manifest itself; of an index, the one for this platform: ortimg's images have just one."""
        data = self._document(found.digest)
        if found.media_type not in INDEXES:
            return Manifest(digest=found.digest, media_type=found.media_type, data=data)
        return self._manifest(only_image(found.digest, data))

    def _document(self, digest: str) -> bytes:
        if digest not in self._documents:
            raise EnvironmentFault(f"{_BROKEN}: {digest} did not come", _HINT)
        return self._documents[digest]


def only_image(digest: str, index: bytes) -> Descriptor:
    """The one image of an index: ortimg's have no others, besides attestations. Raises EnvironmentFault."""
    rows = [
        row
        for row in json.loads(index).get("manifests") or ()
        if (row.get("platform") or {}).get("architecture") != "unknown"
    ]
    if len(rows) != 1:
        raise EnvironmentFault(f"{digest} is an index of {len(rows)} images, not of one")
    return Descriptor.parse(rows[0])


def full_name(reference: str) -> str:
    """`docker.io/library/debian:12` for `debian:12`: the same image has one name."""
    found = Reference.parse(reference)
    return f"{found.registry}/{found.repository}:{found.tag}"


class _Replay:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size < 0:
            data, self._head = self._head + self._rest.read(), b""
            return data
        data, self._head = self._head[:size], self._head[size:]
        return data
