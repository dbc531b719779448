"""What of the cache can go: what nothing planned needs, blobs without a name, leftovers of killed runs."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ortimg.core.model import Cell, Flavour, Origin
from ortimg.inputs import headers, maven, release, wheels
from ortimg.inputs.bootstrap import tools_name_of
from ortimg.inputs.cache import Cache
from ortimg.inputs.origins import base_name, repacked_wheel_name

# A run moves a blob to its place, then writes its name: a younger blob may get one yet.
GRACE = 60.0  # seconds
_JUDGED = ("ort/", "wheels/", "base/", "headers/")
# What else lies below the root: Maven's plug-ins, logs of builds, the compiled verifier.
_MORE = ("m2", "logs", "verifier")

Pins = Mapping[str, frozenset[str] | None]  # name in the cache → hashes that would be taken; None: any


class StaleFile(msgspec.Struct, frozen=True, kw_only=True):
    """Something below the cache's root that can go."""

    name: str
    size: int  # bytes
    reason: str
    paths: tuple[Path, ...]  # what is removed for it


def needed(cells: Sequence[Cell], tools_requirements: str | None) -> Pins:
    """Names that a build of `cells` would look for. `tools_requirements`: text; None: no tools are needed."""
    pins: dict[str, frozenset[str] | None] = {}
    for cell in cells:
        row = cell.release
        pins[release.name(row)] = None if row.sha256 is None else frozenset({row.sha256})
        pins[maven.name(row)] = None
        pins[repacked_wheel_name(row)] = None
        for wheel in (*cell.cuda_set.wheels, *cell.wheels):
            pins[wheels.name(wheel.filename)] = frozenset({wheel.sha256})
        pins |= dict.fromkeys(_root(base_name(cell.base, cell.flavour)))
        if cell.flavour is Flavour.DEVEL:
            pins[headers.name(row)] = None
    if tools_requirements is not None and cells:
        sha256 = hashlib.sha256(tools_requirements.encode()).hexdigest()
        pins |= dict.fromkeys(_root(tools_name_of(sha256)))
    return pins


def _root(name: str) -> tuple[str, str]:
    return name, f"{name}-packages"


def stale_entries(cache: Cache, pins: Pins, everything: bool = False) -> Iterator[StaleFile]:
    """Names that can go, with their blobs unless a kept name stands for the same. `everything`: all."""
    entries = {name: cache.peek(name) for name in cache.names()}
    reasons = {
        name: "asked for" if everything else _reason(cache, name, pins)
        for name, entry in entries.items()
        if entry is not None
    }
    kept = {entry.sha256 for name, entry in entries.items() if entry is not None and not reasons[name]}
    gone: set[str] = set()  # blobs that are counted already
    for name, entry in entries.items():
        index = cache.index_path(name)
        if entry is None:
            yield StaleFile(name=name, size=0, reason="broken, left by an earlier run", paths=(index,))
        elif reason := reasons[name]:
            blob = () if entry.sha256 in kept | gone else (cache.path(entry),)
            gone.add(entry.sha256)
            yield StaleFile(name=name, size=entry.size if blob else 0, reason=reason, paths=(index, *blob))


def _reason(cache: Cache, name: str, pins: Pins) -> str | None:
    """Why the entry `name` is stale; None: it is needed."""
    if name not in pins:
        # of other kinds nobody here can tell
        return "no cell of images.yaml needs it" if name.startswith(_JUDGED) else None
    entry, allowed = cache.peek(name), pins[name]
    if entry is not None and allowed is not None and entry.sha256 not in allowed:
        return "another file than the catalogue's pin"
    if entry is not None and entry.origin in (Origin.MAVEN, Origin.WHEEL) and name.startswith("ort/"):
        better = cache.peek(f"{name.rpartition('/')[0]}/upstream")
        taken = pins.get(better.name) if better else None
        if better is not None and (taken is None or better.sha256 in taken):
            return "the release archive itself is there"
    return None


def nameless_blobs(cache: Cache) -> Iterator[StaleFile]:
    """Blobs that no name stands for."""
    named = {entry.sha256 for name in cache.names() if (entry := cache.peek(name)) is not None}
    for path in sorted((cache.root / "blobs" / "sha256").glob("*")):
        stat = path.stat()
        if path.name not in named and time.time() - stat.st_ctime >= GRACE:
            name = f"sha256:{path.name[:16]}"
            yield StaleFile(name=name, size=stat.st_size, reason="no name stands for it", paths=(path,))


def leftovers(cache: Cache) -> Iterator[StaleFile]:
    """Unfinished work of runs that were killed."""
    for folder in cache.unfinished().dead:
        yield folder_row(cache, folder, "left by a run that was killed")


def extras(cache: Cache) -> Iterator[StaleFile]:
    """What else lies in the cache: tools that are made or fetched again when they are needed, logs."""
    for name in _MORE:
        if (cache.root / name).is_dir():
            yield folder_row(cache, cache.root / name, "asked for")


def busy(cache: Cache) -> bool:
    """Is another ortimg at work with this cache?"""
    return bool(cache.unfinished().alive)


def remove(cache: Cache, rows: Sequence[StaleFile]) -> None:
    """Remove the files of `rows`, names before blobs. Raises EnvironmentFault where the disk refuses."""
    with cache.guard():
        for row in rows:
            for path in row.paths:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)


def folder_row(cache: Cache, folder: Path, reason: str) -> StaleFile:
    """A whole folder of the cache."""
    # lstat: a link counts for itself; hard links into the blobs are counted with those
    files = [path.lstat() for path in folder.rglob("*")]
    size = sum(stat.st_size for stat in files if stat.st_nlink == 1)
    return StaleFile(name=str(folder.relative_to(cache.root)), size=size, reason=reason, paths=(folder,))
