"""The folder that a warm-up leaves: `warm.json` and `cache/`. From anywhere, so links are refused."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ortimg.core.problems import quote
from ortimg.core.warm import CACHE_PATH, HIGHEST_LIMIT, SEED_PATH, SUMMARY_PATH, Baked
from ortimg.core.warm_record import AGAIN, MAX_BYTES, Record, parse_record
from ortimg.errors import CheckFailed, ConfigError

RECORD = "warm.json"
CACHE = "cache"
SCRIPT = Path(__file__).with_name("warm.sh")
SEED = Path(__file__).with_name("seed.sh")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")  # the driver's own are hex numbers, and `index`
_MAX_FILES = 100_000
_MAX_DEPTH = 8
_TIME = 315532800  # 1980-01-01, the same for every file, so that one cache makes one layer


def read_record(folder: Path) -> Record:
    """The record in `folder`. Raises ConfigError where there is none, CheckFailed where it is not whole."""
    path = folder / RECORD
    hint = "Name the folder that `ortimg warm ROOT --out FOLDER` or warm.sh made."
    try:
        status = path.lstat()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint=hint) from None
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path} is no plain file", hint=hint)
    if status.st_size > MAX_BYTES:
        raise CheckFailed(f"{path} has {status.st_size} bytes: it is no record of a warm-up", AGAIN)
    return parse_record(path.read_bytes())


def look(folder: Path) -> Baked:
    """Files and bytes of the cache in `folder`.

    Raises CheckFailed for a cache that is empty, larger than CUDA reads, or holds anything but plain files
    and folders with plain names.
    """
    files = total = 0
    for _, size in _walk(folder / CACHE):
        files, total = files + 1, total + size
        if files > _MAX_FILES:
            raise CheckFailed(f"{folder / CACHE} has more than {_MAX_FILES} files: no compute cache", AGAIN)
    if total == 0:
        raise CheckFailed(f"{folder / CACHE} is empty: there is nothing to add to an image", AGAIN)
    if total > HIGHEST_LIMIT:
        raise CheckFailed(f"{folder / CACHE} has {total} bytes, and CUDA reads {HIGHEST_LIMIT} at the most")
    return Baked(files=files, bytes=total)


def lay_out(folder: Path, target: Path, summary: bytes, *, seed: bool) -> Baked:
    """Copies the cache to `target` as it lies in the image, with one owner, mode and time; what was copied.

    Raises CheckFailed as `look` does.
    """
    wanted = look(folder)
    cache = target / CACHE_PATH.lstrip("/")
    cache.mkdir(parents=True)
    total = 0
    for path, _ in _walk(folder / CACHE):
        copy = cache / path.relative_to(folder / CACHE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # The name may have become a link since it was looked at.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(number, "rb") as source, copy.open("xb") as out:
            shutil.copyfileobj(source, out)
        total += copy.stat().st_size
    if total != wanted.bytes:
        raise CheckFailed(f"{folder / CACHE} changes while it is read", "Wait until nothing writes to it.")
    (target / SUMMARY_PATH.lstrip("/")).write_bytes(summary)
    if seed:
        place = target / SEED_PATH.lstrip("/")
        place.parent.mkdir(parents=True)
        place.write_bytes(SEED.read_bytes())
        place.chmod(0o755)
    for path in sorted(target.rglob("*"), reverse=True):  # what is in a folder before the folder
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (_TIME, _TIME))
    target.chmod(0o755)
    os.utime(target, (_TIME, _TIME))
    return wanted


def _walk(folder: Path, depth: int = 0) -> Iterator[tuple[Path, int]]:
    """Plain files below `folder`, sorted, with their bytes. Raises for all that is not one, or a folder."""
    try:
        if depth == 0 and not stat.S_ISDIR(folder.lstat().st_mode):
            raise ConfigError(f"{folder} is no folder", hint="Name the folder that the warm-up made.")
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no folder {folder}", hint="Name the folder that the warm-up made."
        ) from None
    for entry in entries:
        where = f"{folder.name}/{entry.name}"
        if not _NAME.fullmatch(entry.name):
            raise CheckFailed(f"{quote(where)} in the cache is no name that CUDA gives a file", AGAIN)
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            if depth == _MAX_DEPTH:
                raise CheckFailed(f"{quote(where)}: folders in folders, which no compute cache has", AGAIN)
            yield from _walk(Path(entry.path), depth + 1)
        elif stat.S_ISREG(status.st_mode):
            yield Path(entry.path), status.st_size
        else:
            kind = "a link" if stat.S_ISLNK(status.st_mode) else "no plain file"
            raise CheckFailed(f"{quote(where)} in the cache is {kind}: a compute cache has none", AGAIN)
