"""A folder: an unpacked root file system, or an unpacked release archive."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ortimg.comparing.gather import Found, Gatherer
from ortimg.errors import EnvironmentFault

_HEAD = 4  # bytes that tell an ELF file


def read_folder(root: Path) -> Found:
    """Everything of `root` that a comparison needs; links and other file systems are not entered.

    Raises EnvironmentFault where the folder cannot be read.
    """
    gatherer = Gatherer()
    seen: set[tuple[int, int]] = set()
    device = root.stat().st_dev

    def refused(error: OSError) -> None:
        if Path(error.filename) == root:
            raise EnvironmentFault(
                f"{root} cannot be read: {error.strerror}", "Run it as its owner or as root."
            )

    for folder, folders, files in os.walk(root, onerror=refused):
        inside = os.path.relpath(folder, root)
        prefix = "" if inside == "." else f"{inside}/"
        for name in list(folders):
            place = Path(folder, name)
            if place.is_symlink():
                gatherer.link(prefix + name, os.readlink(place))  # noqa: PTH115
            elif not os.access(place, os.X_OK) or place.stat().st_dev != device:
                folders.remove(name)
            else:
                gatherer.folder(prefix + name)
        for name in files:
            _file(gatherer, Path(folder, name), prefix + name, seen)
    return gatherer.found


def _file(gatherer: Gatherer, place: Path, path: str, seen: set[tuple[int, int]]) -> None:
    try:
        state = place.lstat()
        if stat.S_ISLNK(state.st_mode):
            gatherer.link(path, os.readlink(place))  # noqa: PTH115
            return
        if not stat.S_ISREG(state.st_mode):
            return
        identity = (state.st_dev, state.st_ino)
        size = 0 if identity in seen and state.st_nlink > 1 else state.st_size
        seen.add(identity)
        with place.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:  # gone meanwhile, or another's
        return
    gatherer.file(path, size, (lambda: place) if gatherer.wants(path, state.st_size, head) else None)
