"""What two sides of a comparison are described by, and what is found between them.

A fact that is None is not known, and said to be so: nothing is guessed from the other side.
A finding is one of `verify`: ok means the same or more than before, warning that something differs and nobody
must act, fail that somebody must act, skipped that it is not known.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ortimg.core.model import GpuArchitectures
from ortimg.verify.report import Finding as Finding
from ortimg.verify.report import FindingVerdict


class Source(StrEnum):
    """Where the facts about a side come from."""

    CATALOGUE = "catalogue"  # nothing was opened
    IMAGE = "image"  # read in the files of an image
    ROOT = "root"  # read in a folder: an unpacked root file system, or an unpacked release archive


class Outcome(StrEnum):
    """What all checks together say."""

    DROP_IN = "drop-in"
    ACTION = "action-needed"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program or library that may link to ONNX Runtime."""

    path: str  # as a person knows it
    needed: tuple[str, ...]  # its NEEDED
    wanted: tuple[str, ...]  # symbol versions that it asks for, but of the C and C++ libraries
    imports: tuple[str, ...] = ()  # symbols of ONNX Runtime that it takes from elsewhere

    @property
    def linked(self) -> bool:
        """Does it name ONNX Runtime's library? A program that opens it with dlopen does not."""
        return any(name.split(".so")[0] == "libonnxruntime" for name in self.needed)


class Function(msgspec.Struct, frozen=True):
    """An entry of struct OrtApi."""

    name: str
    signature: str  # its declaration, without comments and extra blanks


class Headers(msgspec.Struct, frozen=True, kw_only=True):
    """What onnxruntime_c_api.h says."""

    version: int | None  # ORT_API_VERSION
    functions: tuple[Function, ...] | None  # of struct OrtApi, in its order


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison."""

    name: str  # as the user wrote it
    source: Source
    brings_cuda: bool  # the CUDA libraries come with it; a bare version takes those of its user
    ort: str | None = None  # "1.18.1"
    other_orts: tuple[str, ...] = ()  # further libonnxruntime beside the described one: their paths
    cuda: str | None = None  # "11.8", or only its major, "11"
    cudnn: str | None = None  # "8.9.6.50", or only its major, "8"
    soname: str | None = None
    symbols: str | None = None  # version of its symbols, "VERS_1.18.1"
    has_library: bool = True  # libonnxruntime.so; false: a Python package that holds it in its own module
    has_cuda: bool = True  # the CUDA provider
    needed: tuple[str, ...] | None = None  # CUDA part of NEEDED of the CUDA provider
    lazy: tuple[str, ...] | None = None  # CUDA libraries that it opens when it uses them
    libraries: tuple[str, ...] | None = None  # CUDA libraries that are there, by name
    gpu: GpuArchitectures | None = None  # of the CUDA provider
    set_gpu: tuple[GpuArchitectures, ...] | None = None  # of the CUDA libraries that hold GPU code
    set_jit: bool | None = None  # whether the driver can compile the CUDA libraries' PTX; None: not tried
    exports: tuple[str, ...] | None = None  # of libonnxruntime.so
    headers: Headers | None = None
    headers_from: str = "the release archive"
    size: int | None = None  # bytes
    size_of: str = "files"  # what was measured
    glibc: str | None = None  # lowest that its libraries need
    packages: tuple[str, ...] | None = None  # folders `*.dist-info` of Python packages
    programs: tuple[Program, ...] = ()  # found inside, linked to ONNX Runtime
    inferred: tuple[str, ...] = ()  # facts that were not read but inferred: "needed", "gpu", "archive"
    broken: tuple[str, ...] = ()  # files that could not be read, each with why
    notes: tuple[str, ...] = ()  # what was chosen for the user

    @property
    def cuda_major(self) -> str | None:
        return major(self.cuda)

    @property
    def cudnn_major(self) -> str | None:
        return major(self.cudnn)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides and everything between them."""

    old: Side
    new: Side
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> Outcome:
        failed = any(finding.verdict is FindingVerdict.FAIL for finding in self.findings)
        return Outcome.ACTION if failed else Outcome.DROP_IN

    def of(self, verdict: FindingVerdict) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is verdict)


def major(version: str | None) -> str | None:
    """`11` of `11.8`."""
    return None if version is None else version.partition(".")[0]


def ok(check: str, evidence: str) -> Finding:
    """Nothing to act on."""
    return Finding(check=check, verdict=FindingVerdict.OK, evidence=evidence)


def warning(check: str, evidence: str, cure: str | None = None) -> Finding:
    """A difference that need not matter."""
    return Finding(check=check, verdict=FindingVerdict.WARNING, evidence=evidence, cure=cure)


def fail(check: str, evidence: str, cure: str) -> Finding:
    """A difference that wants `cure` before the switch."""
    return Finding(check=check, verdict=FindingVerdict.FAIL, evidence=evidence, cure=cure)


def skipped(check: str, evidence: str, cure: str | None = None) -> Finding:
    """What is not known of one side; `cure` tells how it can be."""
    return Finding(check=check, verdict=FindingVerdict.SKIPPED, evidence=evidence, cure=cure)


def told(names: tuple[str, ...] | list[str]) -> str:
    """The names as words, `none` where there are none."""
    return ", ".join(names) or "none"
