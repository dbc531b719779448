"""The file system of an image from the stream of `docker export`: nothing of it is run or unpacked."""

from __future__ import annotations

import posixpath
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ortimg.core.doctor.facts import FAMILY, Elf
from ortimg.doctor.files import read_elf
from ortimg.doctor.image_files import ImageFiles
from ortimg.engine.tar_stream import open_tar

_KEPT = ("etc/ld.so.c", "libc.so.6")  # files whose content is wanted: conf, cache, the C library's banner
_KEEP = 1 << 24  # bytes
_CHUNK = 1 << 20


def read_tar(chunks: Iterator[bytes]) -> ImageFiles:
    """Reads the whole stream. Raises tarfile.TarError where it is cut."""
    found = ImageFiles()
    with (
        tempfile.TemporaryDirectory(prefix="ortimg-doctor-") as folder,
        open_tar(chunks) as tar,
    ):
        for member in tar:
            _add(found, tar, member, Path(folder) / "library")
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile keeps all of them otherwise
    return found


def _add(found: ImageFiles, tar: tarfile.TarFile, member: tarfile.TarInfo, scratch: Path) -> None:
    path = _inside(member.name)
    if member.isdir():
        found.add_folder(path)
    elif member.issym():
        found.add_link(path, member.linkname)
    elif member.islnk():
        found.add_link(path, _inside(member.linkname))
    elif member.isreg():
        found.add_file(path, member.size)
        wanted = FAMILY.fullmatch(posixpath.basename(path)) is not None
        kept = any(word in path for word in _KEPT) and member.size <= _KEEP
        if (wanted or kept) and member.size and (file := tar.extractfile(member)):
            if kept:
                found.add_content(path, file.read())
            else:
                found.add_elf(path, _spooled(file, scratch))


def _inside(name: str) -> str:
    """`./usr/lib` as `/usr/lib`; never outside of the root."""
    return posixpath.normpath("/" + name.lstrip("/"))


def _spooled(file: IO[bytes], scratch: Path) -> Elf | None:
    """ELF headers stand at both ends of a file, so it is written to the disk, one at a time."""
    with scratch.open("wb") as out:
        while piece := file.read(_CHUNK):
            out.write(piece)
    try:
        return read_elf(scratch)
    finally:
        scratch.unlink()
