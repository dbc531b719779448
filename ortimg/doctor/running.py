"""Runs a program under a time limit and watches how it ends. Nothing of it is left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from ortimg.core.doctor.ending import Ending
from ortimg.core.doctor.facts import FAMILY
from ortimg.core.doctor.findings import printable
from ortimg.doctor.targets import mapped_files
from ortimg.errors import ConfigError

_ADOPT = 36  # PR_SET_CHILD_SUBREAPER: what leaves its parent becomes our child, prctl(2)
_SHOWN = 300  # letters of the last line
_CHUNK = 1 << 16
_FIRST, _LAST = 1 << 23, 1 << 20  # bytes of a stream that are kept
_LINGER = 2  # seconds


class _Kept(threading.Thread):
    """Reads what a program writes, to its end: the first and the last of it are kept."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        assert stream is not None
        self._stream = stream
        self._first = bytearray()
        self._last: deque[bytes] = deque(maxlen=_LAST // _CHUNK)
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(self._stream.fileno(), _CHUNK):
                room = _FIRST - len(self._first)
                self._first += piece[:room]
                if len(piece) > room:
                    self._last.append(piece[room:])

    def content(self) -> bytes:
        self.join(_LINGER)  # what went on in the background may keep it open
        return bytes(self._first) + b"".join(self._last)


class _Held:
    """Ctrl-C and SIGTERM wait: between a fork and its end in Popen they would leave the program behind."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._came: list[int] = []
        main = threading.current_thread() is threading.main_thread()
        self._before = {one: signal.signal(one, self._note) for one in self._SIGNALS} if main else {}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._came.append(number)

    def release(self) -> None:
        """From here on they act again; KeyboardInterrupt where one came."""
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._came:
            raise KeyboardInterrupt


def run_watched(command: Sequence[str], seconds: float) -> tuple[Ending, bytes]:
    """How it ended, and what it wrote. Raises ConfigError where it cannot be started."""
    words = shlex.join(command)
    words = words if len(words) <= 80 else f"{words[:77]}..."
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    held = _Held()
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        held.release()
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"{printable(command[0])} cannot be run: {why}", hint="Write it as --run -- PROGRAM ARGUMENT…"
        ) from None
    threads: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    try:
        held.release()
        out, err = _Kept(process.stdout), _Kept(process.stderr)
        status: int | None = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        status = None
        threads, mapped = _where(process.pid)
    finally:
        if process.poll() is None:
            _end(process)
    said, errors = out.content(), err.content()
    if status is not None and status < 0:
        status = 128 - status
    ending = Ending(words, status, _last(errors) or _last(said), seconds, threads, mapped)
    return ending, said + b"\n" + errors


def _last(raw: bytes) -> str:
    lines = [line for line in raw[-65536:].decode("utf-8", "replace").splitlines() if line.strip()]
    text = " ".join(lines[-1].split()) if lines else ""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _where(pid: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where the threads of the program and its children wait, and what they have mapped."""
    places: Counter[str] = Counter()
    mapped: dict[str, None] = {}
    for one in (pid, *_descendants(pid)):
        for task in Path(f"/proc/{one}/task").glob("*"):
            with contextlib.suppress(OSError):
                places[_state(task)] += 1
        with contextlib.suppress(OSError):
            for path in mapped_files(Path(f"/proc/{one}/maps").read_text(errors="replace")):
                if FAMILY.fullmatch(path.rpartition("/")[2]):
                    mapped[path] = None
    listed = tuple(
        f"{count} in {name}" if count > 1 else f"1 in {name}" for name, count in places.most_common(5)
    )
    return listed, tuple(mapped)


def _state(task: Path) -> str:
    """`futex_wait_queue`, where the kernel tells it; else `sleep`, `run`, …"""
    with contextlib.suppress(OSError):
        place = (task / "wchan").read_text().strip("\0\n ")
        if place and place != "0":
            return place
    letter = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    return {"R": "computation", "S": "sleep", "D": "a wait for the disk or driver"}.get(
        letter, f"state {letter}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the program, its session, and whatever of it became our child."""
    left = _descendants(process.pid)
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            done, _ = os.waitpid(-1, os.WNOHANG)
            if done:
                continue
        if not any(Path(f"/proc/{pid}").exists() for pid in left):
            return
        time.sleep(0.02)


def _descendants(pid: int) -> list[int]:
    return [*_below(pid, _parents())]


def _below(pid: int, parents: dict[int, list[int]]) -> Iterator[int]:
    for child in parents.get(pid, ()):
        yield child
        yield from _below(child, parents)


def _parents() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = re.sub(r"^\d+ \(.*\) ", "", path.read_text(errors="replace"), flags=re.DOTALL).split()
            found.setdefault(int(fields[1]), []).append(int(path.parent.name))
    return found
