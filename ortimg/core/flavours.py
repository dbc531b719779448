"""Which flavours can exist, and what they are made of.

- A Python flavour stands on the distribution's own Python: another one would make two in an image.
- It needs a wheel of the same version for that Python and the cell's CUDA major, and what that wheel imports.
  A wheel up to 1.18 is compiled for NumPy 1 (https://github.com/microsoft/onnxruntime/issues/21063).
- The wheel's name tells the lowest glibc it may meet (https://peps.python.org/pep-0600/).
- `devel` needs a compiler, so the names of the distribution's packages must be known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from ortimg.core.catalogue import Index
from ortimg.core.model import Base, Cell, CudaSet, Flavour, OrtRelease, PythonWheel, Wheel
from ortimg.core.rules import Refusal, Rules
from ortimg.core.versions import at_least, number

NUMPY_2 = Version("1.19")  # the first ONNX Runtime that can be imported with NumPy 2
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_x86_64")


class Flavours:
    """From a combination that can exist to a cell of one flavour."""

    def __init__(self, index: Index, rules: Rules) -> None:
        self._rules = rules
        self._bases = index.catalogue.bases
        self._wheels = {(row.version, row.cuda_major): row.files for row in index.catalogue.python_releases}
        self._majors = {row.version: row.cuda_major for row in index.catalogue.python_releases}
        self._known: dict[tuple[str, str, str, Flavour], str | None] = {}
        self._imports = {(row.python, row.numpy): row.files for row in index.catalogue.python_sets}

    def cell(self, ort: str, cuda: str, cudnn: str, base: str, flavour: str) -> Cell | Refusal:
        """The cell, or why it cannot exist."""
        kind = self._rules.flavour(flavour)
        if isinstance(kind, Refusal):
            return kind
        found = self._rules.resolve(ort, cuda, cudnn, base)
        if isinstance(found, Refusal):
            return found
        return self._cell(*found, kind)

    def nearest(self, ort: str, cuda: str, cudnn: str, base: str, flavour: str) -> str | None:
        """Identifier of the cell that works and differs least; the flavour is given up last."""
        kind = self._rules.flavour(flavour)
        if not isinstance(kind, Refusal) and kind is not Flavour.RUNTIME:
            for release, cuda_set in self._rules.ranked(ort, cuda, cudnn):
                if found := self._good(release, cuda_set, base, kind):
                    return found
        return self._rules.nearest(ort, cuda, cudnn, base)

    def _good(self, release: OrtRelease, cuda_set: CudaSet, base: str, flavour: Flavour) -> str | None:
        """The first cell of these that can exist, on the wished base or like it; remembered."""
        key = (release.version, cuda_set.key, base, flavour)
        if key not in self._known:
            self._known[key] = None
            for row, other in self._near(base, flavour):
                found = self._rules.resolve(release.version, cuda_set.cuda, cuda_set.cudnn, row.name)
                cell = found if isinstance(found, Refusal) else self._cell(*found, other)
                if not isinstance(cell, Refusal):
                    self._known[key] = cell.identifier
                    break
        return self._known[key]

    def _near(self, base: str, flavour: Flavour) -> Iterator[tuple[Base, Flavour]]:
        """Bases and flavours like the wished ones, nearest first."""
        family = base.rstrip("0123456789.")
        wished = [row for row in self._bases if row.name == base]
        for row in wished:
            yield row, flavour
            if flavour.python and row.python is not None:
                yield row, Flavour(f"python{row.python.version}")
        others = [row for row in self._bases if row.name != base]
        for row in sorted(others, key=lambda row: row.name.rstrip("0123456789.") != family):
            yield row, flavour

    def _cell(self, release: OrtRelease, cuda_set: CudaSet, base: Base, kind: Flavour) -> Cell | Refusal:
        wheels: tuple[Wheel, ...] | Refusal = ()
        if kind is not Flavour.RUNTIME and base.packages is None:
            return Refusal(f"what {base.title} calls its packages for the flavour {kind.value} is not known")
        if kind.python is not None:
            wheels = self._python(release, base, kind.python)
        if isinstance(wheels, Refusal):
            return wheels
        return Cell(release=release, cuda_set=cuda_set, base=base, flavour=kind, wheels=wheels)

    def _python(self, release: OrtRelease, base: Base, python: str) -> tuple[Wheel, ...] | Refusal:
        if base.python is None:
            return Refusal(f"{base.title} has no Python 3 of its own that is known")
        if base.python.version != python:
            return Refusal(f"the Python of {base.title} is {base.python.version}, not {python}")
        files = self._wheels.get((release.version, release.cuda_major))
        if files is None:
            return Refusal(self._no_wheel(release))
        wheel = next((row for row in files if row.python == python), None)
        if wheel is None:
            there = ", ".join(row.python for row in files)
            return Refusal(
                f"onnxruntime-gpu {release.version} has no wheel for Python {python}; it has one for {there}"
            )
        if (floor := lowest_glibc(wheel.filename)) and not at_least(base.glibc or "0", floor):
            what = f"the wheel of onnxruntime-gpu {release.version}"
            return Refusal(f"{what} needs glibc {floor}, {base.title} has {base.glibc}")
        numpy = 2 if Version(release.version) >= NUMPY_2 else 1
        imports = self._imports.get((python, numpy))
        if imports is None:
            return Refusal(f"no wheels of NumPy {numpy} for Python {python} are in the catalogue")
        return (_pinned(release, wheel), *imports)

    def _no_wheel(self, release: OrtRelease) -> str:
        major = self._majors.get(release.version)
        if major is None:
            return f"no wheel of onnxruntime-gpu {release.version} is known"
        return f"the wheel of onnxruntime-gpu {release.version} is for CUDA {major}, not {release.cuda_major}"


def lowest_glibc(filename: str) -> str | None:
    """The lowest glibc that a wheel's name allows, "2.28"; None where it tells none (any, manylinux2014)."""
    found = [f"{major}.{minor}" for major, minor in _MANYLINUX.findall(filename)]
    return min(found, key=number, default=None)


def _pinned(release: OrtRelease, wheel: PythonWheel) -> Wheel:
    return Wheel(
        requirement=f"onnxruntime-gpu=={release.version}",
        filename=wheel.filename,
        sha256=wheel.sha256,
        size=wheel.size,
    )
