"""One `ortimg prune`: what of the engine and of the cache can go, and its removal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from ortimg.core.lock import Lock
from ortimg.core.model import Cell
from ortimg.engine.cache import prune_cache
from ortimg.engine.client import Engine, Image
from ortimg.errors import EnvironmentFault
from ortimg.factory.run import TOOLS_REQUIREMENTS
from ortimg.factory.stale import (
    StaleImage,
    Wanted,
    cell_images,
    is_stale_record,
    stale_records,
    stale_units,
    wanted_images,
)
from ortimg.factory.stores import HANDED, layout_references, layouts_of
from ortimg.inputs.cache import Cache
from ortimg.inputs.stale import (
    busy,
    extras,
    folder_row,
    leftovers,
    nameless_blobs,
    needed,
    remove,
    stale_entries,
)
from ortimg.project import Project
from ortimg.rendering import build_context, render_project

SCHEMA = 1  # version of the JSON; more keys may come, none goes


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """How far to go beyond what is stale."""

    units: bool = False  # units, bases and tools that builds would use
    cache: bool = False  # the whole cache of inputs
    images: bool = False  # the built cells
    dry_run: bool = False


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that went, or would go."""

    kind: str  # image, builder, cache
    name: str
    bytes: int
    reason: str


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that could have gone, and why it did not."""

    name: str
    reason: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune came to."""

    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]
    engine_fault: str | None  # why the engine was left out
    dry_run: bool

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.removed)

    def as_data(self) -> dict[str, object]:
        """The stable JSON."""
        return {
            "schema": SCHEMA,
            "dry_run": self.dry_run,
            "bytes": self.bytes,
            "removed": [msgspec.to_builtins(row) for row in self.removed],
            "kept": [msgspec.to_builtins(row) for row in self.kept],
            "engine": self.engine_fault,
        }


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What the project needs, whose absence makes everything stale."""

    repository: str | None
    cells: tuple[Cell, ...]
    files: Mapping[str, str]  # path → text of all generated files
    lock: Lock

    @classmethod
    def of(cls, project: Project, lock: Lock) -> Needs:
        """The needs of a planned project."""
        return cls(
            repository=project.plan.repository,
            cells=project.plan.cells,
            files=render_project(project, lock),
            lock=lock,
        )


def prune(needs: Needs, cache: Cache, engine: Engine, scope: Scope) -> Report:
    """Give the disk back. An engine that does not answer is left out, and said.

    Raises EnvironmentFault where another ortimg is at work with the cache: it needs what would go.
    """
    if not scope.dry_run and busy(cache):
        raise EnvironmentFault(
            f"another ortimg is at work with the cache {cache.root}",
            "wait until it is done; --dry-run shows meanwhile what could go",
        )
    tools = needs.files.get(str(TOOLS_REQUIREMENTS))
    removed: list[Removed] = []
    kept: list[Kept] = []
    fault = None
    try:
        stale = _images(needs, cache, engine, scope, tools)
        removed, kept = _prune_engine(engine, stale, scope)
    except EnvironmentFault as error:
        fault = error.message
    removed += _prune_layouts(needs, cache, scope, tools)
    removed += _prune_cache(needs, cache, scope, tools)
    return Report(removed=tuple(removed), kept=tuple(kept), engine_fault=fault, dry_run=scope.dry_run)


def _images(needs: Needs, cache: Cache, engine: Engine, scope: Scope, tools: str | None) -> list[StaleImage]:
    wanted = _wanted(needs, cache, tools)
    stale = [*stale_units(engine, wanted, scope.units)]
    if scope.images and needs.repository is not None:
        stale += cell_images(engine, needs.repository)
    return stale


def _wanted(needs: Needs, cache: Cache, tools: str | None) -> Wanted:
    sha256 = hashlib.sha256((tools or "").encode()).hexdigest()
    return wanted_images(needs.cells, needs.files, build_context(needs.files), cache, needs.lock, sha256)


def _prune_layouts(needs: Needs, cache: Cache, scope: Scope, tools: str | None) -> list[Removed]:
    """Units that are kept as OCI layouts for builders elsewhere, and images that were handed to them."""
    folder = layouts_of(cache)
    if not folder.is_dir():
        return []
    wanted = _wanted(needs, cache, tools)
    rows = [
        folder_row(cache, path, "asked for" if scope.units else "no cell of images.yaml needs it")
        for reference, path in layout_references(folder)
        if scope.units or reference not in wanted
    ]
    rows += [
        folder_row(cache, path, "left by a run that was killed") for path in folder.glob(".unfinished-*")
    ]
    if scope.units and (folder / HANDED).is_dir():
        rows.append(folder_row(cache, folder / HANDED, "asked for"))
    if not scope.dry_run:
        remove(cache, rows)
    return [Removed(kind="cache", name=row.name, bytes=row.size, reason=row.reason) for row in rows]


def _prune_engine(
    engine: Engine, stale: Sequence[StaleImage], scope: Scope
) -> tuple[list[Removed], list[Kept]]:
    users = engine.images_in_use()
    free = [row for row in stale if row.image.id not in users]
    kept = [
        Kept(name=row.name, reason=f"used by the container {', '.join(users[row.image.id])}")
        for row in stale
        if row.image.id in users
    ]
    sizes = _own_bytes(engine, free)
    removed = []
    for row in free:
        if scope.dry_run or engine.remove(row.name):
            size = sizes.pop(row.image.id, 0)  # counted once, however many names it has
            removed.append(Removed(kind="image", name=row.name, bytes=size, reason=row.reason))
        else:
            kept.append(Kept(name=row.name, reason="the engine says that it is in use"))
    records = stale_records(engine, scope.units)
    if records:
        size = sum(record.size for record in records if not record.shared)
        if not scope.dry_run:
            size = prune_cache(engine, lambda record: is_stale_record(record, scope.units))
        reason = "asked for" if scope.units else "only steps of units, or no image holds them any more"
        name = f"{len(records)} records of the builder"
        removed.append(Removed(kind="builder", name=name, bytes=size, reason=reason))
    return removed, kept


def _own_bytes(engine: Engine, rows: Sequence[StaleImage]) -> dict[str, int]:
    """Image id → unpacked bytes of the layers that no image holds any more when `rows` are gone.

    A layer that several of them share is counted for the first.
    """
    names = {row.name for row in rows}
    staying: list[Image] = [image for image in engine.images() if not names.issuperset(image.references)]
    held = {layer for image in staying for layer in image.layers}
    sizes: dict[str, int] = {}
    for row in rows:
        if row.image.id in sizes or any(image.id == row.image.id for image in staying):
            continue
        own = {layer for layer in engine.layers(row.image.id) if layer.diff_id not in held}
        sizes[row.image.id] = sum(layer.size for layer in own)
        held.update(layer.diff_id for layer in own)
    return sizes


def _prune_cache(needs: Needs, cache: Cache, scope: Scope, tools: str | None) -> list[Removed]:
    rows = [
        *leftovers(cache),
        *stale_entries(cache, needed(needs.cells, tools), scope.cache),
        *nameless_blobs(cache),
        *(extras(cache) if scope.cache else ()),
    ]
    if not scope.dry_run:
        remove(cache, rows)
    return [Removed(kind="cache", name=row.name, bytes=row.size, reason=row.reason) for row in rows]
