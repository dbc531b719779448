"""A version or a cell, described from the catalogue alone: nothing is opened, and no network is needed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ortimg.core.catalogue import Index
from ortimg.core.compare_model import Headers, Side, Source
from ortimg.core.distance import nearest_version
from ortimg.core.linking import symbol_version
from ortimg.core.model import Cell, Confidence, OrtRelease, dlopened
from ortimg.core.problems import quote
from ortimg.core.versions import number
from ortimg.errors import ConfigError

VERSION = re.compile(r"(?P<version>[0-9]+(?:\.[0-9]+){1,3})(?:-cuda(?P<cuda>[0-9]+)(?:\.[0-9]+)*)?")
_UNSURE = (Confidence.INFERRED, Confidence.UNKNOWN)


def find_release(text: str, index: Index, like: int | None = None) -> tuple[OrtRelease, str | None]:
    """The row that `1.18.1` or `1.18.0-cuda12` means, and what was chosen for the user.

    A version may have an archive for more than one CUDA major: `like` is the one wished for, else the lowest
    that was seen is taken. Raises ConfigError with the nearest version.
    """
    match = VERSION.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{quote(text)} is no version of ONNX Runtime", hint="Write it as 1.18.1 or 1.18.0-cuda12."
        )
    version, cuda = match["version"], match["cuda"]
    rows = index.releases.get(version, ())
    if not rows:
        raise _unknown(version, index)
    if cuda is not None:
        row = index.release(version, int(cuda))
        if row is None:
            there = " and ".join(row.key for row in rows)
            raise ConfigError(
                f"ONNX Runtime {version} has no release archive for CUDA {cuda}", hint=f"There is {there}."
            )
        return row, None
    seen = [row for row in rows if row.asset_confidence is not Confidence.UNKNOWN] or [*rows]
    row = next((row for row in seen if row.cuda_major == like), seen[0])
    if len(rows) == 1:
        return row, None
    others = " or ".join(other.key for other in rows if other is not row)
    return row, f"{version} means {row.key} here; write {others} for the other archive"


def _unknown(version: str, index: Index) -> ConfigError:
    versions = index.versions()
    reason = index.no_assets.get(version)
    if reason is None:
        text = f"ONNX Runtime {version} is not in the catalogue"
    else:
        text = f"ONNX Runtime {version} has no release archive for Linux and GPUs ({reason})"
    newer = number(version) > number(versions[-1])
    nearest = versions[-1] if newer else nearest_version(version, versions)
    return ConfigError(
        f"{text}; nearest: {nearest}", hint=f"The catalogue has {versions[0]} to {versions[-1]}."
    )


def side_of_release(name: str, row: OrtRelease, notes: Sequence[str] = ()) -> Side:
    """What the catalogue says of a release archive; the CUDA libraries are the user's own."""
    return Side(
        name=name,
        source=Source.CATALOGUE,
        brings_cuda=False,
        ort=row.version,
        cuda=str(row.cuda_major),
        cudnn=str(row.cudnn_major),
        soname=row.soname,
        symbols=symbol_version(row),
        needed=None if row.needed_confidence is Confidence.UNKNOWN else row.needed,
        lazy=None if row.needed_confidence is Confidence.UNKNOWN else row.dlopened,
        gpu=None if row.gpu.confidence is Confidence.UNKNOWN else row.gpu,
        headers=Headers(version=int(row.version.split(".")[1]), functions=None),
        headers_from=f"the release archive {row.asset}",
        size=row.size,
        size_of="release archive",
        glibc=row.glibc,
        inferred=_inferred(row),
        notes=tuple(notes),
    )


def side_of_cell(name: str, cell: Cell) -> Side:
    """What the catalogue says of a cell: its release archive with its CUDA set."""
    release, cuda_set = cell.release, cell.cuda_set
    plain = side_of_release(name, release)
    return msgspec.structs.replace(
        plain,
        brings_cuda=True,
        cuda=cuda_set.cuda,
        cudnn=cuda_set.cudnn_version,
        has_library=cell.flavour.python is None,
        lazy=None if plain.lazy is None else dlopened(release, cuda_set),
        libraries=cuda_set.libraries,
        set_gpu=cuda_set.gpu or None,
        set_jit=False if cuda_set.jit_fails else None,
        size=None,
        packages=tuple(_package(wheel.requirement) for wheel in cell.wheels) or None,
        notes=(f"{name} means the cell {cell.identifier}",) if name != cell.identifier else (),
    )


def _package(requirement: str) -> str:
    return f"{requirement.replace('==', '-')}.dist-info"


def _inferred(row: OrtRelease) -> tuple[str, ...]:
    facts = (("needed", row.needed_confidence), ("gpu", row.gpu.confidence))
    found = [name for name, confidence in facts if confidence in _UNSURE]
    return (*found, *(("archive",) if row.asset_confidence in _UNSURE else ()))
