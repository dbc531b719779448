"""Reads a tar that comes in chunks, as the engine sends files of a container."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 20  # bytes


def open_tar(chunks: Iterable[bytes]) -> tarfile.TarFile:
    """The tar, to be read once from front to back."""
    return tarfile.open(fileobj=io.BufferedReader(_Stream(iter(chunks)), _BLOCK), mode="r|", bufsize=_BLOCK)


def hash_in_tar(chunks: Iterable[bytes]) -> str | None:
    """sha256 of the first regular file in a tar; None where it holds none."""
    with open_tar(chunks) as tar:
        for member in tar:
            if not member.isreg() or (file := tar.extractfile(member)) is None:
                continue
            digest = hashlib.sha256()
            while block := file.read(_BLOCK):
                digest.update(block)
            return digest.hexdigest()
    return None


class _Stream(io.RawIOBase):
    """Chunks as a file. An empty chunk is not its end."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        target = memoryview(buffer)
        size = min(len(target), len(self._rest))
        target[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
