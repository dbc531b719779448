"""A comparison as text and as JSON."""

from __future__ import annotations

from typing import Any

from ortimg.core.compare_model import Comparison, Finding, Outcome, Side
from ortimg.verify.report import FindingVerdict as Verdict

SCHEMA = 1  # of the JSON; more keys may come, none goes
_ORDER = (Verdict.OK, Verdict.SKIPPED, Verdict.WARNING, Verdict.FAIL)
_WORDS = {Verdict.OK: "ok", Verdict.SKIPPED: "unknown", Verdict.WARNING: "differs", Verdict.FAIL: "ACT"}
_WIDTH = 33  # columns before the evidence


def as_data(comparison: Comparison) -> dict[str, Any]:
    """The object of `compare --json`."""
    return {
        "schema": SCHEMA,
        "old": _side(comparison.old),
        "new": _side(comparison.new),
        "verdict": comparison.outcome.value,
        "findings": [
            {"check": one.check, "verdict": one.verdict.value, "evidence": one.evidence, "cure": one.cure}
            for one in comparison.findings
        ],
    }


def _side(side: Side) -> dict[str, str | None]:
    return {
        "name": side.name,
        "source": side.source.value,
        "ort": side.ort,
        "cuda": side.cuda,
        "cudnn": side.cudnn,
        "soname": side.soname,
    }


def as_text(comparison: Comparison) -> str:
    """Findings, those to act on last, and one line that says what it comes to."""
    text = f"OLD {_title(comparison.old)}\nNEW {_title(comparison.new)}\n"
    for verdict in _ORDER:
        for finding in comparison.of(verdict):
            text += _line(finding)
    return f"{text}  {verdict_line(comparison)}\n"


def _title(side: Side) -> str:
    parts = [f"ONNX Runtime {side.ort}" if side.ort else "ONNX Runtime of an unknown version"]
    parts += [f"CUDA {side.cuda}"] if side.cuda else []
    parts += [f"cuDNN {side.cudnn}"] if side.cudnn else []
    return f"{side.name} ({side.source.value}): {', '.join(parts)}"


def _printable(text: str) -> str:
    """File names and symbols come from anywhere: nothing of them may steer a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _line(finding: Finding) -> str:
    text = f"  {_WORDS[finding.verdict]:8}{finding.check:22} {_printable(finding.evidence)}\n"
    if finding.cure and finding.verdict is not Verdict.OK:
        label = "do" if finding.verdict is Verdict.FAIL else "hint"
        text += f"{'':{_WIDTH}}{label}: {_printable(finding.cure)}\n"
    return text


def verdict_line(comparison: Comparison) -> str:
    """`drop-in`, or what must be done, with what is not known said beside it."""
    unknown = list(dict.fromkeys(one.check for one in comparison.of(Verdict.SKIPPED)))
    beside = f"; not known: {', '.join(unknown)}" if unknown else ""
    if comparison.outcome is Outcome.DROP_IN:
        return f"drop-in: nothing to act on{beside}"
    act = list(dict.fromkeys(one.check for one in comparison.of(Verdict.FAIL)))
    return f"ACTION NEEDED: {', '.join(act)}{beside}"
