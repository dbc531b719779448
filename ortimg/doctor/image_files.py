"""The file system of an image, as far as it was told."""

from __future__ import annotations

import posixpath

from ortimg.core.doctor.facts import FAMILY, Elf
from ortimg.doctor.files import Files


class ImageFiles(Files):
    """Filled entry by entry; folders come with what is in them."""

    def __init__(self) -> None:
        self._folders: dict[str, set[str]] = {"/": set()}
        self._links: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._content: dict[str, bytes] = {}
        self._elfs: dict[str, Elf | None] = {}

    def add_folder(self, path: str) -> None:
        self._parent(path)
        self._folders.setdefault(path, set())

    def add_link(self, path: str, target: str) -> None:
        self._parent(path)
        self._links[path] = target

    def add_file(self, path: str, size: int) -> None:
        self._parent(path)
        self._sizes[path] = size

    def add_content(self, path: str, content: bytes) -> None:
        self._content[path] = content

    def add_elf(self, path: str, elf: Elf | None) -> None:
        self._elfs[path] = elf

    def _parent(self, path: str) -> None:
        folder, name = posixpath.split(path)
        if folder not in self._folders:
            self._folders[folder] = set()
            self._parent(folder)
        if name:
            self._folders[folder].add(name)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Every file or link of a wanted name, wherever it is."""
        paths = (*self._sizes, *self._links)
        return tuple(sorted(path for path in paths if FAMILY.fullmatch(posixpath.basename(path))))

    @property
    def sites(self) -> tuple[str, ...]:
        """Every folder of Python packages."""
        ends = ("/site-packages", "/dist-packages")
        named = {path for path in self._folders if path.endswith(ends)}
        # a wheel may be unpacked anywhere
        wheels = {
            posixpath.dirname(path)
            for path in self._folders
            if path.endswith(".dist-info") and posixpath.basename(path).startswith("onnxruntime")
        }
        return tuple(sorted(named | wheels))

    def names(self, folder: str) -> tuple[str, ...] | None:
        found = self._folders.get(folder)
        return None if found is None else tuple(sorted(found))

    def link(self, path: str) -> str | None:
        return self._links.get(path)

    def size(self, path: str) -> int | None:
        return self._sizes.get(path)

    def read(self, path: str) -> bytes | None:
        return self._content.get(path, b"" if path in self._sizes else None)

    def elf(self, path: str) -> Elf | None:
        return self._elfs.get(path)
