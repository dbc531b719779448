"""Whether a version of ONNX Runtime knows a model, by the stamps of the model alone: nothing is run.

A version takes models of every older IR version and opset, back to opset 7
(https://onnxruntime.ai/docs/reference/compatibility.html).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import yaml

from ortimg.core.versions import number
from ortimg.errors import ConfigError

STANDARD, ML = ("", "ai.onnx"), "ai.onnx.ml"  # domains; the standard one has two names


class OnnxRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest ONNX that one version knows."""

    ort: str
    ir: int
    opset: int
    ml_opset: int


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says about itself."""

    ir: int
    opsets: dict[str, int]  # domain → version


class Known(StrEnum):
    """Whether a version knows a model."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Support(msgspec.Struct, frozen=True):
    """The answer, with the reasons for anything but yes."""

    known: Known
    reasons: tuple[str, ...] = ()


def parse_onnx(raw: bytes) -> tuple[OnnxRow, ...]:
    """Rows of onnx.yaml, oldest first. Raises ConfigError."""
    try:
        data: Any = yaml.load(raw, yaml.CSafeLoader)
        rows = msgspec.convert(data["versions"], tuple[OnnxRow, ...])
    except (yaml.YAMLError, msgspec.ValidationError, TypeError, KeyError) as error:
        raise ConfigError(f"catalogue onnx.yaml: {' '.join(str(error).split())}") from None
    return tuple(sorted(rows, key=lambda row: number(row.ort)))


def support(version: str, stamp: Stamp, rows: Sequence[OnnxRow]) -> Support:
    """Whether ONNX Runtime `version` knows a model with this stamp."""
    answers = [*_answers(version, stamp, rows)]
    worst = next(
        (known for known in (Known.NO, Known.UNKNOWN) if any(a == known for a, _ in answers)), Known.YES
    )
    return Support(worst, tuple(text for known, text in answers if known is worst and worst is not Known.YES))


def _answers(version: str, stamp: Stamp, rows: Sequence[OnnxRow]) -> Iterator[tuple[Known, str]]:
    asked = [("IR version", stamp.ir, "ir")]
    for domain, opset in stamp.opsets.items():
        if domain in STANDARD:
            asked.append(("opset", opset, "opset"))
        elif domain == ML:
            asked.append((f"opset of {ML}", opset, "ml_opset"))
    for what, wanted, field in asked:
        known, limit = _limit(version, wanted, field, rows)
        text = f"the model has {what} {wanted}"
        if known is Known.NO:
            yield known, f"{text}, ONNX Runtime {version} knows up to {limit}"
        elif known is Known.UNKNOWN:
            yield known, f"{text}; whether ONNX Runtime {version} knows it was not measured"
        else:
            yield known, text


def _limit(version: str, wanted: int, field: str, rows: Sequence[OnnxRow]) -> tuple[Known, str]:
    """The answer for one number: by the row of the same minor version, else by the rows around it."""
    have = number(version)
    same = [row for row in rows if number(row.ort)[:2] == have[:2]]
    below = same or [row for row in rows if number(row.ort) < have]
    above = same or [row for row in rows if number(row.ort) > have]
    if below and wanted <= (limit := getattr(below[-1], field)):
        return Known.YES, f"{limit}"
    if above and wanted > (limit := getattr(above[0], field)):
        return Known.NO, f"{limit}" if same else f"{limit} at most"
    return Known.UNKNOWN, ""
