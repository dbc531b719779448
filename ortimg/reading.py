"""Reads files that a person wrote or may have changed, and tells what is wrong with one."""

from __future__ import annotations

import stat
from pathlib import Path

from ortimg.core.strict_yaml import decode
from ortimg.errors import ConfigError


def read_text(path: Path, name: str) -> str:
    """Text of `path`, which messages call `name`.

    Raises ConfigError where it cannot be read (a folder, a broken link, rights) or is not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # a pipe would wait for its writer
            raise ConfigError(f"{name} is no file but a pipe or a device", hint="Put a text file there.")
        raw = path.read_bytes()
    except OSError as error:
        broken = path.is_symlink() and isinstance(error, FileNotFoundError)
        why = "a link to nothing" if broken else error.strerror
        raise ConfigError(f"{name} cannot be read: {why}", hint="Put a text file there.") from None
    return decode(raw, name)
