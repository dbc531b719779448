"""What was read in an image, kept in the cache: gigabytes go through the engine the first time only."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

import msgspec

from ortimg.comparing import gather, image, libraries
from ortimg.comparing.gather import Found
from ortimg.engine.client import Engine
from ortimg.inputs.cache import Cache, Say
from ortimg.measure import elf, fatbin

_READERS: tuple[ModuleType, ...] = (gather, image, libraries, elf, fatbin)
_ORIGIN = "image"
_FOLDER = "compare/"  # of the names in the cache


def read_image(engine: Engine, reference: str, cache: Cache, say: Say) -> Found:
    """Everything of the image `reference` that a comparison needs; nothing is run.

    It is kept under the image's id, as long as the modules that read it are the same.
    Raises EnvironmentFault where the engine has no such image.
    """
    there = engine.require(reference)
    name, code = f"{_FOLDER}{there.id.rpartition(':')[2]}", _code()
    entry = cache.get(name)
    if entry is not None and entry.details.get("code") == code:
        try:
            return msgspec.json.decode(cache.path(entry).read_bytes(), type=Found)
        except (OSError, msgspec.DecodeError):  # pruned meanwhile; of an older kind
            pass
    say(f"reading {reference}, {there.packed_size / 1e9:.1f} GB as stored: this is kept for the next time")
    found = image.read_files(engine, reference, cache)
    _forget(engine, cache)
    with cache.workdir() as work:
        place = work / "found.json"
        place.write_bytes(msgspec.json.encode(found))
        cache.adopt(name, place, sha256=None, origin=_ORIGIN, details={"code": code})
    return found


def _forget(engine: Engine, cache: Cache) -> None:
    """Drops what was kept of images that are gone."""
    for name in cache.names():
        if name.startswith(_FOLDER) and engine.inspect(f"sha256:{name.removeprefix(_FOLDER)}") is None:
            cache.drop(name)


def _code() -> str:
    digest = hashlib.sha256()
    for module in _READERS:
        digest.update(Path(str(module.__file__)).read_bytes())
    return digest.hexdigest()
