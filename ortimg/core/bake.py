"""Cells → docker-bake.json, for people who build with `docker buildx bake` alone.

https://docs.docker.com/build/bake/reference/
"""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.core.model import Cell

CONTEXT = "dockerfiles"


def bake_file(repository: str, cells: Sequence[Cell]) -> dict[str, object]:
    """One target a cell. Heavy units are targets of their own, so that each is made once for all cells."""
    targets: dict[str, object] = {}
    for cell in cells:
        for unit, name in _units(cell).items():
            targets.setdefault(
                name,
                {
                    "context": CONTEXT,
                    "dockerfile": f"{cell.identifier}/Dockerfile",
                    "target": unit,
                    # Without this each unit would be exported as an image of its own.
                    "output": ["type=cacheonly"],
                },
            )
    for cell in cells:
        targets[target_name(cell.identifier)] = {
            "context": CONTEXT,
            "dockerfile": f"{cell.identifier}/Dockerfile",
            "contexts": {unit: f"target:{name}" for unit, name in _units(cell).items()},
            "tags": [f"{repository}:{tag}" for tag in (cell.identifier, *cell.tags)],
        }
    return {
        "group": {"default": {"targets": [target_name(cell.identifier) for cell in cells]}},
        "target": targets,
    }


def target_name(identifier: str) -> str:
    """Bake's target names take no dots."""
    return identifier.replace(".", "_")


def _units(cell: Cell) -> dict[str, str]:
    """Stage of the Dockerfile → the bake target that makes it."""
    return {
        "cuda": target_name(f"cuda-{cell.cuda_set.key}"),
        "ort": target_name(f"ort-{cell.release.key}"),
        "ort-verify": "ort-verify",
    }
