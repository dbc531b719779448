"""Which combinations can exist, computed from facts: each refusal has its reason and the nearest cell.

The rules, and where they come from:

- An ONNX Runtime built for one CUDA major runs with any CUDA of that major, and with that major only; cuDNN 8
  and 9 do not replace each other
  (https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html).
- Every library that the CUDA provider links to must be in the CUDA set.
- glibc and libstdc++ of the base must be as new as the symbols that the libraries ask for.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from ortimg.core.abi import too_old
from ortimg.core.catalogue import Index
from ortimg.core.config import NO_ARM
from ortimg.core.cudnn import NO_CUDNN
from ortimg.core.distance import nearest_version, version_distance
from ortimg.core.model import Base, Confidence, CudaSet, Flavour, OrtRelease, dlopened, identifier_of
from ortimg.core.problems import near, quote
from ortimg.core.versions import number

DRIVER_LIBRARY = "libcuda.so.1"  # comes from the host when a container starts, never from an image
_ARM = re.compile(r"(?:^|[^a-z0-9])(?:arm64|aarch64|arm)(?:$|[^a-z0-9])")
_CUDA = re.compile(r"[0-9]+\.[0-9]+(?:\.[0-9]+)*")
_CUDNN = re.compile(rf"[0-9]+|{NO_CUDNN}")
_MOVING = {"latest", "newest", "stable", "main", "nightly"}
_UNSURE = (Confidence.INFERRED, Confidence.UNKNOWN)


class Refusal(msgspec.Struct, frozen=True):
    """Why a combination cannot exist."""

    reason: str


Pair = tuple[OrtRelease, CudaSet]


class Rules:
    """The rules over one catalogue. Answers are remembered: a matrix asks the same things again and again."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._pairs: dict[tuple[str, str, str], Pair | Refusal] = {}
        self._ranked: dict[tuple[str, str, str], list[Pair]] = {}
        self._fits: dict[tuple[str, str, str], str | None] = {}
        self._near_bases: dict[tuple[str, str, str], str | None] = {}
        self._good_pairs: list[Pair] | None = None

    def resolve(
        self, ort: str, cuda: str, cudnn: str, base: str
    ) -> tuple[OrtRelease, CudaSet, Base] | Refusal:
        """What the combination is made of, or why it cannot exist."""
        found_base = self.base(base)
        if isinstance(found_base, Refusal):
            return found_base
        pair = self.pair(ort, cuda, cudnn)
        if isinstance(pair, Refusal):
            return pair
        if reason := self._unfit(*pair, found_base):
            return Refusal(reason)
        return (*pair, found_base)

    def base(self, name: str) -> Base | Refusal:
        """A distribution that something could load on."""
        base = self._index.bases.get(name)
        if base is None:
            if _ARM.search(name.lower()):
                return Refusal(NO_ARM)
            if plain := self._distribution_in(name):
                return Refusal(
                    f"{quote(name)} is no base: an image stands on a plain distribution, and its CUDA "
                    f"libraries are added to that; write {quote(plain)}"
                )
            known = ", ".join(row.name for row in self._index.catalogue.bases)
            return Refusal(
                f"no base {quote(name)} is known{near(name, self._index.bases) or f'; there are {known}'}"
            )
        if base.glibc is None:
            return Refusal(f"{base.title} has musl instead of glibc, and ONNX Runtime's libraries need glibc")
        return base

    def flavour(self, name: str) -> Flavour | Refusal:
        """A flavour that images can have."""
        try:
            return Flavour(name)
        except ValueError:
            if _ARM.search(name.lower()):
                return Refusal(NO_ARM)
            known = ", ".join(flavour.value for flavour in Flavour)
            return Refusal(f"no flavour {quote(name)} is known; there is {known}")

    def alone(self, axis: str, value: str) -> Refusal | None:
        """What is wrong with a value of an axis whatever it is combined with, or None."""
        if axis == "base":
            fault: object = self.base(value)
        elif axis == "flavour":
            fault = self.flavour(value)
        elif axis == "ort":
            fault = None if value in self._index.releases else self._find_pair(value, "", "")
        elif axis == "cuda":
            fault = _ill_formed(_CUDA, value, 'CUDA version such as "12.2"')
        else:
            fault = _ill_formed(_CUDNN, value, f'cuDNN major version such as "8", nor "{NO_CUDNN}"')
        return fault if isinstance(fault, Refusal) else None

    def pair(self, ort: str, cuda: str, cudnn: str) -> Pair | Refusal:
        """The release archive and the CUDA set, if they fit together."""
        key = (ort, cuda, cudnn)
        if key not in self._pairs:
            self._pairs[key] = self._find_pair(ort, cuda, cudnn)
        return self._pairs[key]

    def _find_pair(self, ort: str, cuda: str, cudnn: str) -> Pair | Refusal:
        if _ARM.search(ort.lower()):
            return Refusal(NO_ARM)
        releases = self._index.releases.get(ort)
        if releases is None:
            return Refusal(self._no_release(ort))
        if fault := self.alone("cuda", cuda) or self.alone("cudnn", cudnn):
            return fault
        major = int(cuda.partition(".")[0])
        release = self._index.release(ort, major)
        if release is None:
            there = " and ".join(f"CUDA {row.cuda_major} (cuDNN {row.cudnn_major})" for row in releases)
            return Refusal(
                f"ONNX Runtime {ort} has no release archive for CUDA {major}; it has one for {there}"
            )
        if reason := unsure(release):
            return Refusal(reason)
        if cudnn == NO_CUDNN:
            if not release.loads_cudnn_late:
                return Refusal(
                    f"ONNX Runtime {ort} for CUDA {major} links to cuDNN {release.cudnn_major}, "
                    "so it does not load without it"
                )
        elif int(cudnn) != release.cudnn_major:
            return Refusal(
                f"ONNX Runtime {ort} for CUDA {major} is built with cuDNN {release.cudnn_major}, "
                f"which cuDNN {cudnn} does not replace"
            )
        cuda_set = self._index.sets.get((cuda, cudnn))
        if cuda_set is None:
            known = ", ".join(f"{row.cuda} (cuDNN {row.cudnn})" for row in self._index.catalogue.cuda_sets)
            wished = f"CUDA {cuda}" + (f" and cuDNN {cudnn}" if cudnn != NO_CUDNN else "")
            return Refusal(f"there is no set of {wished} libraries; there are {known}")
        if missing := lacking(release, cuda_set):
            named = ", ".join(_with_other(name, cuda_set) for name in missing)
            return Refusal(f"the CUDA {cuda} set lacks {named}, which ONNX Runtime {ort} links to")
        return release, cuda_set

    def _no_release(self, ort: str) -> str:
        versions = self._index.versions()
        if ort.lower() in _MOVING:
            example = self._all_pairs()[0][0].version
            return f"{quote(ort)} is no version: an image is made of exact versions, such as {example}"
        if reason := self._index.no_assets.get(ort):
            return (
                f"ONNX Runtime {ort} has no release archive for Linux and GPUs ({reason}); "
                f"{nearest_version(ort, versions)} has"
            )
        known = f"those of {versions[0]} to {versions[-1]} are"
        return f"no release archive of ONNX Runtime {quote(ort)} is known; {known}"

    def _unfit(self, release: OrtRelease, cuda_set: CudaSet, base: Base) -> str | None:
        """Why the base is too old for the libraries, or None."""
        key = (release.version, cuda_set.key, base.name)
        if key not in self._fits:
            self._fits[key] = too_old(release, cuda_set, base)
        return self._fits[key]

    def nearest(self, ort: str, cuda: str, cudnn: str, base: str) -> str | None:
        """Identifier of the runtime cell that works and differs least; the version is given up last."""
        for release, cuda_set in self.ranked(ort, cuda, cudnn):
            key = (release.version, cuda_set.key, base)
            if key not in self._near_bases:
                self._near_bases[key] = self._nearest_base(release, cuda_set, base)
            if found := self._near_bases[key]:
                return identifier_of(release.version, cuda_set.cuda, cuda_set.cudnn, found, Flavour.RUNTIME)
        return None

    def ranked(self, ort: str, cuda: str, cudnn: str) -> list[Pair]:
        """Every release with every CUDA set that it fits, the one most like the wish first."""
        key = (ort, cuda, cudnn)
        if key not in self._ranked:
            wished = _numbers(cuda)
            pairs = self._all_pairs()
            if cudnn == NO_CUDNN:  # otherwise no advice: it cannot do all that the others can
                pairs = [*self._pairs_of(NO_CUDNN), *pairs]
            self._ranked[key] = sorted(
                pairs,
                key=lambda pair: (
                    version_distance(ort, pair[0].version),
                    abs(wished[0] - pair[1].major) if wished else 0,
                    pair[1].cudnn != cudnn,
                    abs(wished[1] - number(pair[1].cuda)[1]) if wished else 0,
                ),
            )
        return self._ranked[key]

    def _all_pairs(self) -> list[Pair]:
        """Every release with every CUDA set that it fits, newest first."""
        if self._good_pairs is None:
            self._good_pairs = self._pairs_of(None)
        return self._good_pairs

    def _pairs_of(self, cudnn: str | None) -> list[Pair]:
        """As `_all_pairs`; with another `cudnn` than that of the sets."""
        pairs = (
            self.pair(version, row.cuda, cudnn or row.cudnn)
            for version in reversed(self._index.versions())
            for row in self._index.catalogue.cuda_sets
        )
        return [pair for pair in pairs if not isinstance(pair, Refusal)]

    def _nearest_base(self, release: OrtRelease, cuda_set: CudaSet, name: str) -> str | None:
        good = [
            row
            for row in self._index.catalogue.bases
            if row.glibc is not None and self._unfit(release, cuda_set, row) is None
        ]
        if not good:
            return None
        names = [row.name for row in good]
        name = self._distribution_in(name) or name
        if name in names:
            return name
        wished = self._index.bases.get(name)
        if wished is None or wished.glibc is None:
            return next(iter(difflib.get_close_matches(name, names, n=1)), names[0])
        family = name.rstrip("0123456789.")
        return min(
            good,
            key=lambda row: (row.name.rstrip("0123456789.") != family, number(row.glibc or "0")),
        ).name

    def _distribution_in(self, name: str) -> str | None:
        """The base below an image with CUDA: of `nvidia/cuda:12.4.1-runtime-ubuntu22.04`, `cuda-rocky9`."""
        plain = name.lower().replace("rockylinux", "rocky")
        glibc = [row.name for row in self._index.catalogue.bases if row.glibc]
        return next((known for known in glibc if "cuda" in plain and plain.endswith(known)), None)


