"""Images of the cells in the engine, if one answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ortimg.core.model import Cell, Tier
from ortimg.core.report_facts import ImageFact, LayerFact
from ortimg.core.tags import UNITS
from ortimg.engine.client import Engine, Image
from ortimg.errors import CheckFailed, EnvironmentFault
from ortimg.records.record import Record, best_tier

_LABEL = "ortimg.identifier"
_TIERS = {tier.value: tier for tier in Tier}


class EngineImages:
    """Reads images; what an image's labels say is held to be anybody's word."""

    def __init__(self, repository: str, records: Sequence[Record]) -> None:
        self._repository = repository
        self._records = records

    def read(self, cells: Sequence[Cell]) -> tuple[dict[str, ImageFact], str | None]:
        """Images by identifier, and why no engine answered; an image that goes meanwhile is not there."""
        engine = Engine()
        try:
            names = {
                name: image
                for image in engine.images(reference=f"{self._repository}:*")
                for name in image.references
            }
            units = _units(engine)
            found = {}
            for cell in cells:
                image = names.get(f"{self._repository}:{cell.identifier}")
                # Somebody else's image of that name is not the cell's.
                if image is not None and image.labels.get(_LABEL) == cell.identifier:
                    fact = self._fact(engine, image, units)
                    if fact is not None:
                        found[cell.identifier] = fact
        except EnvironmentFault as error:
            return {}, error.message
        return found, None

    def _fact(self, engine: Engine, image: Image, units: dict[str, str]) -> ImageFact | None:
        from docker.errors import APIError

        try:
            layers = engine.layers(image.id)
        except (APIError, CheckFailed):
            return None
        tier = best_tier(image.labels.get("ortimg.tier"), image.digest, self._records)
        return ImageFact(
            digest=image.digest,
            tier=_TIERS.get(tier or ""),
            created=read_time(image.created),
            origins=read_origins(image.labels.get("ortimg.origin", "")),
            layers=tuple(
                LayerFact(diff_id=layer.diff_id, size=layer.size, unit=units.get(layer.diff_id))
                for layer in layers
            ),
        )


def _units(engine: Engine) -> dict[str, str]:
    """Layer → what it holds, by the units and bases of this engine: the highest layer is a unit's own."""
    found: dict[str, str] = {}
    for image in engine.images(reference=f"{UNITS}/*"):
        for reference in sorted(image.references):
            if reference.startswith(f"{UNITS}/") and image.layers:
                found[image.layers[-1]] = unit_name(reference)
    return found


def unit_name(reference: str) -> str:
    """`localhost/ortimg/cuda:11.8-cudnn8-590fd6fcbd75f988` as `cuda 11.8-cudnn8`."""
    name, _, tag = reference.removeprefix(f"{UNITS}/").partition(":")
    kind, _, key = name.partition("-")
    if kind == "base":
        return f"base {key}"
    stem = tag.rpartition("-")[0]
    return f"{name} {stem}".strip()


def read_origins(label: str) -> dict[str, str]:
    """`ort=maven,cuda=wheel` as a mapping; anything else is nothing."""
    pairs = (part.partition("=") for part in label.split(","))
    return {name: origin for name, equals, origin in pairs if equals and name and origin}


def read_time(text: str) -> datetime | None:
    """A time as engines and release hosts write it; None for anything else, and for year 1."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None and found.year > 1 else None
