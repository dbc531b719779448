"""A file system to look at: this machine's, an unpacked root's, an image's. Links never lead out of it."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ortimg.core.doctor.facts import Elf

_LINKS = 40  # as many as Linux follows
_READ = 1 << 22  # bytes of a file that is read whole: ld.so.cache has some 100 KB


class Files(ABC):
    """Paths are absolute, as the target itself writes them."""

    @abstractmethod
    def names(self, folder: str) -> tuple[str, ...] | None:
        """What a folder (no link) holds; None: it is no folder, or cannot be read."""

    @abstractmethod
    def link(self, path: str) -> str | None:
        """Where a link points, as it stands in it; None: it is no link."""

    @abstractmethod
    def size(self, path: str) -> int | None:
        """Bytes of a regular file (no link); None: it is none."""

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """A small regular file (no link)."""

    @abstractmethod
    def elf(self, path: str) -> Elf | None:
        """What a regular file (no link) asks of the loader; None: it is no ELF file."""

    def real(self, path: str) -> str | None:
        """The path without links; None: nothing is there."""
        done, todo, followed = "/", [part for part in path.split("/") if part], 0
        while todo:
            part = todo.pop(0)
            if part in (".", ""):
                continue
            if part == "..":
                done = posixpath.dirname(done)
                continue
            here = posixpath.join(done, part)
            target = self.link(here)
            if target is None:
                done = here
                continue
            followed += 1
            if followed > _LINKS:
                return None
            if target.startswith("/"):
                done = "/"
            todo = [piece for piece in target.split("/") if piece] + todo
        return done if self.names(done) is not None or self.size(done) is not None else None

    def entries(self, folder: str) -> tuple[str, ...] | None:
        """What a folder holds, which may be a link to one."""
        real = self.real(folder)
        return None if real is None else self.names(real)

    def text(self, path: str) -> str | None:
        """A small text file, which may be a link to one."""
        real = self.real(path)
        raw = None if real is None else self.read(real)
        return None if raw is None else raw.decode("utf-8", "replace")

    def glob(self, pattern: str) -> Iterator[str]:
        """Paths that match, component by component; links to folders are followed."""
        yield from self._glob("/", [part for part in pattern.split("/") if part])

    def _glob(self, folder: str, parts: list[str]) -> Iterator[str]:
        if not parts:
            yield folder
            return
        first, rest = parts[0], parts[1:]
        if not any(letter in first for letter in "*?["):
            path = posixpath.join(folder, first)
            if self.real(path) is not None:
                yield from self._glob(path, rest)
            return
        for name in fnmatch.filter(self.entries(folder) or (), first):
            yield from self._glob(posixpath.join(folder, name), rest)


class LocalFiles(Files):
    """A folder of this machine as root file system; `/` for the machine itself."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root).rstrip("/")
        self._names = cache(self._scan)

    def names(self, folder: str) -> tuple[str, ...] | None:
        return self._names(folder)

    def _scan(self, folder: str) -> tuple[str, ...] | None:
        try:
            if not stat.S_ISDIR(os.lstat(self._root + folder).st_mode):
                return None
            return tuple(sorted(os.listdir(self._root + folder)))  # noqa: PTH208
        except (OSError, ValueError):
            return None

    def link(self, path: str) -> str | None:
        try:
            return os.readlink(self._root + path)  # noqa: PTH115
        except (OSError, ValueError):
            return None

    def size(self, path: str) -> int | None:
        try:
            status = os.lstat(self._root + path)
        except (OSError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def read(self, path: str) -> bytes | None:
        if self.size(path) is None:
            return None
        try:
            with open(self._root + path, "rb") as file:  # noqa: PTH123
                return file.read(_READ)
        except OSError:
            return None

    def elf(self, path: str) -> Elf | None:
        return None if self.size(path) is None else read_elf(Path(self._root + path))


def read_elf(path: Path) -> Elf | None:
    """What the file asks of the loader; None: it is no ELF file, or a damaged one."""
    from ortimg.measure.elf import read_library  # pyelftools is not needed for a log

    try:
        library = read_library(path)
    except Exception:  # pyelftools has an error of its own kind for each way in which a file can be damaged
        return None
    return Elf(
        soname=library.soname,
        needed=library.needed,
        run_path=library.run_path,
        wants=library.program_versions,
        defines=library.defines,
        executable_stack=library.executable_stack,
    )
