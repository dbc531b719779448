"""Which images share which layers, as a picture. Pure.

A column is a distinct layer, as wide as it is heavy; a row is an image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ortimg.core.report_facts import ImageFact, LayerFact
from ortimg.core.report_words import amount

WIDTH = 1000.0  # of the picture, in its own units
_LEAST = 1.5  # width of a block that would be too thin to see
_SMALL = 0.002  # layers below this share of all bytes are no block: text and caches of a few kB
_KINDS = ("cuda", "ort", "base")


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A layer in the picture of one image."""

    x: float
    width: float
    kind: str  # "cuda", "ort", "base", "other"
    label: str


class ImageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One image."""

    identifier: str
    blocks: tuple[Block, ...]
    total: str
    own: str  # in layers that no other image has
    spoken: str


class LayerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One distinct layer."""

    name: str
    kind: str
    size: str
    images: tuple[str, ...]  # identifiers
    diff_id: str


class LayerPicture(msgspec.Struct, frozen=True, kw_only=True):
    """Every image that is there."""

    rows: tuple[ImageRow, ...]
    layers: tuple[LayerRow, ...]  # those with a block, as the picture has them
    small: str  # what all the others come to
    once: str  # bytes of distinct layers
    apart: str  # bytes if every image had its own
    share: str  # the first in per cent of the second


def layer_picture(images: Mapping[str, ImageFact]) -> LayerPicture | None:
    """None where there is no image with a layer."""
    holders: dict[str, list[str]] = {}
    layers: dict[str, LayerFact] = {}
    for identifier, image in images.items():
        for layer in {layer.diff_id: layer for layer in image.layers}.values():
            holders.setdefault(layer.diff_id, []).append(identifier)
            layers.setdefault(layer.diff_id, layer)
    once = sum(layer.size for layer in layers.values())
    if not once:
        return None
    shown = sorted(
        (layer for layer in layers.values() if layer.size >= _SMALL * once),
        key=lambda layer: (_order(layer), -layer.size, layer.diff_id),
    )
    places = _places(shown)
    rest = [layer for layer in layers.values() if layer.diff_id not in places]
    apart = sum(_total(image) for image in images.values())
    return LayerPicture(
        rows=tuple(_row(identifier, image, places, holders) for identifier, image in images.items()),
        layers=tuple(
            LayerRow(
                name=_name(layer),
                kind=_kind(layer),
                size=amount(layer.size),
                images=tuple(holders[layer.diff_id]),
                diff_id=layer.diff_id,
            )
            for layer in shown
        ),
        small=f"{len(rest):,} smaller layers, {amount(sum(layer.size for layer in rest))} together",
        once=amount(once),
        apart=amount(apart),
        share=f"{100 * once / apart:.0f} %",
    )


def _places(shown: Sequence[LayerFact]) -> dict[str, tuple[float, float]]:
    widths = [float(layer.size) for layer in shown]
    scale = WIDTH / sum(widths) if widths else 0.0
    drawn = [max(width * scale, _LEAST) for width in widths]
    fit = WIDTH / sum(drawn) if drawn else 1.0
    places, x = {}, 0.0
    for layer, width in zip(shown, drawn, strict=True):
        places[layer.diff_id] = (round(x, 2), round(width * fit, 2))
        x += width * fit
    return places


def _row(
    identifier: str,
    image: ImageFact,
    places: Mapping[str, tuple[float, float]],
    holders: Mapping[str, Sequence[str]],
) -> ImageRow:
    own = sum(layer.size for layer in image.layers if len(holders[layer.diff_id]) == 1)
    blocks, spoken = [], []
    for layer in image.layers:
        if layer.diff_id not in places:
            continue
        x, width = places[layer.diff_id]
        others = len(holders[layer.diff_id]) - 1
        shared = f"shared with {others} more" if others else "in no other image"
        label = f"{_name(layer)}, {amount(layer.size)}, {shared}"
        blocks.append(Block(x=x, width=width, kind=_kind(layer), label=label))
        spoken.append(label)
    return ImageRow(
        identifier=identifier,
        blocks=tuple(blocks),
        total=amount(_total(image)),
        own=amount(own),
        spoken="; ".join(spoken),
    )


def _total(image: ImageFact) -> int:
    return sum(layer.size for layer in image.layers)


def _name(layer: LayerFact) -> str:
    return layer.unit or f"layer {layer.diff_id.removeprefix('sha256:')[:12]}"


def _kind(layer: LayerFact) -> str:
    first = (layer.unit or "").partition(" ")[0]
    return first if first in _KINDS else "other"


def _order(layer: LayerFact) -> int:
    kind = _kind(layer)
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
