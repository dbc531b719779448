"""Documents of images: gathers, puts together, writes as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum

from ortimg import __version__
from ortimg.core.lock import DEFAULT_EPOCH, Lock
from ortimg.core.model import Cell
from ortimg.core.sbom import Bom, missing_libraries, own_components
from ortimg.engine.client import Engine, Image
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault
from ortimg.inputs.cache import Cache
from ortimg.sbom.gather import gather
from ortimg.sbom.syft import NOT_SCANNED, distro_packages, syft_program

TOOL = f"ortimg {__version__}"


class Format(StrEnum):
    """How a document is written."""

    SPDX = "spdx-json"
    CYCLONEDX = "cyclonedx-json"

    @property
    def suffix(self) -> str:
        """Of a file's name, as the two projects ask for it."""
        return {Format.SPDX: ".spdx.json", Format.CYCLONEDX: ".cdx.json"}[self]

    @property
    def media_type(self) -> str:
        """Of an OCI referrer: https://www.iana.org/assignments/media-types/"""
        return {Format.SPDX: "application/spdx+json", Format.CYCLONEDX: "application/vnd.cyclonedx+json"}[
            self
        ]


def writer(wanted: Format) -> Callable[[Bom], str]:
    """What writes a document. Raises EnvironmentFault where its library is not installed."""
    try:
        if wanted is Format.SPDX:
            from ortimg.core.sbom_spdx import to_spdx as write
        else:
            from ortimg.core.sbom_cyclonedx import to_cyclonedx as write
    except ImportError as error:
        raise EnvironmentFault(
            f"{wanted.value} needs the package {error.name}",
            "Install ortimg with its extra sbom: in a clone, pip install '.[sbom]'",
        ) from error
    return lambda bom: write(bom, TOOL)


def make_bom(
    engine: Engine,
    image: Image,
    reference: str,
    cell: Cell,
    lock: Lock,
    cache: Cache,
    pushed: tuple[str, str] | None = None,
) -> Bom:
    """The bill of materials of the image `reference` of `cell`.

    `pushed`: repository and digest in a registry; the engine's own if they are left out. Raises CheckFailed
    where the image is not what the cell says, EnvironmentFault where syft fails.
    """
    found = gather(engine, image, reference, cell, cache)
    if missing := missing_libraries(cell, found):
        raise CheckFailed(
            f"{reference} lacks {', '.join(missing)}: it was not built from this images.yaml",
            "`ortimg build` makes it anew",
        )
    components, notes = own_components(cell, lock, found), []
    if (program := syft_program()) is None:
        notes.append(NOT_SCANNED)
    else:
        with engine.folders(reference) as read:
            components += distro_packages(read, cache, program)
    repository, digest = pushed or (reference.rpartition(":")[0], image.digest or image.id)
    return Bom(
        repository=repository,
        identifier=cell.identifier,
        digest=digest,
        epoch=_epoch(lock),
        components=components,
        notes=tuple(notes),
    )


def _epoch(lock: Lock) -> int:
    if text := os.environ.get("SOURCE_DATE_EPOCH"):
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"SOURCE_DATE_EPOCH is {text!r}: it is a number of seconds") from None
    return DEFAULT_EPOCH if lock.epoch is None else lock.epoch
