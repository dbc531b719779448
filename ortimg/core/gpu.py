"""Which GPU code runs where.

Machine code (SASS) for X.Y runs on compute capability X.Z with Z ≥ Y, and on no other X. Portable code (PTX)
for X.Y is compiled by the driver, when it is first used, for anything from X.Y on. The suffix "a" ties either
to that very capability, the suffix "f" to its family.
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility,
https://docs.nvidia.com/cuda/parallel-thread-execution/#ptx-module-directives-target
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ortimg.core.model import GpuArchitectures

_SM = re.compile(r"([0-9]+)([0-9])([af]?)")
_WRITTEN = re.compile(
    r"(?:sm_?|compute_?|cc ?)?([0-9]{2,3})[af]?|(?:cc ?)?([0-9]{1,2})\.([0-9])", re.IGNORECASE
)


class Capability(NamedTuple):
    """Compute capability of a GPU: 8.9 is (8, 9)."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Architecture(NamedTuple):
    """Architecture that code was made for: "90a" is (9.0, "a")."""

    capability: Capability
    suffix: str


class Match(StrEnum):
    """How code comes to run on a GPU, best first."""

    NATIVE = "native"
    JIT = "jit"
    NONE = "none"


@lru_cache(maxsize=1_000)
def architecture(name: str) -> Architecture:
    """`90a` of a catalogue row. Raises ValueError."""
    match = _SM.fullmatch(name)
    if match is None:
        raise ValueError(f"no GPU architecture: {name!r}")
    return Architecture(Capability(int(match[1]), int(match[2])), match[3])


def is_architecture(name: str) -> bool:
    """Whether `name` is written as a catalogue row does: `89`, `90a`."""
    return _SM.fullmatch(name) is not None


def sm_order(name: str) -> tuple[Capability, str]:
    """Sorts `75` before `120`, and `90` before `90a`."""
    return architecture(name)


def read_capability(text: str) -> Capability | None:
    """The compute capability that a person wrote: `8.9`, `sm_89`, `sm_90a`, `89`; None: it is none."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        return None
    if match[2] is not None:
        return Capability(int(match[2]), int(match[3]))
    return Capability(int(match[1][:-1]), int(match[1][-1]))


@lru_cache(maxsize=100_000)
def match(code: GpuArchitectures, gpu: Capability) -> Match:
    """How `code` comes to run on `gpu`."""
    if any(_native(architecture(name), gpu) for name in code.sass):
        return Match.NATIVE
    if any(_portable(architecture(name), gpu) for name in code.ptx):
        return Match.JIT
    return Match.NONE


def _native(made: Architecture, gpu: Capability) -> bool:
    if made.suffix == "a":
        return made.capability == gpu
    return made.capability.major == gpu.major and made.capability.minor <= gpu.minor


def _portable(made: Architecture, gpu: Capability) -> bool:
    if made.suffix == "a":
        return made.capability == gpu
    if made.suffix == "f":
        return made.capability.major == gpu.major and made.capability.minor <= gpu.minor
    return made.capability <= gpu
