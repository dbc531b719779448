"""`images.lock` on the disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ortimg.core.lock import Lock, dump, parse
from ortimg.reading import read_text

NAME = "images.lock"


def read_lock(folder: Path) -> Lock:
    """The lock beside `images.yaml`; an empty one where there is none. Raises `ConfigError`."""
    path = folder / NAME
    if not path.exists() and not path.is_symlink():
        return Lock()
    return parse(read_text(path, NAME), NAME)


def write_lock(folder: Path, lock: Lock) -> bool:
    """Write the lock if its text changed; tells whether it did. Readers never see half a file."""
    path, text = folder / NAME, dump(lock)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{NAME}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return True