def _ill_formed(pattern: re.Pattern[str], value: str, what: str) -> Refusal | None:
    if pattern.fullmatch(value):
        return None
    return Refusal(NO_ARM if _ARM.search(value.lower()) else f"{quote(value)} is no {what}")


def lacking(release: OrtRelease, cuda_set: CudaSet) -> list[str]:
    """Libraries that the release loads and the set does not have, the driver's own aside."""
    have = {*cuda_set.libraries, DRIVER_LIBRARY}
    later = dlopened(release, cuda_set)
    return [name for name in (*release.needed, *later) if name not in have]


def _with_other(name: str, cuda_set: CudaSet) -> str:
    """The library, with the one of another number that the set has in its place."""
    stem = name.partition(".so")[0]
    other = next((library for library in cuda_set.libraries if library.partition(".so")[0] == stem), None)
    return f"{name} (it has {other})" if other else name


def unsure(release: OrtRelease) -> str | None:
    """Why nobody can know what is in the archive, or None."""
    detail = f": {release.faults[0]}" if release.faults else ""
    if release.cuda_confidence in _UNSURE:
        return f"which CUDA the archive of ONNX Runtime {release.version} is built for is not sure{detail}"
    if release.needed_confidence is Confidence.UNKNOWN:
        return f"which libraries ONNX Runtime {release.version} needs is not known{detail}"
    if release.asset_confidence is Confidence.UNKNOWN:
        return f"nobody has seen the archive of ONNX Runtime {release.version} for CUDA {release.cuda_major}"
    return None


def _numbers(version: str) -> tuple[int, int] | None:
    match = re.match(r"([0-9]+)\.([0-9]+)", version)
    return (int(match[1]), int(match[2])) if match else None
