"""Cells → docker-bake.json, for people who build with `docker buildx bake` alone.

https://docs.docker.com/build/bake/reference/
"""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.core.content import BELOW, Unit
from ortimg.core.model import Cell, Flavour

CONTEXT = "dockerfiles"


def bake_file(repository: str, cells: Sequence[Cell]) -> dict[str, object]:
    """One target a cell. Heavy units are targets of their own, so that each is made once for all cells."""
    targets: dict[str, object] = {}
    for cell in cells:
        units = _units(cell)
        for unit, name in units.items():
            below = BELOW.get(unit)
            targets.setdefault(
                name,
                {
                    "context": CONTEXT,
                    "dockerfile": f"{cell.identifier}/Dockerfile",
                    "target": unit.value,
                    **({"contexts": {below.value: f"target:{units[below]}"}} if below else {}),
                    # Without this each unit would be exported as an image of its own.
                    "output": ["type=cacheonly"],
                },
            )
    for cell in cells:
        targets[target_name(cell.identifier)] = {
            "context": CONTEXT,
            "dockerfile": f"{cell.identifier}/Dockerfile",
            "contexts": {unit.value: f"target:{name}" for unit, name in _units(cell).items()},
            "tags": [f"{repository}:{tag}" for tag in (cell.identifier, *cell.tags)],
        }
    return {
        "group": {"default": {"targets": [target_name(cell.identifier) for cell in cells]}},
        "target": targets,
    }


def target_name(identifier: str) -> str:
    """Bake's target names take no dots."""
    return identifier.replace(".", "_")


def _units(cell: Cell) -> dict[Unit, str]:
    """Unit → the bake target that makes it."""
    stack = cell.cuda_set.key
    return {
        Unit.CUDA: target_name(f"cuda-{stack}"),
        Unit.ORT: target_name(f"ort-{cell.unit_key}"),
        **({Unit.DEVEL: target_name(f"ort-devel-{cell.unit_key}")} if cell.flavour is Flavour.DEVEL else {}),
        Unit.VERIFIER: "ort-verify",
    }
