"""What a person sees of several builds at once: a table on a terminal, plain lines elsewhere.

Everything goes to stderr: stdout belongs to `--json`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_STYLES = {"built": "green", "unchanged": "cyan", "failed": "bold red", "unavailable": "yellow"}
_PLAIN_EVERY = 0.5  # seconds between two plain lines of one row: a step may report many times a second


@dataclass
class _Row:
    name: str
    began: float
    step: str = "waiting"
    ended: float | None = None
    result: str = ""
    detail: str = ""
    last_line: float = 0.0

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.began


class LiveTable:
    """Rows of cell, step, elapsed and result. Its methods may be called from any thread."""

    def __init__(self, *, stream: TextIO | None = None, terminal: bool | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = is_terminal(self._stream) if terminal is None else terminal
        self._rows: dict[str, _Row] = {}
        self._lock = threading.Lock()
        self._console: Console | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._terminal:
            from rich.console import Console
            from rich.live import Live

            # rich keeps to NO_COLOR by itself: https://no-color.org
            self._console = Console(file=self._stream, force_terminal=True)
            self._live = Live(
                get_renderable=self._table, console=self._console, refresh_per_second=4, transient=False
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def start(self, name: str) -> None:
        """A row begins; its clock starts."""
        with self._lock:
            self._rows[name] = _Row(name, time.monotonic())
        self._plain(name, "started")

    def step(self, name: str, text: str) -> None:
        """The row's present step."""
        with self._lock:
            row = self._row(name)
            if row.step == text or row.ended is not None:
                return
            row.step = text
            due = time.monotonic() - row.last_line >= _PLAIN_EVERY
            if due:
                row.last_line = time.monotonic()
        if due:
            self._plain(name, text)

    def finish(self, name: str, result: str, detail: str = "") -> None:
        """The row ends with `result` (built, unchanged, failed, …); `detail` is its cause or size."""
        with self._lock:
            row = self._row(name)
            row.ended, row.result, row.detail = time.monotonic(), result, detail
            seconds = row.seconds
        self._plain(name, f"{result} in {seconds:.1f} s" + (f": {detail}" if detail else ""))

    def say(self, text: str) -> None:
        """A line that stays, above the table."""
        if self._console is not None and self._live is not None:
            self._console.print(text, markup=False, highlight=False)
        else:
            self._write(text)

    def _row(self, name: str) -> _Row:
        return self._rows.setdefault(name, _Row(name, time.monotonic()))

    def _plain(self, name: str, text: str) -> None:
        if not self._terminal:
            self._write(f"{name}: {text}")

    def _write(self, text: str) -> None:
        with self._lock:
            self._stream.write(text + "\n")
            self._stream.flush()

    def _table(self) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("cell", no_wrap=True)
        table.add_column("step", no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column("elapsed", justify="right", no_wrap=True)
        table.add_column("result", no_wrap=True)
        with self._lock:
            rows = [
                (r.name, r.detail if r.ended else r.step, r.seconds, r.result) for r in self._rows.values()
            ]
        for name, step, seconds, result in rows:
            table.add_row(Text(name), Text(step), f"{seconds:.1f} s", Text(result, _STYLES.get(result, "")))
        return table


def is_terminal(stream: TextIO) -> bool:
    """Whether a table that redraws itself is wanted: a real terminal that is no CI log."""
    ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return stream.isatty() and not ci and os.environ.get("TERM") != "dumb"
