"""Content hashes: what an image is made of, known before it is built.

A unit or a cell is built again only when its hash changes. Comments in a Dockerfile are not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from ortimg.core.stages import FINAL, closure, split_stages


class Unit(StrEnum):
    """What is built once and handed to many cells. The values are stage names of the Dockerfile."""

    CUDA = "cuda"
    ORT = "ort"
    VERIFIER = "ort-verify"
    STUB = "cuda-stub"


ARCHIVES = {Unit.CUDA: "cuda-archive", Unit.ORT: "ort-archive"}
UNIT_STAGES = frozenset(unit.value for unit in Unit)
BASE_STAGE = "base"
TOOLS_STAGE = "tools"


def unit_content(dockerfile: str, context: Mapping[str, str], unit: Unit, archive: str | None) -> str:
    """Hash of a unit: the text of its stages, the context files they mount, its archive's identity.

    `archive` is the sha256 of the archive or wheels; None for a unit that has none. The tools stage counts by
    its text alone: what it makes does not depend on which Python image it stands on.
    """
    replaced = frozenset({ARCHIVES[unit]}) if unit in ARCHIVES else frozenset()
    stages = closure(split_stages(dockerfile), unit.value, replaced)
    parts = [stage.text for stage in stages]
    for stage in stages:
        for source in stage.context:
            parts.extend(
                f"{path}\n{text}"
                for path, text in sorted(context.items())
                if path == source or path.startswith(f"{source}/")
            )
    return digest(*parts, archive or "")


def cell_content(dockerfile: str, units: Mapping[Unit, str], base: str) -> str:
    """Hash of an image: the text of its last stage, its units' hashes, its base's identity."""
    stages = split_stages(dockerfile)
    return digest(stages[FINAL].text, *(units[unit] for unit in Unit), base)


def digest(*parts: str) -> str:
    """sha256 in hex over the parts, each with its length, so that no two lists of parts collide."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(f"{len(data)}\n".encode())
        state.update(data)
    return state.hexdigest()
