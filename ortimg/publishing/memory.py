"""What earlier pushes learned, in the cache: repositories to mount from, layers that were packed anew.

Only a help: where the file is lost, a layer travels or is packed once more.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from ortimg.generated import write_atomically

_NAME = "published.json"
_KEPT = 20  # repositories a registry


class Repacked(msgspec.Struct, frozen=True, kw_only=True):
    """A layer that was packed anew."""

    digest: str
    size: int  # bytes


class _Facts(msgspec.Struct, kw_only=True):
    repositories: dict[str, list[str]] = {}  # registry → paths, the newest first
    repacked: dict[str, Repacked] = {}  # digest and method → what it became
    told: list[str] = []  # notices that were given


class Memory:
    """The file, read once; `save` writes what was added."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME
        self._lock = threading.Lock()
        try:
            self._facts = msgspec.json.decode(self._path.read_bytes(), type=_Facts)
        except (OSError, msgspec.DecodeError):
            self._facts = _Facts()

    def repositories(self, registry: str) -> tuple[str, ...]:
        """Repositories of a registry that were pushed to, the newest first."""
        return tuple(self._facts.repositories.get(registry, ()))

    def pushed_to(self, registry: str, path: str) -> None:
        with self._lock:
            rows = self._facts.repositories.setdefault(registry, [])
            self._facts.repositories[registry] = [path, *(row for row in rows if row != path)][:_KEPT]

    def repacked(self, digest: str, method: str) -> Repacked | None:
        return self._facts.repacked.get(f"{digest} {method}")

    def learn(self, digest: str, method: str, result: Repacked) -> None:
        with self._lock:
            self._facts.repacked[f"{digest} {method}"] = result

    def first_time(self, notice: str) -> bool:
        """Whether a notice was not given yet on this machine; it counts as given from now on."""
        with self._lock:
            if notice in self._facts.told:
                return False
            self._facts.told.append(notice)
            return True

    def save(self) -> None:
        """A disk that cannot take it costs a later push some time, and no error now."""
        try:
            write_atomically(self._path, msgspec.json.encode(self._facts).decode())
        except OSError:
            return
