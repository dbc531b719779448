"""Which contents an image of a cell may have, by what cache and lock know of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from ortimg.core.lock import Lock, OrtLock, Repacked
from ortimg.core.model import Cell, Flavour, Origin
from ortimg.core.render import dockerfile_path
from ortimg.factory.images import CellImage, Identities, cell_image
from ortimg.inputs import maven, release
from ortimg.inputs.cache import Cache
from ortimg.inputs.headers import name as headers_name
from ortimg.inputs.origins import base_name, repacked_wheel_name


def possible_contents(
    cell: Cell, files: Mapping[str, str], context: Mapping[str, str], cache: Cache, lock: Lock
) -> frozenset[str]:
    """Values that the label `ortimg.content` of an up-to-date image of the cell may have.

    Several, since each input has several origins. What no lock and no cache knows is not among them: a base
    that was bootstrapped elsewhere, or an archive without a hash.
    """
    bases = {cell.base.image}
    if (entry := cache.peek(base_name(cell.base, cell.flavour))) is not None:
        bases.add(entry.sha256)
    return frozenset(
        image.content
        for base in bases
        for image in possible_images(cell, base, files[dockerfile_path(cell)], context, cache, lock)
    )


def possible_images(
    cell: Cell, base: str, dockerfile: str, context: Mapping[str, str], cache: Cache, lock: Lock
) -> tuple[CellImage, ...]:
    """The cell on `base`, from each archive that it may be made of. Its origins are no news."""
    return tuple(
        cell_image(
            cell,
            Identities(
                ort=archive,
                cuda=" ".join(wheel.sha256 for wheel in cell.cuda_set.wheels),
                base=base,
                ort_origin=Origin.UPSTREAM,
                cuda_origin=Origin.WHEEL,
                base_origin=Origin.UPSTREAM,
                headers=headers,
            ),
            dockerfile,
            context,
        )
        for archive, headers in product(_archives(cell, cache, lock), _headers(cell, cache, lock))
    )


def _archives(cell: Cell, cache: Cache, lock: Lock) -> list[str]:
    """Identities that what ONNX Runtime is taken from may have, by cache and lock; "" where none is known."""
    if cell.wheels:
        return [" ".join(wheel.sha256 for wheel in cell.wheels)]
    row = cell.release
    locked = lock.ort.get(row.key, OrtLock())
    found = {locked.upstream, *(source.tar for source in (locked.maven, locked.wheel) if source)}
    for name in (release.name(row), maven.name(row), repacked_wheel_name(row)):
        if (entry := cache.peek(name)) is not None:
            found.add(entry.details.get("tar_sha256", entry.sha256))
    return sorted(identity for identity in found if identity) or [""]


def _headers(cell: Cell, cache: Cache, lock: Lock) -> list[str | None]:
    """The same for the headers of a devel cell; None: a cell without."""
    if cell.flavour is not Flavour.DEVEL:
        return [None]
    row = cell.release
    found = {lock.ort.get(row.key, OrtLock()).upstream, lock.headers.get(row.key, Repacked()).tar}
    for name in (release.name(row), headers_name(row)):
        if (entry := cache.peek(name)) is not None:
            found.add(entry.details.get("tar_sha256", entry.sha256))
    return [*sorted(identity for identity in found if identity)] or [""]
