"""What of the engine can go: unit, base and tools images that no cell needs, and records of the builder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ortimg.core.content import Unit, base_content
from ortimg.core.lock import Lock
from ortimg.core.model import Cell
from ortimg.core.render import dockerfile_path
from ortimg.engine.cache import CacheRecord, cache_records
from ortimg.engine.client import Engine, Image
from ortimg.factory import images
from ortimg.factory.contents import possible_images
from ortimg.factory.disk import is_intermediate
from ortimg.factory.images import root_reference
from ortimg.inputs.bootstrap import tools_name_of
from ortimg.inputs.cache import Cache
from ortimg.inputs.origins import base_name

# How the builder calls the steps of a cell's last stage (templates/stages/image.j2).
_STEP = r"^\[stage-\d+ \d+/\d+\] (?:LINK )?COPY --link "
_HEAVY_STEP = re.compile(_STEP + r"--from=(?:cuda|ort|ort-verify|base) / /$")
_CELL_STEP = re.compile(
    r"^mount / from exec .*(?:cat >/etc/ld\.so\.conf\.d/000-onnxruntime\.conf"
    r"|ldconfig && rm -f /var/cache/ldconfig/aux-cache|ort-verify --tier load)",
    re.DOTALL,
)


_FROM_ARCHIVE = (Unit.ORT, Unit.DEVEL)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """References that builds of the planned cells would use."""

    references: frozenset[str]
    prefixes: tuple[str, ...]  # of images whose full name cannot be known, since the cache forgot the input

    def __contains__(self, reference: str) -> bool:
        return reference in self.references or reference.startswith(self.prefixes)


class StaleImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image, or one name of it, that can go."""

    name: str  # reference, or the id of one that has none
    image: Image
    reason: str


def wanted_images(
    cells: Sequence[Cell],
    files: Mapping[str, str],
    context: Mapping[str, str],
    cache: Cache,
    lock: Lock,
    tools_sha256: str,
) -> Wanted:
    """Names of units, bases and tools of `cells`, whichever of the known origins their inputs come from.

    `files`: path → text of all generated files, `context` those of the build context; `tools_sha256`: of the
    tools' requirements.
    """
    references: set[str] = set()
    prefixes: set[str] = set()
    seen = set()
    for cell in cells:
        dockerfile = files[dockerfile_path(cell)]
        if cell.base.packages_for(cell.flavour):  # its name where the engine adds the packages itself
            pulled = base_content(dockerfile, cell.base.image)
            references.add(root_reference(f"base-{cell.base_key}", pulled))
        roots = {
            f"base-{cell.base_key}": base_name(cell.base, cell.flavour),
            "tools": tools_name_of(tools_sha256),
        }
        for name, entry_name in roots.items():
            if (entry := cache.peek(entry_name)) is not None:
                references.add(root_reference(name, entry.sha256))
            else:
                prefixes.add(f"{images.PREFIX}/{name}:")
        if (key := (cell.release.key, cell.cuda_set.key, cell.flavour)) in seen:
            continue
        seen.add(key)
        # no unit stands on the base
        for made in possible_images(cell, "", dockerfile, context, cache, lock):
            archive, headers = made.identities.ort, made.identities.headers
            for unit in made.units.values():
                if unit.unit in _FROM_ARCHIVE and not (archive and (headers or unit.unit is Unit.ORT)):
                    prefixes.add(unit.reference.removesuffix(unit.content[:16]))
                else:
                    references.add(unit.reference)
    return Wanted(references=frozenset(references), prefixes=tuple(sorted(prefixes)))


def stale_units(engine: Engine, wanted: Wanted, everything: bool = False) -> Iterator[StaleImage]:
    """Our own images that can go: units, bases, tools. `everything`: also those that are wanted."""
    for image in engine.images(reference=f"{images.PREFIX}/*"):
        for reference in image.references:
            if reference.startswith(f"{images.PREFIX}/"):
                if reference not in wanted:
                    yield StaleImage(name=reference, image=image, reason="no cell of images.yaml needs it")
                elif everything:
                    yield StaleImage(name=reference, image=image, reason="asked for")


def cell_images(engine: Engine, repository: str) -> Iterator[StaleImage]:
    """The built cells of a repository."""
    for image in engine.images(label="ortimg.identifier"):
        for reference in image.references:
            if reference.rpartition(":")[0] == repository:
                yield StaleImage(name=reference, image=image, reason="asked for")


def stale_records(engine: Engine, everything: bool = False) -> tuple[CacheRecord, ...]:
    """Records of the builder that can go: steps of units and roots, heavy layers that no image holds.

    `everything`: also the cells' other steps, with which a changed label is a matter of seconds.
    """
    return tuple(
        record
        for record in cache_records(engine)
        if not record.in_use and is_stale_record(record, everything)
    )


def is_stale_record(record: CacheRecord, everything: bool) -> bool:
    """Whether a record of the builder is ours and can go."""
    if is_intermediate(record):
        return True
    if _HEAVY_STEP.match(record.description):
        return everything or not record.shared
    return everything and _CELL_STEP.match(record.description) is not None
