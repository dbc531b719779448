"""Folders of unfinished work in the cache: whose run lives still, and whose was killed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec


class Unfinished(msgspec.Struct, frozen=True):
    """Folders of unfinished work."""

    dead: tuple[Path, ...]  # their process has ended
    alive: tuple[Path, ...]


def unfinished(tmp: Path) -> Unfinished:
    """Whose process lives still: it holds a lock on the file `owner`."""
    dead, alive = [], []
    for folder in sorted(tmp.glob("*.part")):
        try:
            descriptor = os.open(folder / "owner", os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # killed between the two steps of `workdir`
            dead.append(folder)
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            dead.append(folder)
        except OSError:
            alive.append(folder)
        finally:
            os.close(descriptor)
    return Unfinished(tuple(dead), tuple(alive))
