"""Reads from an image in the engine what its bill of materials says of its files. Nothing is run."""

from __future__ import annotations

import hashlib
import posixpath
import re
import tarfile
from collections.abc import Callable, Iterator

import msgspec

from ortimg.core.content import digest
from ortimg.core.model import Cell
from ortimg.core.render import ort_prefix
from ortimg.core.sbom import Found, LibraryFile, LicenceFile, parse_origins
from ortimg.engine.client import Engine, Image
from ortimg.engine.tar_stream import open_tar
from ortimg.generated import write_atomically
from ortimg.inputs.cache import Cache

Read = Callable[[str], Iterator[bytes] | None]

LICENCES = "/usr/share/licenses"
VERIFIER = "/usr/local/bin/ort-verify"
_LIBRARY = re.compile(r".*\.so(\.[0-9.]+)?")
_TEXT = 1 << 20  # bytes; a licence is shorter
_BLOCK = 1 << 20


def gather(engine: Engine, image: Image, reference: str, cell: Cell, cache: Cache) -> Found:
    """What the image has of the cell's libraries and licences.

    Hashing two gigabytes takes seconds, so the hashes of heavy layers are kept: many images have those.
    """
    with engine.folders(reference) as read:
        # The heavy layers lie at the bottom: CUDA's, and upon it ORT's.
        cuda = _hashes(read, cell.cuda_set.folder, cache, image.layers[:1])
        ort = _hashes(read, ort_prefix(cell.release), cache, image.layers[:2])
        return Found(
            origins=parse_origins(image.labels.get("ortimg.origin", "")),
            ort=ort,
            cuda=cuda,
            verifier=tuple(_files(read, VERIFIER)),
            licences=tuple(_licences(read)),
        )


def _hashes(read: Read, folder: str, cache: Cache, layers: tuple[str, ...]) -> tuple[LibraryFile, ...]:
    path = cache.root / "sbom" / f"{digest(folder, *layers)}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[LibraryFile, ...])
    except (OSError, msgspec.DecodeError):
        found = tuple(file for file in _files(read, folder) if _LIBRARY.fullmatch(file.path))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(found).decode())
        return found


def _files(read: Read, place: str) -> Iterator[LibraryFile]:
    """The regular files at or below a place, by path."""
    found = []
    for path, member, tar in members(read, place):
        file = tar.extractfile(member)
        assert file is not None
        state = hashlib.sha256()
        while block := file.read(_BLOCK):
            state.update(block)
        found.append(LibraryFile(path=path, sha256=state.hexdigest()))
    yield from sorted(found, key=lambda file: file.path)


def _licences(read: Read) -> Iterator[LicenceFile]:
    found = []
    for path, member, tar in members(read, LICENCES):
        file = tar.extractfile(member)
        assert file is not None
        text = file.read(_TEXT).decode("utf-8", "replace")
        found.append(LicenceFile(path=path, text=_printable(text)))
    yield from sorted(found, key=lambda file: file.path)


def members(read: Read, place: str) -> Iterator[tuple[str, tarfile.TarInfo, tarfile.TarFile]]:
    """Each regular file at or below `place`, with its path in the image, once from front to back."""
    if (chunks := read(place)) is None:
        return
    above = posixpath.dirname(place)  # the engine's tar begins with the last part of the path
    with open_tar(chunks) as tar:
        for member in tar:
            if member.isreg():
                yield posixpath.join(above, member.name), member, tar


def _printable(text: str) -> str:
    """Without what no JSON reader wants: licences have form feeds in them."""
    return "".join(char for char in text.replace("\r\n", "\n") if char >= " " or char in "\n\t")
