"""What a warm-up leaves behind, `warm.json`, read strictly, and what it proves.

`ortimg/warming/warm.sh` writes it on the machine with the GPU, maybe far away; so nothing in it is believed
that does not look as it must.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from statistics import median

import msgspec

from ortimg.errors import CheckFailed
from ortimg.verify.report import Report
from ortimg.verify.run_report import RunReport

SCHEMA = 1
KIND = "ortimg.warm"
PROVIDER = "libonnxruntime_providers_cuda.so"  # holds ONNX Runtime's kernels
MAX_BYTES = 64 << 20  # of warm.json: 12 starts are about 80 KB
AGAIN = "Run the warm-up again on the machine with the GPU."

_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DRIVER = re.compile(r"[0-9]{3,4}(?:\.[0-9]{1,5}){1,2}")
_COMPUTE = re.compile(r"[0-9]{1,2}\.[0-9]")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Step(StrEnum):
    """A start of the warm-up, in this order. Each is a process of its own."""

    NO_CACHE = "no-cache"  # nothing may be compiled and nothing is there: shows whether a cache is needed
    COLD = "cold"  # everything is compiled
    TOP_UP = "top-up"  # the verifier's own model, beside the user's
    SECOND = "second"  # what a cache on a disk gives
    BAKED = "baked"  # the cache as an image has it: moved, read-only
    PROOF = "baked-no-jit"  # the same, and nothing may be compiled


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How one start ended."""

    name: Step
    ptx_jit: bool  # could the driver compile?
    exit: int
    report: Report | None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All of `warm.json`."""

    schema: int
    kind: str
    identifier: str | None  # of the cell whose files were run
    libraries: Mapping[str, str]  # file of ONNX Runtime → sha256
    cache_limit: int  # bytes, CUDA_CACHE_MAXSIZE of the warm-up
    attempts: tuple[Start, ...]


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """What a compute cache is good for, besides the build of ONNX Runtime."""

    name: str
    compute: str  # "9.0"
    driver: str  # "580.159.04"

    @property
    def architecture(self) -> str:
        """`sm90`."""
        return f"sm{self.compute.replace('.', '')}"

    def __str__(self) -> str:
        return f"{self.name}, compute capability {self.compute}, driver {self.driver}"


class Warmth(msgspec.Struct, frozen=True, kw_only=True):
    """What a record says, in short. Seconds are those of the first run, one for each start."""

    identifier: str
    ort_sha256: str  # of the CUDA provider
    gpu: Gpu
    date: str
    model: str
    native: bool  # the GPU needs no cache
    cold: tuple[float, ...]
    second: tuple[float, ...]
    baked: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """A first run with the baked cache against one of a second start; medians."""
        return median(self.baked) / median(self.second) if self.baked and self.second else None


def parse_record(raw: bytes) -> Record:
    """The record in `raw`. Raises CheckFailed for anything but one whole record of this schema."""
    if len(raw) > MAX_BYTES:
        raise CheckFailed(f"warm.json has {len(raw)} bytes: it is no record of a warm-up", AGAIN)
    try:
        record = msgspec.json.decode(raw, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CheckFailed(f"warm.json is no whole record ({error}): it was cut or changed", AGAIN) from None
    if record.kind != KIND or record.schema != SCHEMA:
        raise CheckFailed(
            f"warm.json is {record.kind!r} of schema {record.schema}; wanted is {KIND!r} of schema {SCHEMA}",
            AGAIN,
        )
    return record


def judge(record: Record) -> Warmth:
    """What the record proves. Raises CheckFailed where it proves nothing, with the start that failed."""
    for start in record.attempts:
        expected = (0, 1) if start.name is Step.NO_CACHE else (0,)
        if start.exit not in expected:
            raise CheckFailed(f"the start {start.name.value!r} failed: {_why(start)}", AGAIN)
    without = _starts(record, Step.NO_CACHE)
    if not without or any(start.ptx_jit for start in without):
        raise CheckFailed("warm.json has no start without a cache and without compiling", AGAIN)
    identifier, provider = record.identifier or "", record.libraries.get(PROVIDER, "")
    if not _IDENTIFIER.fullmatch(identifier) or not _SHA256.fullmatch(provider):
        raise CheckFailed(
            f"warm.json does not say of which cell it is, or has no sha256 of {PROVIDER}",
            "Warm a root of an image that ortimg built.",
        )
    first = _run(without[0])
    warmth = Warmth(
        identifier=identifier,
        ort_sha256=provider,
        gpu=_gpu(record),
        date=first.date or "",
        model=first.model,
        native=without[0].exit == 0,
        cold=_seconds(record, Step.COLD),
        second=_seconds(record, Step.SECOND),
        baked=_seconds(record, Step.BAKED),
    )
    if not warmth.native:
        _check_proof(record, warmth)
    return warmth


def _check_proof(record: Record, warmth: Warmth) -> None:
    proof = _starts(record, Step.PROOF)
    if not (warmth.cold and warmth.second and warmth.baked and proof):
        raise CheckFailed("warm.json ends before the proof: the warm-up was interrupted", AGAIN)
    if any(start.ptx_jit for start in proof):
        raise CheckFailed("warm.json has no start with the cache and without compiling", AGAIN)


def _starts(record: Record, name: Step) -> tuple[Start, ...]:
    return tuple(start for start in record.attempts if start.name is name)


def _run(start: Start) -> RunReport:
    if start.report is None or not isinstance(start.report.run, RunReport):
        raise CheckFailed(f"the start {start.name.value!r} has no report of a run", AGAIN)
    return start.report.run


def _gpu(record: Record) -> Gpu:
    """The one GPU and driver of all starts."""
    found = set()
    for start in record.attempts:
        device = _run(start).device
        name, compute, driver = (
            (device.name or "", device.compute or "", device.driver or "") if device else ("", "", "")
        )
        if not _COMPUTE.fullmatch(compute) or not _DRIVER.fullmatch(driver):
            raise CheckFailed(
                f"the start {start.name.value!r} does not say on which GPU and driver it ran", AGAIN
            )
        found.add(Gpu(name=_plain(name), compute=compute, driver=driver))
    if len(found) != 1:
        told = "; ".join(sorted(str(gpu) for gpu in found))
        raise CheckFailed(f"the starts of warm.json are of different GPUs or drivers: {told}", AGAIN)
    return found.pop()


def _plain(name: str) -> str:
    """A GPU's name, fit for a label and a line."""
    return re.sub(r"[^A-Za-z0-9 ._()/-]", "_", name)[:80]


def _seconds(record: Record, name: Step) -> tuple[float, ...]:
    times = []
    for start in _starts(record, name):
        seconds = _run(start).seconds
        if seconds is None or seconds.first_run is None or seconds.first_run <= 0:
            raise CheckFailed(f"the start {name.value!r} has no time of its first run", AGAIN)
        times.append(seconds.first_run)
    return tuple(times)


def _why(start: Start) -> str:
    if start.report is None:
        return f"exit {start.exit}, without a report"
    for finding in start.report.failures:
        return f"{finding.check}: {finding.evidence}"
    return f"exit {start.exit}"
