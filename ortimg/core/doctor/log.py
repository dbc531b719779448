"""Reads a log of ONNX Runtime, or an error text, and says which of the known faults are in it.

The faults are rows of log-faults.yaml, causes before consequences. A row's pattern is tried on lines that
hold one of its words, so that a log of 50 MB takes seconds, not minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from ortimg.core.doctor.findings import Found, fail
from ortimg.core.doctor.log_memory import ArenaStory
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.options import size_words
from ortimg.errors import ConfigError
from ortimg.verify.report import FindingVerdict

ERROR_35 = "error-35"  # the row whose cause other facts decide
_SHOWN = 200  # letters of a line in the evidence
# What a line looks like that tells of a failure, and of one whose cause stands elsewhere.
_TROUBLE = re.compile(
    r"\[[EF]:onnxruntime|\[ONNXRuntimeError\]|\b(?:CUDA|CUDNN|CUBLAS) failure \d+|Ort::Exception|\bCUDA error"
    r"|\bCU(?:DNN|BLAS|FFT|RAND)_(?:STATUS_)?(?!STATUS_)[A-Z_]*(?:ERROR|FAIL|MISMATCH)"
    r"|error while loading shared libraries|^(?:\w+\.)*\w*(?:Error|Exception): "
)
_WORDS = (
    *("[E:", "[F:", "ONNXRuntimeError", " failure ", "Ort::", "CUDA error", "error while loading"),
    *("CUDNN_", "CUBLAS_", "CUFFT_", "CURAND_", "Error: ", "Exception: "),
)
_OUTER = re.compile(r"^Traceback \(most recent|^terminate called")
_OUTER_WORDS = ("Traceback", "terminate called")


class LogFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of log-faults.yaml."""

    name: str
    has: tuple[str, ...]  # one of these words is in the line
    pattern: str  # regular expression; named groups may stand in `says` and `cure` as {group}
    verdict: FindingVerdict
    machine: bool = False  # driver, GPU or engine at fault, not the image
    consequence: bool = False  # of another fault: only a warning where one was found
    above: dict[str, int] = {}  # group → the number in it is larger
    below: dict[str, int] = {}  # group → the number in it is smaller
    says: str
    cure: str
    source: str | None = None


class _Row:
    """A fault, and where it was seen."""

    def __init__(self, fault: LogFault) -> None:
        self.fault = fault
        self.pattern = re.compile(fault.pattern)
        self.count = 0
        self.line = 0
        self.text = ""
        self.groups: dict[str, str] = {}

    def take(self, text: str) -> bool:
        match = self.pattern.search(text)
        if match is None or not self._in_range(match):
            return False
        self.count += 1
        if self.count == 1:
            self.text = text
            self.groups = {key: value or "" for key, value in match.groupdict().items()}
        return True

    def _in_range(self, match: re.Match[str]) -> bool:
        return all(int(match[key]) > number for key, number in self.fault.above.items()) and all(
            int(match[key]) < number for key, number in self.fault.below.items()
        )

    def words(self, text: str) -> str:
        values = dict(self.groups)
        if values.get("bytes", "").isdecimal():
            values["size"] = size_words(int(values["bytes"]))
        return text.format_map(values)


def parse_faults(raw: bytes) -> tuple[LogFault, ...]:
    """Rows of log-faults.yaml. Raises ConfigError."""
    try:
        data: Any = yaml.load(raw, yaml.CSafeLoader)
        return msgspec.convert(data["faults"], tuple[LogFault, ...])
    except (yaml.YAMLError, msgspec.ValidationError, TypeError, KeyError) as error:
        raise ConfigError(f"catalogue log-faults.yaml: {' '.join(str(error).split())}") from None


