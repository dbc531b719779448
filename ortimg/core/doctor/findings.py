"""What the doctor says: one finding a check, and the report that design.md describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from ortimg.core.doctor.names import Check
from ortimg.core.model import Tier
from ortimg.errors import ConfigError, ExitCode
from ortimg.verify.report import Finding, FindingVerdict, Verdict

SCHEMA = 1  # more keys may come, none goes
_RANK = {
    FindingVerdict.FAIL: 0,
    FindingVerdict.WARNING: 1,
    FindingVerdict.OK: 2,
    FindingVerdict.SKIPPED: 3,
}


@dataclass(frozen=True)
class Found:
    """What one check says. `machine`: the driver, the GPU or the engine is at fault, not the image.

    `about` names libraries and folders: where `ort-verify` has blamed all of them, it need not be said again.
    """

    check: Check
    verdict: FindingVerdict
    evidence: str
    cure: str | None = None  # None: that of doctor-checks.yaml
    machine: bool = False
    about: tuple[str, ...] = ()
    fault: str = ""  # of log-faults.yaml: the finding is called `log.<fault>`

    @property
    def name(self) -> str:
        return f"{self.check.value}.{self.fault}" if self.fault else self.check.value


class Advice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of doctor-checks.yaml: what a check means, and what helps in general."""

    check: Check
    means: str
    cure: str
    source: str | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """A finding in the report; `machine` is written where it is true."""

    check: str
    verdict: FindingVerdict
    evidence: str
    cure: str | None = None
    machine: bool | msgspec.UnsetType = msgspec.UNSET


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one target."""

    schema: int = SCHEMA
    target: str
    tier: Tier | msgspec.UnsetType = msgspec.UNSET  # where ort-verify was run
    verdict: Verdict
    findings: tuple[Diagnosis, ...]

    @property
    def exit_code(self) -> ExitCode:
        return self.verdict.exit_code


def ok(check: Check, evidence: str) -> Found:
    """Looked at, and sound."""
    return Found(check, FindingVerdict.OK, evidence)


def warn(check: Check, evidence: str, cure: str | None = None, *about: str, machine: bool = False) -> Found:
    """A fault that need not keep ONNX Runtime from CUDA."""
    return Found(check, FindingVerdict.WARNING, evidence, cure, machine, about)


def fail(check: Check, evidence: str, cure: str | None = None, *about: str, machine: bool = False) -> Found:
    """A fault that keeps ONNX Runtime from CUDA, or from loading at all."""
    return Found(check, FindingVerdict.FAIL, evidence, cure, machine, about)


def parse_advice(raw: bytes) -> dict[Check, Advice]:
    """Rows of doctor-checks.yaml. Raises ConfigError where one is wrong, or a check has none."""
    try:
        data: Any = yaml.load(raw, yaml.CSafeLoader)
        rows = msgspec.convert(data["checks"], tuple[Advice, ...])
    except (yaml.YAMLError, msgspec.ValidationError, TypeError, KeyError) as error:
        raise ConfigError(f"catalogue doctor-checks.yaml: {' '.join(str(error).split())}") from None
    advice = {row.check: row for row in rows}
    if lacking := [check.value for check in Check if check not in advice]:
        raise ConfigError(f"catalogue doctor-checks.yaml: no row for {', '.join(lacking)}")
    return advice


def printable(text: str) -> str:
    """`text` without control characters and bytes that are no UTF-8: logs and environments hold anything."""
    whole = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in whole)


def make_report(
    target: str, found: Iterable[Found], advice: Mapping[Check, Advice], verified: Sequence[Finding] = ()
) -> DoctorReport:
    """The findings, worst first, those of `ort-verify` with them; what that has blamed is not said twice."""
    blamed = " ".join(finding.evidence for finding in verified if finding.verdict is FindingVerdict.FAIL)
    rows = [
        Diagnosis(
            check=one.name,
            verdict=one.verdict,
            evidence=printable(one.evidence),
            cure=None if one.verdict is FindingVerdict.OK else printable(one.cure or advice[one.check].cure),
            machine=one.machine or msgspec.UNSET,
        )
        for one in dict.fromkeys(found)
        if not (one.about and all(name in blamed for name in one.about))
    ]
    rows += [
        Diagnosis(check=one.check, verdict=one.verdict, evidence=one.evidence, cure=one.cure)
        for one in verified
    ]
    rows.sort(key=lambda row: _RANK[row.verdict])
    faults = [row for row in rows if row.verdict is FindingVerdict.FAIL]
    if any(row.machine is not True for row in faults):
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.ENVIRONMENT if faults else Verdict.PASS
    return DoctorReport(target=printable(target), verdict=verdict, findings=tuple(rows))
