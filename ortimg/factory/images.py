"""The images behind a cell, and their names. Pure.

Units, bases and tools live in the engine under `localhost/ortimg/…`: a name that never leaves the machine.
The builder asks a name's registry first and the engine's own store second; nothing answers on localhost.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ortimg.core.content import BELOW, Unit, cell_content, digest, unit_content
from ortimg.core.model import Cell, Flavour, Origin
from ortimg.core.tags import UNITS
from ortimg.inputs.result import Fetched

PREFIX = UNITS


class Identities(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell's inputs are, and where they came from."""

    ort: str  # sha256 that names the archive's contents
    cuda: str
    base: str  # reference of an upstream image, or the sha256 of a bootstrapped root
    ort_origin: Origin
    cuda_origin: Origin
    base_origin: Origin
    headers: str | None = None  # flavour devel: sha256 that names the archive with the headers
    headers_origin: Origin | None = None

    @classmethod
    def of(cls, ort: Fetched, cuda: Fetched, base: Fetched, headers: Fetched | None = None) -> Identities:
        """What the inputs that were had say of themselves."""
        return cls(
            ort=ort.identity,
            cuda=cuda.identity,
            base=base.identity,
            ort_origin=ort.origin,
            cuda_origin=cuda.origin,
            base_origin=base.origin,
            headers=headers.identity if headers else None,
            headers_origin=headers.origin if headers else None,
        )

    @property
    def label(self) -> str:
        """Value of the label `ortimg.origin`."""
        return ",".join(f"{name}={origin}" for name, origin in self.origins.items())

    @property
    def origins(self) -> dict[str, str]:
        found = {
            "ort": self.ort_origin.value,
            "cuda": self.cuda_origin.value,
            "base": self.base_origin.value,
        }
        return found | ({"headers": self.headers_origin.value} if self.headers_origin else {})


class UnitImage(msgspec.Struct, frozen=True, kw_only=True):
    """A unit as an image `FROM scratch`, named by its content."""

    unit: Unit
    key: str  # "11.8-cudnn8", "1.16.2-cuda11.8-cudnn8"
    content: str  # sha256
    cell: Cell  # a cell that has it; its Dockerfile holds the text, the same in all

    @property
    def reference(self) -> str:
        return f"{PREFIX}/{self.unit.value}:{self.key}-{self.content[:16]}"


class CellImage(msgspec.Struct, frozen=True, kw_only=True):
    """A cell with all that its image is made of."""

    cell: Cell
    identities: Identities
    units: Mapping[Unit, UnitImage]
    content: str  # sha256


def cell_image(cell: Cell, identities: Identities, dockerfile: str, context: Mapping[str, str]) -> CellImage:
    """Work out the content of a cell and its units. `context`: path → text of the build context's files."""
    stack = cell.cuda_set.key
    archives: dict[Unit, tuple[str, str | None]] = {  # in the order in which they stand on each other
        Unit.CUDA: (stack, identities.cuda),
        Unit.ORT: (cell.unit_key, identities.ort),
        **({Unit.DEVEL: (cell.unit_key, identities.headers)} if cell.flavour is Flavour.DEVEL else {}),
        Unit.VERIFIER: ("verifier", None),
        Unit.STUB: ("verifier", None),
    }
    units: dict[Unit, UnitImage] = {}
    for unit, (key, archive) in archives.items():
        below = units[BELOW[unit]].content if unit in BELOW else None
        content = unit_content(dockerfile, context, unit, archive, below)
        units[unit] = UnitImage(unit=unit, key=key, content=content, cell=cell)
    content = cell_content(
        dockerfile, {unit: image.content for unit, image in units.items()}, identities.base
    )
    return CellImage(cell=cell, identities=identities, units=units, content=content)


def root_reference(name: str, identity: str) -> str:
    """Name of a bootstrapped root as an image: `base-debian12`, `tools`."""
    return f"{PREFIX}/{name}:{digest(identity)[:16]}"