def parse_loader_words(raw: bytes) -> dict[str, str]:
    """What loader-words.yaml has: words of another language → English. Raises ConfigError."""
    try:
        data: Any = yaml.load(raw, yaml.CSafeLoader)
        rows = msgspec.convert(data, dict[str, dict[str, str]])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(f"catalogue loader-words.yaml: {' '.join(str(error).split())}") from None
    return {words: english for english, others in rows.items() for words in others.values()}


class LogReader:
    """Give it the log piece by piece, then ask for the findings.

    `loader_words`: words of other languages → the English ones that the faults know.
    """

    def __init__(self, faults: Sequence[LogFault], loader_words: Mapping[str, str] | None = None) -> None:
        self._loader_words = loader_words or {}
        self._rows = [_Row(fault) for fault in faults]
        self._memory = ArenaStory()
        self._lines = 0
        self._unknown: tuple[int, str] | None = None
        self._outer: tuple[int, str] | None = None

    def read(self, text: str) -> None:
        """A piece of the log, of whole lines."""
        if ".so" in text:
            for words, english in self._loader_words.items():
                text = text.replace(words, english)
        known: set[int] = set()
        for row in self._rows:
            for start, end in dict.fromkeys(_lines_with(text, row.fault.has)):
                if row.take(text[start:end]):
                    known.add(start)
                    row.line = row.line or self._lines + 1 + text.count("\n", 0, start)
        self._unknown = self._unknown or self._first(text, _WORDS, _TROUBLE, known)
        self._outer = self._outer or self._first(text, _OUTER_WORDS, _OUTER, known)
        self._memory.read(text)
        self._lines += text.count("\n") or bool(text)

    def _first(
        self, text: str, words: Sequence[str], pattern: re.Pattern[str], known: set[int]
    ) -> tuple[int, str] | None:
        """Number and text of the first line with trouble that no fault explains."""
        for start, end in _lines_with(text, words):
            if start not in known and pattern.search(text[start:end]):
                return self._lines + 1 + text.count("\n", 0, start), text[start:end]
        return None

    def saw(self, name: str) -> bool:
        """Whether the fault of this name is in the log."""
        return any(row.count and row.fault.name == name for row in self._rows)

    def evidence(self, name: str) -> str:
        """Where that fault stands in the log."""
        return next((_where(row) for row in self._rows if row.fault.name == name and row.count), "")

    def findings(self) -> Iterator[Found]:
        """Causes first. The row `error-35` is left to `error35.py`."""
        seen = [row for row in self._rows if row.count]
        caused = any(row.fault.verdict is FindingVerdict.FAIL and not row.fault.consequence for row in seen)
        for row in seen:
            fault = row.fault
            if fault.name == ERROR_35:
                continue
            verdict = fault.verdict
            if verdict is FindingVerdict.FAIL and fault.consequence and caused:
                verdict = FindingVerdict.WARNING
            yield Found(
                Check.LOG,
                verdict,
                f"{row.words(fault.says)} ({_where(row)})",
                row.words(fault.cure),
                machine=fault.machine and verdict is FindingVerdict.FAIL,
                fault=fault.name,
            )
        yield from self._memory.findings()
        failed = any(row.fault.verdict is FindingVerdict.FAIL for row in seen)
        unknown = self._unknown or (None if seen else self._outer)
        if unknown is not None and not failed:
            number, text = unknown
            yield fail(Check.LOG_UNKNOWN, f"an error that is not in the list: line {number}: {_cut(text)}")
        elif not seen:
            yield Found(
                Check.LOG,
                FindingVerdict.OK,
                f"none of the {len(self._rows)} known faults in {self._lines} lines",
            )


def _lines_with(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each line that holds one of the words; a line may come once a word."""
    for word in words:
        place = text.find(word)
        while place >= 0:
            start = text.rfind("\n", 0, place) + 1
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            yield start, end
            place = text.find(word, end)


def _where(row: _Row) -> str:
    more = f", {row.count - 1} more" if row.count > 1 else ""
    return f"line {row.line}{more}: {_cut(row.text)}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
