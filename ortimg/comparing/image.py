"""An image of the engine, whoever built it: its files as a stream, so that nothing of it is stored."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ortimg.comparing.gather import Found, Gatherer
from ortimg.engine.client import Engine
from ortimg.inputs.cache import Cache

_HEAD = 4  # bytes that tell an ELF file
_CHUNK = 1 << 20  # bytes
_ROOM = 1_000_000_000  # bytes; the largest library that is opened, and some


def read_files(engine: Engine, reference: str, cache: Cache) -> Found:
    """Everything of the image `reference` that a comparison needs; nothing is run, nothing is kept."""
    gatherer = Gatherer()
    with cache.workdir(_ROOM) as work, engine.exported(reference) as tar:
        for member in tar:
            path = member.name.removeprefix("./").strip("/")
            if member.isdir():
                gatherer.folder(path)
            elif member.issym() or member.islnk():
                gatherer.link(path, member.linkname)
            elif member.isreg():
                _file(gatherer, tar, member, path, work / "file")
    return gatherer.found


def _file(gatherer: Gatherer, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, place: Path) -> None:
    stream = tar.extractfile(member)
    head = stream.read(_HEAD) if stream is not None else b""
    if stream is None or not gatherer.wants(path, member.size, head):
        gatherer.file(path, member.size, None)
        return
    gatherer.file(path, member.size, _copied(stream, head, place))
    place.unlink(missing_ok=True)


def _copied(stream: IO[bytes], head: bytes, place: Path) -> Callable[[], Path]:
    """Puts the file at `place` the first time it is asked for."""

    def contents() -> Path:
        if not place.exists():
            with place.open("wb") as target:
                target.write(head)
                shutil.copyfileobj(stream, target, _CHUNK)
        return place

    return contents
