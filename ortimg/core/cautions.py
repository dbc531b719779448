"""What is worth a warning about a cell that can be built."""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.core.abi import stack_warning
from ortimg.core.cudnn import without_cudnn
from ortimg.core.model import Cell
from ortimg.core.toolkits import older_set


def cautions(cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """Warnings, each with the identifiers of the cells that it is about."""
    found: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        stack = stack_warning(cell.release, cell.base.glibc, cell.base.title)
        older = older_set(cell.release, cell.cuda_set)
        for text in (without_cudnn(cell.cuda_set), stack, older):
            if text:
                found[text] = (*found.get(text, ()), cell.identifier)
    return found
