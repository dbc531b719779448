"""Runs `docker buildx build|bake` and tells what happens while it happens.

The docker SDK speaks the classic builder only (https://github.com/docker/docker-py/issues/2230).
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ortimg.engine.failure import BuildFailure, failure_of
from ortimg.engine.rawjson import BuildEvent, EventKind, RawJsonParser

# Seconds after a cancel at which each signal is sent: buildx tells the engine to stop on the first.
_ESCALATION = ((0.0, signal.SIGINT), (8.0, signal.SIGTERM), (12.0, signal.SIGKILL))
_KILL_LIMIT = 10.0  # seconds that killed processes have to be gone; one that hangs in the kernel stays
_POLL = 0.1  # seconds between looks at the cancel event


@dataclass(frozen=True)
class BuildOutcome:
    """How a build ended."""

    ok: bool
    cancelled: bool
    returncode: int
    seconds: float
    log: Path
    failure: BuildFailure | None = None  # None where it passed or was cancelled


def run_build(
    args: Sequence[str],
    *,
    on_event: Callable[[BuildEvent], None],
    log: Path,
    cancel: threading.Event,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> BuildOutcome:
    """Runs `docker buildx ARGS`, `args` beginning with `build` or `bake`; never raises for a failed build.

    `log` gets the whole plain log; `env` is added to the environment. Setting `cancel` ends the build, and no
    process is left when this returns, also when `on_event` raises.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # Provenance holds times: with it each build has another digest.
    environment = {**os.environ, "BUILDX_NO_DEFAULT_ATTESTATIONS": "1", **(env or {})}
    if not _can_keep(_state_folder(environment)):
        environment["BUILDX_CONFIG"] = str(log.parent / "buildx")
    command = ["docker", "buildx", args[0], "--progress=rawjson", *args[1:]]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    )
    assert process.stderr is not None
    parser = RawJsonParser()
    canceller = _Canceller(process, cancel)
    try:
        with log.open("w", encoding="utf-8") as file:
            for data in _chunks(process.stderr, canceller):
                for event in parser.feed(data):
                    _tell(event, file, on_event)
            for event in parser.end():
                _tell(event, file, on_event)
        returncode = canceller.wait()
    finally:
        process.stderr.close()
        _end_session(process)
    cancelled = canceller.asked and returncode != 0
    failed = returncode != 0 and not cancelled
    return BuildOutcome(
        ok=returncode == 0,
        cancelled=cancelled,
        returncode=returncode,
        seconds=time.monotonic() - began,
        log=log,
        failure=failure_of(parser, returncode) if failed else None,
    )


def _state_folder(environment: Mapping[str, str]) -> Path:
    """Where buildx keeps builders and more: https://docs.docker.com/build/building/variables/#buildx_config"""
    if folder := environment.get("BUILDX_CONFIG"):
        return Path(folder)
    docker = environment.get("DOCKER_CONFIG")
    return (Path(docker) if docker else Path.home() / ".docker") / "buildx"


def _can_keep(state: Path) -> bool:
    """Whether buildx may write its state: else it builds nothing. A folder that is there is the user's."""
    if state.exists():
        return True
    there = next(folder for folder in state.absolute().parents if folder.exists())
    return os.access(there, os.W_OK)


class _Canceller:
    """Sends the next signal when its time has come, once a cancel was asked for."""

    def __init__(self, process: subprocess.Popen[bytes], cancel: threading.Event) -> None:
        self._process = process
        self._cancel = cancel
        self._asked_at: float | None = None
        self._pending = list(_ESCALATION)

    @property
    def asked(self) -> bool:
        return self._asked_at is not None

    def look(self) -> None:
        if self._asked_at is None:
            if not self._cancel.is_set():
                return
            self._asked_at = time.monotonic()
        while self._pending and time.monotonic() - self._asked_at >= self._pending[0][0]:
            _signal_session(self._process.pid, self._pending.pop(0)[1])

    def wait(self) -> int:
        while (returncode := self._process.poll()) is None:
            self.look()
            time.sleep(_POLL / 5)
        return returncode


def _chunks(stream: IO[bytes], canceller: _Canceller) -> Iterator[bytes]:
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            canceller.look()
            if not selector.select(_POLL):
                continue
            data = os.read(stream.fileno(), 1 << 16)
            if not data:
                return
            yield data


def _tell(event: BuildEvent, log: IO[str], on_event: Callable[[BuildEvent], None]) -> None:
    log.write(plain_line(event) + "\n")
    if event.kind is not EventKind.LOG:
        log.flush()
    on_event(event)


def plain_line(event: BuildEvent) -> str:
    """The event as a line of a plain log."""
    took = f" {event.seconds:.1f}s" if event.seconds is not None else ""
    text = {
        EventKind.STARTED: event.step,
        EventKind.DONE: "CACHED" if event.cached else f"DONE{took}",
        EventKind.FAILED: f"ERROR{took}: {event.text}",
        EventKind.WARNING: f"WARNING: {event.text}",
    }.get(event.kind, event.text)
    return text if event.kind is EventKind.PLAIN else f"#{event.number} {text}"


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Returns when no process of the session is left: one that was killed takes a moment to go."""
    limit = time.monotonic() + _KILL_LIMIT
    while _signal_session(process.pid, signal.SIGKILL) and time.monotonic() < limit:
        time.sleep(0.02)
    process.wait()


def _signal_session(session: int, number: signal.Signals) -> int:
    """Signals each process of a session, gives how many there were.

    Not the process group: the docker client may give its plugin a group of its own.
    """
    found = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":  # proc_pid_stat(5): state, ppid, pgrp, session
                found += 1
                os.kill(int(entry.name), number)
    return found
