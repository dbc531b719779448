"""Content hashes: what an image is made of, known before it is built.

A unit or a cell is built again only when its hash changes. Comments in a Dockerfile are not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from ortimg.core.problems import quote
from ortimg.core.stages import FINAL, closure, split_stages, stage_names


class Unit(StrEnum):
    """What is built once and handed to many cells. The values are stage names of the Dockerfile."""

    CUDA = "cuda"
    ORT = "ort"
    DEVEL = "ort-devel"
    VERIFIER = "ort-verify"
    STUB = "cuda-stub"


ARCHIVES = {Unit.CUDA: "cuda-archive", Unit.ORT: "ort-archive", Unit.DEVEL: "headers-archive"}
BELOW = {Unit.ORT: Unit.CUDA, Unit.DEVEL: Unit.ORT}  # unit → the unit that it stands on
COMPILED = frozenset({Unit.VERIFIER, Unit.STUB})
BASE_STAGE = "base"
TOOLS_STAGE = "tools"


def stage_fault(dockerfile: str, devel: bool) -> str | None:
    """What a Dockerfile of changed templates lacks for `ortimg build`, which goes by the names of stages."""
    units = [unit.value for unit in Unit if devel or unit is not Unit.DEVEL]
    stages = stage_names(dockerfile)
    for name in (*units, BASE_STAGE):
        if name not in stages:
            return f"no stage {quote(name)}: `ortimg build` makes it once for all; keep `FROM … AS {name}`"
    if FINAL not in stages:
        return "no stage without a name: the image is the last `FROM`, which has no `AS`"
    return None


def unit_content(
    dockerfile: str, context: Mapping[str, str], unit: Unit, archive: str | None, below: str | None = None
) -> str:
    """Hash of a unit: the text of its stages, the context files they mount, its archive's identity.

    `archive` is the sha256 of the archive or wheels; None for a unit that has none. `below` is the hash of
    the unit that it stands on. The tools stage counts only where it compiles: what is unpacked is the same
    with any Python.
    """
    handed = (ARCHIVES.get(unit), BELOW.get(unit), None if unit in COMPILED else TOOLS_STAGE)
    replaced = frozenset(name for name in handed if name)
    stages = closure(split_stages(dockerfile), unit.value, replaced)
    parts = [stage.text for stage in stages]
    for stage in stages:
        for source in stage.context:
            parts.extend(
                f"{path}\n{text}"
                for path, text in sorted(context.items())
                if path == source or path.startswith(f"{source}/")
            )
    return digest(*parts, archive or "", below or "")


def cell_content(dockerfile: str, units: Mapping[Unit, str], base: str) -> str:
    """Hash of an image: the texts of its last stage and its base's, its units' hashes, its base."""
    stages = split_stages(dockerfile)
    texts = (stages[FINAL].text, stages[BASE_STAGE].text)
    return digest(*texts, *(units[unit] for unit in Unit if unit in units), base)


def base_content(dockerfile: str, base: str) -> str:
    """Hash of a base with packages, where the engine itself adds them to the image `base`."""
    return digest(split_stages(dockerfile)[BASE_STAGE].text, base)


def digest(*parts: str) -> str:
    """sha256 in hex over the parts, each with its length, so that no two lists of parts collide."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(f"{len(data)}\n".encode())
        state.update(data)
    return state.hexdigest()
