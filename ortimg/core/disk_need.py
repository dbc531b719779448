"""How much disk a build of cells takes, estimated from measurements before anything is fetched."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ortimg.core.model import Cell, CudaSet, Wheel

PARALLEL_BUILDS = 2  # heavy steps are bound by disk and one core each

# Bytes of disk for each byte of a CUDA set's wheels, measured on the three sets for CUDA 11.8, 12.2 and 12.6.
CUDA_KEPT = 2.2  # the unit's image, packed (0.75) and unpacked (1.45)
CUDA_MEANWHILE = 4  # while it is built: the wheels as context, the libraries twice, on their way
ORT_KEPT = 800_000_000  # one ORT archive upon a CUDA set, packed and unpacked
CELL_KEPT = 250_000_000  # a base, unpacked above its cell's stack
ROOTS_KEPT = 1_800_000_000  # tools and bases


def engine_need(cells: Sequence[Cell], there: Collection[str] = ()) -> int:
    """Bytes that the engine needs at the most while it builds `cells`.

    `there`: what it has already, by the keys of CUDA sets and of ONNX Runtime units.
    """
    sets = [row for row in cuda_sets(cells) if row.key not in there]
    units = {cell.unit_key for cell in cells} - {*there}
    new_sets = sorted(_size(row.wheels) for row in sets)
    roots = ROOTS_KEPT if new_sets or units else 0
    kept_sets = int(CUDA_KEPT * sum(new_sets))
    kept = roots + kept_sets + ORT_KEPT * len(units) + CELL_KEPT * len(cells)
    meanwhile = CUDA_MEANWHILE * sum(new_sets[-PARALLEL_BUILDS:])
    if len(cuda_sets(cells)) == 1:  # all else stands on it, so it is made before anything else takes room
        return max(roots + kept_sets + meanwhile, kept)
    return kept + meanwhile


def download_need(cells: Sequence[Cell]) -> int:
    """Bytes of the archives and wheels of `cells`, as far as their sizes are known."""
    archives = {cell.ort_key: _size(cell.wheels) if cell.wheels else cell.release.size or 0 for cell in cells}
    return sum(archives.values()) + sum(_size(row.wheels) for row in cuda_sets(cells))


def cuda_sets(cells: Sequence[Cell]) -> list[CudaSet]:
    """The CUDA sets of `cells`, each once, in their order."""
    return [*{cell.cuda_set.key: cell.cuda_set for cell in cells}.values()]


def _size(wheels: Sequence[Wheel]) -> int:
    return sum(wheel.size for wheel in wheels)
