"""The record of one verdict of tier run, and what it proves. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

import msgspec

from ortimg.core.model import Tier
from ortimg.errors import CheckFailed
from ortimg.verify.report import Report, Verdict, encode, parse_report
from ortimg.verify.run_report import RunDevice, RunReport

SCHEMA = 1
ARTIFACT_TYPE = "application/vnd.ortimg.verdict.v1+json"  # of the referrer in a registry
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OWN_MODEL = "the model of ort-verify"  # other models show other things: they are told, and prove no tier
_AGAIN = "make it anew with `ortimg verify … --tier run --record-file FILE`"


class Subject(StrEnum):
    """What was run."""

    IMAGE = "image"
    ROOT = "root"  # an unpacked root file system


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What the subject is made of, as far as it tells."""

    identifier: str | None = None  # the cell's
    content: str | None = None  # label ortimg.content; a root has no labels
    files: Mapping[str, str] = {}  # path → sha256, of a root: its manifest and ONNX Runtime's own libraries


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """What ran, as it told itself."""

    ortimg: str
    ort: str | None = None
    cuda: str | None = None  # CUDA run time of the subject


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict."""

    schema: int = SCHEMA
    subject: Subject
    digest: str | None  # of the image's manifest; None: a root that nobody tied to an image
    about: str  # what the verdict speaks of, in words
    identity: Identity
    tier: Literal["run"] = "run"
    verdict: Verdict  # pass or fail
    date: str  # UTC, "2026-12-01T09:36:46Z"
    gpu: RunDevice | None = None  # None: it failed before a GPU was looked at
    versions: Versions
    report: Report

    @property
    def gpu_words(self) -> str:
        """For a terminal: a record may come from anywhere."""
        gpu = self.gpu
        words = f"{gpu.name}, compute {gpu.compute}, driver {gpu.driver}" if gpu else "no GPU"
        return "".join(letter if letter.isprintable() else "?" for letter in words)


def make_record(
    report: Report, subject: Subject, digest: str | None, identity: Identity, ortimg: str, now: str
) -> Record:
    """The record of `report`; `now` dates it where the report has no date of its own.

    Raises CheckFailed where the report holds no verdict of tier run on an image.
    """
    if report.tier is not Tier.RUN or report.verdict is Verdict.ENVIRONMENT:
        raise CheckFailed("there is no verdict to record: this machine could not tell", "see the findings")
    run = report.run if isinstance(report.run, RunReport) else None
    device = run.device if run else None
    return Record(
        subject=subject,
        digest=digest,
        about=_about(subject, digest),
        identity=identity,
        verdict=report.verdict,
        date=(run.date if run else None) or now,
        gpu=device,
        versions=Versions(
            ortimg=ortimg, ort=run.ort if run else None, cuda=device.runtime_cuda if device else None
        ),
        report=report,
    )


def _about(subject: Subject, digest: str | None) -> str:
    if subject is Subject.IMAGE:
        return f"The image {digest} itself was run."
    if digest is not None:
        return (
            "An unpacked root was run, not an image. Whoever ran it says that it was exported from"
            f" {digest}; identity.files tells what it holds."
        )
    return (
        "An unpacked root was run, not an image, and it is bound to no digest: identity tells what it holds."
    )


def dump_record(record: Record) -> str:
    """The record as a file."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1).decode() + "\n"


def parse_record(text: bytes | str, name: str) -> Record:
    """The record in a file that messages call `name`.

    Raises CheckFailed unless it is whole and agrees with itself.
    """
    try:
        record = msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckFailed(f"{name} is no whole record of a verdict: {error}", _AGAIN) from None
    fault = _fault(record)
    if fault is not None:
        raise CheckFailed(f"{name}: {fault}", _AGAIN)
    try:
        parse_report(encode(record.report))
    except CheckFailed as error:
        raise CheckFailed(f"{name}: {error.message}", _AGAIN) from None
    return record


def _fault(record: Record) -> str | None:
    report = record.report
    run = report.run if isinstance(report.run, RunReport) else None
    if record.schema != SCHEMA:
        return f"the record has schema {record.schema}, this ortimg reads {SCHEMA}"
    if record.digest is not None and DIGEST.fullmatch(record.digest) is None:
        return f"{record.digest[:80]!r} is no digest"
    if record.subject is Subject.IMAGE and record.digest is None:
        return "it speaks of an image and names no digest"
    if record.verdict is not report.verdict or report.tier is not Tier.RUN:
        return (
            f"it says {record.verdict.value} of tier run, and the report in it says"
            f" {report.verdict.value} of tier {report.tier.value}"
        )
    if record.verdict is Verdict.ENVIRONMENT:
        return "it holds no verdict: that machine could not tell"
    if record.gpu != (run.device if run else None):
        return "it names another GPU than the report in it"
    if record.verdict is Verdict.PASS and (run is None or run.device is None or run.nodes is None):
        return "it says pass, and no model was run on a GPU"
    return None


def other_model(record: Record) -> str:
    """The user's own model that was run, or "" where it was ort-verify's. Its run speaks of that model."""
    run = record.report.run
    return run.model if isinstance(run, RunReport) and run.model != _OWN_MODEL else ""


def proves_run(record: Record, digest: str) -> bool:
    """Whether the record makes tier run of the image `digest`.

    It passed, of that digest, with ort-verify's own model. A run of another model, or one in which nodes were
    allowed on the CPU, says less.
    """
    run = record.report.run
    return (
        record.digest == digest
        and record.verdict is Verdict.PASS
        and isinstance(run, RunReport)
        and run.model == _OWN_MODEL
        and run.cpu_fallback is False
    )


def best_tier(label: str | None, digest: str | None, records: Sequence[Record]) -> str | None:
    """The tier of an image: `run` where a record proves it of this very digest, else what its label says."""
    if digest is not None and any(proves_run(record, digest) for record in records):
        return Tier.RUN.value
    return label


def of_other_digests(identifier: str, digest: str | None, records: Sequence[Record]) -> tuple[Record, ...]:
    """Records of the same cell that do not speak of this image: it was built anew since, or elsewhere."""
    return tuple(
        record
        for record in records
        if record.identity.identifier == identifier and (digest is None or record.digest != digest)
    )


def row(record: Record) -> dict[str, object]:
    """What `list --json` shows of a record."""
    gpu = record.gpu or RunDevice()
    return {
        "digest": record.digest,
        "subject": record.subject.value,
        "verdict": record.verdict.value,
        "gpu": gpu.name,
        "compute": gpu.compute,
        "driver": gpu.driver,
        "date": record.date,
    }
