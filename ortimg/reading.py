"""Reads files that a person wrote or may have changed, and tells what is wrong with one."""

from __future__ import annotations

from pathlib import Path

from ortimg.core.strict_yaml import decode
from ortimg.errors import ConfigError


def read_text(path: Path, name: str) -> str:
    """Text of `path`, which messages call `name`.

    Raises ConfigError where it cannot be read (a folder, a broken link, rights) or is not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        broken = path.is_symlink() and isinstance(error, FileNotFoundError)
        why = "a link to nothing" if broken else error.strerror
        raise ConfigError(f"{name} cannot be read: {why}", hint="Put a text file there.") from None
    return decode(raw, name)
