"""Where the dynamic loader would find a library, from facts alone.

Order of ld.so(8): LD_LIBRARY_PATH, the asker's RUNPATH, /etc/ld.so.cache, the standard folders. (An RPATH
comes before LD_LIBRARY_PATH; ONNX Runtime's names folders in which only its own files are.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ortimg.core.doctor.facts import LibraryFile, Snapshot


@dataclass(frozen=True)
class Hit:
    """A library that the loader finds."""

    library: LibraryFile
    by: str  # "LD_LIBRARY_PATH", "RUNPATH", "ld.so.cache", "standard folder"


class Loader:
    """Look-ups in one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._by_path = {library.path: library for library in snapshot.libraries}
        self._cache: dict[str, list[str]] = {}
        for name, path in snapshot.cache or ():
            self._cache.setdefault(name, []).append(path)

    def all(self, name: str, asker: LibraryFile | None = None) -> list[Hit]:
        """Every place with a library of this name, in the order of the search; one real file counts once."""
        found: dict[str, Hit] = {}
        for hit in self._search(name, asker):
            found.setdefault(hit.library.real, hit)
        return [*found.values()]

    def first(self, name: str, asker: LibraryFile | None = None) -> Hit | None:
        """The one that is loaded."""
        return next(self._search(name, asker), None)

    def elsewhere(self, name: str) -> list[LibraryFile]:
        """Files of this name on the disk that no search meets."""
        on_path = {hit.library.real for hit in self.all(name)}
        found = {
            library.real: library
            for library in self._snapshot.libraries
            if library.name == name and library.real not in on_path
        }
        return [*found.values()]

    def _search(self, name: str, asker: LibraryFile | None) -> Iterator[Hit]:
        for folder in self._snapshot.library_path:
            if folder.path and (library := self._by_path.get(f"{folder.path.rstrip('/')}/{name}")):
                yield Hit(library, "LD_LIBRARY_PATH")
        for part in _run_path(asker):
            if library := self._by_path.get(f"{part}/{name}"):
                yield Hit(library, "RUNPATH")
        for path in self._cache.get(name, ()):
            if library := self._by_path.get(path):
                yield Hit(library, "ld.so.cache")
        for standard in self._snapshot.standard:
            if library := self._by_path.get(f"{standard}/{name}"):
                yield Hit(library, "standard folder")


def _run_path(asker: LibraryFile | None) -> list[str]:
    if asker is None or asker.elf is None or not asker.elf.run_path:
        return []
    parts = [
        part.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", asker.folder).rstrip("/")
        for part in asker.elf.run_path.split(":")
    ]
    return [part for part in parts if part]
