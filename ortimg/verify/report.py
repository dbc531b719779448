"""What `ort-verify` says, read strictly: a report that is cut, missing or contradicts itself is a failure."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ortimg.core.model import Tier
from ortimg.errors import CheckFailed, ExitCode
from ortimg.verify.bench_report import BenchReport
from ortimg.verify.run_report import RunReport

SCHEMA = 1


class FindingVerdict(StrEnum):
    """What one check says."""

    OK = "ok"
    WARNING = "warning"
    FAIL = "fail"
    SKIPPED = "skipped"


class Verdict(StrEnum):
    """What all checks together say. `environment`: this machine could not tell."""

    PASS = "pass"
    FAIL = "fail"
    ENVIRONMENT = "environment"

    @property
    def exit_code(self) -> ExitCode:
        return {
            Verdict.PASS: ExitCode.DONE,
            Verdict.FAIL: ExitCode.FAILED,
            Verdict.ENVIRONMENT: ExitCode.ENVIRONMENT,
        }[self]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check: what was seen, and what to do about it."""

    check: str
    verdict: FindingVerdict
    evidence: str
    cure: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A verified image or root."""

    schema: int = SCHEMA
    target: str
    tier: Tier
    verdict: Verdict
    findings: tuple[Finding, ...]
    run: RunReport | msgspec.UnsetType = msgspec.UNSET  # absent where no model was run
    bench: BenchReport | msgspec.UnsetType = msgspec.UNSET  # absent where nothing was measured

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is FindingVerdict.FAIL)

    @property
    def exit_code(self) -> ExitCode:
        return self.verdict.exit_code


def parse_report(text: str | bytes) -> Report:
    """The report in `text`. Raises CheckFailed for anything but one whole report that agrees with itself."""
    try:
        report = msgspec.json.decode(text, type=Report)
    except msgspec.DecodeError as error:
        raise CheckFailed(
            f"ort-verify gave no whole report ({error}): it was cut, or something else wrote to its stdout",
            "run the verify step again; if it dies again, its last words on stderr tell more",
        ) from None
    if report.schema != SCHEMA:
        raise CheckFailed(
            f"the report has schema {report.schema}, this ortimg reads {SCHEMA}",
            "use the ortimg version that built the image, or build the image again",
        )
    if not report.findings:
        raise CheckFailed("the report holds no check at all", "build the image again")
    if bool(report.failures) is not (report.verdict is Verdict.FAIL):
        raise CheckFailed(
            f"the report says {report.verdict.value} with {len(report.failures)} failed checks",
            "build the image again",
        )
    return report


def failed(target: str, tier: Tier, check: str, evidence: str, cure: str) -> Report:
    """The report of a target on which `ort-verify` itself could not give one."""
    finding = Finding(check=check, verdict=FindingVerdict.FAIL, evidence=evidence, cure=cure)
    return Report(target=target, tier=tier, verdict=Verdict.FAIL, findings=(finding,))


def unable(target: str, tier: Tier, evidence: str, cure: str) -> Report:
    """The report of a target that this machine could not look at."""
    finding = Finding(check="verify", verdict=FindingVerdict.SKIPPED, evidence=evidence, cure=cure)
    return Report(target=target, tier=tier, verdict=Verdict.ENVIRONMENT, findings=(finding,))


def with_target(report: Report, target: str) -> Report:
    """The same report, about `target` by the name the user gave it."""
    return msgspec.structs.replace(report, target=target)


def encode(report: Report) -> str:
    """The report as one JSON object, as `ort-verify` writes it."""
    return msgspec.json.encode(report).decode()
