"""What a run has measured so far, so that an interrupted one goes on where it ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

_T = TypeVar("_T")


class State:
    """A folder with one file a step that has ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clear(self) -> None:
        """Forget everything."""
        for path in self._folder.glob("*.json"):
            path.unlink()

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def read(self, name: str, kind: type[_T]) -> _T | None:
        """What the step gave; None: it has not ended."""
        try:
            return msgspec.json.decode(self._path(name).read_bytes(), type=kind)
        except FileNotFoundError:
            return None

    def keep(self, name: str, value: _T) -> _T:
        """Write what a step gave, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = self._path(name).with_suffix(".unfinished")
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1))
        unfinished.replace(self._path(name))
        return value

    def once(self, name: str, kind: type[_T], work: Callable[[], _T]) -> _T:
        """What the step gave in this run or an earlier one."""
        found = self.read(name, kind)
        return self.keep(name, work()) if found is None else found

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
