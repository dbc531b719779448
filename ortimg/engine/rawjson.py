"""The stream of `docker buildx … --progress=rawjson`, read as it comes.

Each message is a JSON object of vertexes (steps), statuses, logs and warnings, BuildKit's `SolveStatus`:
https://github.com/moby/buildkit/blob/v0.13.1/client/graph.go. buildx 0.13 writes it over many indented lines,
later ones on one line each; the command's own words (the end of a failed build) are plain lines in between.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

KEPT_LINES = 40  # last output lines that are kept of each step


class EventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    LOG = "log"
    WARNING = "warning"
    PLAIN = "plain"  # a line that is no JSON


@dataclass(frozen=True)
class BuildEvent:
    """One thing that happened in a build."""

    kind: EventKind
    step: str = ""  # "[ort 2/3] RUN …"
    text: str = ""  # LOG, WARNING, PLAIN: the line; FAILED: BuildKit's error
    seconds: float | None = None  # DONE and FAILED
    cached: bool = False
    number: int = 0  # of the step, in the order in which steps began


@dataclass
class Step:
    """What is known of one step."""

    name: str
    number: int = 0
    started: bool = False
    done: bool = False
    error: str | None = None
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    unfinished: dict[int, bytes] = field(default_factory=dict)  # stream: a line without its end


class RawJsonParser:
    """Feed it bytes, get events; truncated and foreign lines do no harm."""

    def __init__(self) -> None:
        self.steps: dict[str, Step] = {}  # by digest
        self.plain_lines: deque[str] = deque(maxlen=200)
        self._rest = b""
        self._message: list[bytes] = []  # lines of an object whose end has not come yet
        self._begun = 0

    def feed(self, data: bytes) -> Iterator[BuildEvent]:
        """Events of the complete lines in `data`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield from self._line(line)

    def end(self) -> Iterator[BuildEvent]:
        """Events of what is left when the stream ends, a line without its end included."""
        if self._rest:
            yield from self._line(self._rest)
        self._rest, self._message = b"", []
        for step in self.steps.values():
            yield from self._flush(step)

    @property
    def failed_step(self) -> Step | None:
        """The step that failed; steps that were only cancelled because of it do not count."""
        failed = [step for step in self.steps.values() if step.error]
        own = [step for step in failed if "context canceled" not in (step.error or "")]
        return next(iter(own or failed), None)

    def _line(self, line: bytes) -> Iterator[BuildEvent]:
        line = line.rstrip(b"\r")
        if line.startswith(b"{"):  # a message begins; one whose end never came is dropped
            self._message = [line]
        elif self._message and (line[:1] in (b" ", b"\t", b"}")):
            self._message.append(line)
        else:
            self._message = []
            yield from self._foreign(line)
            return
        if line.endswith(b"}") and (len(self._message) == 1 or line == b"}"):
            yield from self._end_of_message()

    def _end_of_message(self) -> Iterator[BuildEvent]:
        raw, self._message = b"\n".join(self._message), []
        try:
            message = json.loads(raw)
        except ValueError:
            yield from self._foreign(raw)
            return
        yield from self._message_events(message)

    def _foreign(self, line: bytes) -> Iterator[BuildEvent]:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            self.plain_lines.append(text)
            yield BuildEvent(EventKind.PLAIN, text=text)

    def _message_events(self, message: dict[str, Any]) -> Iterator[BuildEvent]:
        # A step can end and start again within one message: its last state is the one that counts.
        latest = {vertex.get("digest", ""): vertex for vertex in message.get("vertexes") or ()}
        for digest, vertex in latest.items():
            if not (vertex.get("completed") or vertex.get("error")):
                yield from self._vertex(digest, vertex)
        for log in message.get("logs") or ():
            yield from self._log(log)
        for warning in message.get("warnings") or ():
            step = self.steps.get(warning.get("vertex", ""))
            text = _decode(warning.get("short")).decode("utf-8", "replace").strip()
            yield BuildEvent(
                EventKind.WARNING, step.name if step else "", text, number=step.number if step else 0
            )
        for digest, vertex in latest.items():
            if vertex.get("completed") or vertex.get("error"):
                yield from self._vertex(digest, vertex)

    def _vertex(self, digest: str, vertex: dict[str, Any]) -> Iterator[BuildEvent]:
        step = self.steps.setdefault(digest, Step(vertex.get("name", "")))
        if vertex.get("started") and not step.started:
            self._begun += 1
            step.started, step.number = True, self._begun
            yield BuildEvent(EventKind.STARTED, step.name, number=step.number)
        error = vertex.get("error") or None
        if step.done or not (vertex.get("completed") or error):
            return
        yield from self._flush(step)
        step.done, step.error = True, error
        yield BuildEvent(
            EventKind.FAILED if error else EventKind.DONE,
            step.name,
            error or "",
            _seconds(vertex.get("started"), vertex.get("completed")),
            bool(vertex.get("cached")),
            step.number,
        )

    def _log(self, log: dict[str, Any]) -> Iterator[BuildEvent]:
        step = self.steps.setdefault(log.get("vertex", ""), Step(""))
        stream = int(log.get("stream") or 0)
        data = step.unfinished.pop(stream, b"") + _decode(log.get("data"))
        *lines, rest = data.split(b"\n")
        if rest:
            step.unfinished[stream] = rest
        for line in lines:
            yield self._log_event(step, line)

    def _flush(self, step: Step) -> Iterator[BuildEvent]:
        for line in step.unfinished.values():
            yield self._log_event(step, line)
        step.unfinished.clear()

    def _log_event(self, step: Step, line: bytes) -> BuildEvent:
        # A progress bar rewrites its line after a carriage return: what is seen at the end is kept.
        text = line.decode("utf-8", "replace").rstrip().rpartition("\r")[2]
        step.last_lines.append(text)
        return BuildEvent(EventKind.LOG, step.name, text, number=step.number)


def _decode(data: str | None) -> bytes:
    try:
        return base64.b64decode(data or "", validate=True)
    except ValueError:
        return b""


def _seconds(started: str | None, completed: str | None) -> float | None:
    if not started or not completed:
        return None
    return max(0.0, (_time(completed) - _time(started)).total_seconds())


def _time(text: str) -> datetime:
    # Go writes up to nine digits of a second's fraction, Python reads six.
    head, dot, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(head + dot + fraction[:6].ljust(6, "0") if dot else head)
