"""Which cells a question is about: all that can exist, or some, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import msgspec

from ortimg.core.catalogue import Index
from ortimg.core.cudnn import NO_CUDNN
from ortimg.core.drivers import minor_of
from ortimg.core.host_facts import HostFacts
from ortimg.core.model import Cell, Flavour
from ortimg.core.nvidia_images import NoImage, find_image
from ortimg.core.rules import Refusal, Rules, unsure
from ortimg.errors import ConfigError


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the cells must be of; None: anything."""

    ort: str | None = None
    cuda: str | None = None  # "12.2", "12.2.2" or "12"
    cudnn: str | None = None
    base: str | None = None

    def matches(self, cell: Cell) -> bool:
        return (
            self.ort in (None, cell.release.version)
            and (self.cuda is None or self._cuda(cell.cuda_set.cuda))
            and self.cudnn in (None, cell.cuda_set.cudnn)
            and self.base in (None, cell.base.name)
        )

    def _cuda(self, cuda: str) -> bool:
        wished = self.cuda or ""
        return minor_of(wished) == cuda if "." in wished else cuda.startswith(f"{wished}.")

    def __str__(self) -> str:
        named = {"ONNX Runtime": self.ort, "CUDA": self.cuda, "cuDNN": self.cudnn, "base": self.base}
        return ", ".join(f"{name} {value}" for name, value in named.items() if value is not None)


def every_cell(index: Index, rules: Rules, cudnn: str | None = None) -> tuple[Cell, ...]:
    """Every runtime cell that the catalogue can make, newest version first.

    Cells without cuDNN are there only where `cudnn` asks for them: they are no answer to other questions.
    """
    cells: list[Cell] = []
    catalogue = index.catalogue
    left_out = cudnn == NO_CUDNN
    pairs = [*dict.fromkeys((row.cuda, NO_CUDNN if left_out else row.cudnn) for row in catalogue.cuda_sets)]
    for version, (cuda, wished), base in product(reversed(index.versions()), pairs, catalogue.bases):
        found = rules.resolve(version, cuda, wished, base.name)
        if not isinstance(found, Refusal):
            release, cuda_set, row = found
            cells.append(Cell(release=release, cuda_set=cuda_set, base=row, flavour=Flavour.RUNTIME))
    return tuple(cells)


def wished(
    cells: Sequence[Cell], wish: Wish, *, index: Index, rules: Rules, facts: HostFacts, whole: bool
) -> tuple[Cell, ...]:
    """The cells that match. Raises ConfigError with the reason where none does, and what would.

    `whole`: `cells` are all of the catalogue, not those of images.yaml.
    """
    if found := tuple(cell for cell in cells if wish.matches(cell)):
        return found
    if problem := _wrong_word(wish, index, rules):
        raise ConfigError(problem)
    if not whole and any(wish.matches(cell) for cell in every_cell(index, rules, wish.cudnn)):
        raise ConfigError(
            f"images.yaml has no cell with {wish}", hint="`ortimg fit --all` asks about the whole catalogue."
        )
    raise ConfigError(_impossible(wish, index, rules, facts))


def _wrong_word(wish: Wish, index: Index, rules: Rules) -> str | None:
    """What is wrong with one of the words alone."""
    for axis, value in (("ort", wish.ort), ("cuda", wish.cuda), ("cudnn", wish.cudnn), ("base", wish.base)):
        if value is None or (axis == "cuda" and value.isdecimal()):
            continue
        if fault := rules.alone(axis, value):
            ort = wish.ort or index.versions()[-1]
            nearest = rules.nearest(ort, wish.cuda or "", wish.cudnn or "", wish.base or "")
            return fault.reason + (f"; nearest cell: {nearest}" if nearest else "")
    return None


def _impossible(wish: Wish, index: Index, rules: Rules, facts: HostFacts) -> str:
    """Why nothing is of all the words at once, the nearest cell, and whether NVIDIA has an image of it."""
    sets = index.catalogue.cuda_sets
    cuda = wish.cuda
    if cuda is not None and cuda.isdecimal():
        cuda = next((row.cuda for row in sets if row.cuda.startswith(f"{cuda}.")), f"{cuda}.0")
    versions = [wish.ort] if wish.ort else [*reversed(index.versions())]
    cudas = [cuda] if cuda else [row.cuda for row in sets]
    cudnns = [wish.cudnn] if wish.cudnn else [*dict.fromkeys(row.cudnn for row in sets)]
    base = wish.base or next(row.name for row in index.catalogue.bases if row.glibc)
    refused: list[tuple[int, str, tuple[str, str, str]]] = []
    for version, one, cudnn in product(versions, cudas, cudnns):
        found = rules.resolve(version, one, cudnn, base)
        if isinstance(found, Refusal):
            refused.append((_oddness(version, one, cudnn, index), found.reason, (version, one, cudnn)))
    _, reason, words = min(refused, key=lambda row: row[0])
    nearest = rules.nearest(*words, base)
    text = f"no cell has {wish}: {reason}" + (f"; nearest cell: {nearest}" if nearest else "")
    if wish.cuda and "." in wish.cuda and wish.cudnn and wish.cudnn.isdecimal():
        image = find_image(facts.images, wish.cuda, wish.cudnn, "ubuntu22.04")
        if isinstance(image, NoImage):
            text += f"; NVIDIA has no image of it either: {image.reason}"
    return text


def _oddness(version: str, cuda: str, cudnn: str, index: Index) -> int:
    """How far a combination is from one that makes sense: the nearest has the reason worth telling."""
    release = index.release(version, int(cuda.partition(".")[0]))
    if release is None:
        return 4
    return 2 * (str(release.cudnn_major) != cudnn) + (unsure(release) is not None)
