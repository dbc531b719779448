"""Other programs: run so that they can be stopped, and installed with apt where that is allowed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, Say, StoppedError

TICK = 0.25  # seconds between two looks at a running program


class ProgramFailedError(Exception):
    """A program ended with a failure; `tail` holds its last lines, `output` all of them."""

    def __init__(self, program: str, status: int, output: str) -> None:
        self.tail = last_lines(output)
        super().__init__(f"{program} failed (exit status {status}): {self.tail}")
        self.status = status
        self.output = output


def run(
    command: Sequence[str],
    *,
    stop: threading.Event,
    env: Mapping[str, str] | None = None,
    tick: Callable[[], None] | None = None,
    seconds: float = 3600,
    outlives: bool = False,
) -> str:
    """Run `command`, calling `tick` a few times a second; returns its output, both streams together.

    It does not outlive this process, even a killed one, unless `outlives` (apt must not be cut short).
    Raises `ProgramFailedError`, and `StoppedError` after `stop` was set; the program is ended then.
    """
    program = Path(command[0]).name
    if not outlives and (setpriv := shutil.which("setpriv")):
        command = (setpriv, "--pdeathsig", "TERM", "--", *command)
    if stop.is_set():
        raise StoppedError
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        try:
            while True:
                try:
                    status = process.wait(TICK)
                    break
                except subprocess.TimeoutExpired:
                    if stop.is_set():
                        raise StoppedError from None
                    if time.monotonic() > deadline:
                        raise ProgramFailedError(program, 124, f"no end after {seconds:.0f} s") from None
                    if tick is not None:
                        tick()
        except BaseException:
            _end(process)
            raise
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status != 0:
        raise ProgramFailedError(program, status, text)
    return text


def last_lines(text: str, count: int = 3) -> str:
    """The last lines that say something, joined."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:])[:600]


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(5)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def need(program: str, package: str, *, cache: Cache, say: Say, stop: threading.Event) -> str:
    """Path of `program`; as root on Debian or Ubuntu its package is installed where it is missing, and said.

    Raises `EnvironmentFault` with the command that a person must run elsewhere.
    """
    if found := shutil.which(program):
        return found
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise EnvironmentFault(
            f"{program} is not installed", f"run: sudo apt-get install {package} (or your system's way)"
        )
    with cache.locked("apt", stop):
        if not shutil.which(program):
            say(f"{program} is missing: installing {package} with apt-get")
            apt = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300")
            env = {"DEBIAN_FRONTEND": "noninteractive"}
            # slim Debian images leave this folder out, and Java's installation fails without it
            # (https://bugs.debian.org/863199)
            Path("/usr/share/man/man1").mkdir(parents=True, exist_ok=True)
            try:
                run((*apt, "update"), stop=stop, env=env, outlives=True)
                run((*apt, "--no-install-recommends", "install", package), stop=stop, env=env, outlives=True)
            except ProgramFailedError as error:
                raise EnvironmentFault(f"apt-get cannot install {package}: {error.tail}") from error
    if found := shutil.which(program):
        return found
    raise EnvironmentFault(f"{program} is still missing after the installation of {package}")


def folder_size(folder: Path) -> int:
    """Bytes below a folder in which another program works, as of now."""
    total = 0
    for base, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size  # noqa: PTH118
            except FileNotFoundError:
                continue
    return total
