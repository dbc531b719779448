"""What a warm-up leaves behind, `warm.json`, read strictly, and what it proves.

`ortimg/warming/warm.sh` writes it on the machine with the GPU, maybe far away; so nothing in it is believed
that does not look as it must.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
    """A start of the warm-up, in this order. Each is a process of its own.

    `-no-jit`: the driver may compile nothing.
    """

    NO_CACHE = "no-cache"  # nothing is there and nothing may be compiled: shows whether a cache is needed
    COLD = "cold"  # everything is compiled
    TOP_UP = "top-up"  # the verifier's own model, beside the user's
    SECOND = "second"  # what a cache on a disk gives
    SECOND_PROOF = "second-no-jit"
    PROOF = "copied-no-jit"  # a copy at another place, which the program can write to
    COPIED = "copied"
    MOUNT_PROOF = "read-only-mount-no-jit"  # a copy on a mount that is read-only (EROFS)
    MOUNT = "read-only-mount"
    OTHER_PROOF = "other-uid-no-jit"  # a copy that belongs to another user, 0755 and 0644 (EACCES)
    OTHER = "other-uid"
    LOCKED_PROOF = "no-write-bits-no-jit"  # a copy that is 0555 and 0444 (EACCES)
    LOCKED = "no-write-bits"

    @classmethod
    def _missing_(cls, value: object) -> Step | None:
        """Names of earlier records, which had no other copy."""
        return {"baked": cls.LOCKED, "baked-no-jit": cls.LOCKED_PROOF}.get(str(value))


# Copies that the program cannot write to: the proof, and the timed starts. A driver need not use them.
_UNWRITABLE = {
    Step.MOUNT_PROOF: Step.MOUNT,
    Step.OTHER_PROOF: Step.OTHER,
    Step.LOCKED_PROOF: Step.LOCKED,
}
_MAY_FAIL = {Step.SECOND_PROOF, *_UNWRITABLE, *_UNWRITABLE.values()}


class Use(StrEnum):
    """Which cache the driver was shown to use."""

    READ_ONLY = "read-only"  # one that the program cannot write to
    WRITABLE = "writable"  # one that it can write to


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
    copied: tuple[float, ...]  # a copy that the program can write to
    read_only: tuple[float, ...]  # copies that it cannot write to, where the driver uses them
    unwritable: tuple[tuple[str, bool], ...]  # each kind of those that was tried: does the driver use it?

    @property
    def use(self) -> Use:
        """READ_ONLY if both answers of a kernel to a write, EROFS and EACCES, were shown to do no harm."""
        tried = dict(self.unwritable)
        mount, owner, modes = (tried.get(step.value) for step in _UNWRITABLE.values())
        denied = modes if owner is None else owner
        return Use.READ_ONLY if mount and denied else Use.WRITABLE

    @property
    def baked(self) -> tuple[float, ...]:
        """First runs with the cache as a warmed image gives it to a program."""
        return self.read_only if self.use is Use.READ_ONLY else self.copied

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
        if start.exit not in expected and start.name not in _MAY_FAIL:
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
        copied=_seconds(record, Step.COPIED),
        read_only=_seconds(record, *_UNWRITABLE.values()),
        unwritable=tuple(_unwritable(record)),
    )
    if not warmth.native:
        _check_proof(record, warmth)
    return warmth


def _check_proof(record: Record, warmth: Warmth) -> None:
    proof = _starts(record, Step.PROOF)
    if not (warmth.cold and warmth.second and warmth.copied and proof):
        raise CheckFailed(
            "warm.json ends before the proof, a start with a copy of the cache: "
            "the warm-up was interrupted, or is of an earlier ortimg",
            AGAIN,
        )
    if any(start.ptx_jit for start in record.attempts if start.name in (Step.PROOF, *_UNWRITABLE)):
        raise CheckFailed("warm.json has no start with the cache and without compiling", AGAIN)


def _unwritable(record: Record) -> Iterator[tuple[str, bool]]:
    """Kinds of copies that cannot be written to and were tried; True where each start of a kind went well."""
    for proof, timed in _UNWRITABLE.items():
        if proofs := _starts(record, proof):
            yield timed.value, all(start.exit == 0 for start in (*proofs, *_starts(record, timed)))


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
        if start.exit != 0 and start.name in _MAY_FAIL:
            continue  # it may have ended before it had a device
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


def _seconds(record: Record, *names: Step) -> tuple[float, ...]:
    """First runs of the starts of these names; not of a kind of copy that the driver does not use."""
    used = {kind for kind, used in _unwritable(record) if used}
    times = []
    for start in record.attempts:
        if start.name not in names or (start.name in _UNWRITABLE.values() and start.name.value not in used):
            continue
        seconds = _run(start).seconds
        if seconds is None or seconds.first_run is None or seconds.first_run <= 0:
            raise CheckFailed(f"the start {start.name.value!r} has no time of its first run", AGAIN)
        times.append(seconds.first_run)
    return tuple(times)


def _why(start: Start) -> str:
    if start.report is None:
        return f"exit {start.exit}, without a report"
    for finding in start.report.failures:
        return f"{finding.check}: {finding.evidence}"
    return f"exit {start.exit}"
