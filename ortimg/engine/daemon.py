"""A `dockerd` that ortimg started: where its files are, whether it still is ours, how it starts and ends.

Started by hand since a container or a small machine has no systemd. It outlives the command that started it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from ortimg.errors import EnvironmentFault

RUN_FOLDER = Path("/run/ortimg")
PID_FILE = RUN_FOLDER / "dockerd.pid"
CONTAINERD_PID_FILE = Path("/var/run/docker/containerd/containerd.pid")  # dockerd's own, below its exec-root
LOG_FILE = RUN_FOLDER / "dockerd.log"
CONFIG_FILE = RUN_FOLDER / "daemon.json"
MACHINE_CONFIG = Path("/etc/docker/daemon.json")
START_LIMIT = 60.0  # seconds
STOP_LIMIT = 40.0  # seconds: dockerd gives its containers 15 s
_PROGRAMS = ("dockerd", "containerd")  # dockerd, and the containerd that it starts


def daemon_config(machine: str | None) -> str:
    """Our daemon.json: the machine's own settings, plus the containerd image store.

    https://docs.docker.com/engine/storage/containerd/
    """
    settings = json.loads(machine) if machine else {}
    settings["features"] = {**settings.get("features", {}), "containerd-snapshotter": True}
    return json.dumps(settings, indent=2) + "\n"


def our_pid() -> int | None:
    """Process id of the dockerd that we started and that is alive, or None."""
    try:
        pid = int(PID_FILE.read_text())
    except (OSError, ValueError):
        return None
    # A pid can be handed out again: only a dockerd that names our pid file is ours.
    arguments = _command_line(pid)
    return pid if arguments and Path(arguments[0]).name == "dockerd" and str(PID_FILE) in arguments else None


def start_daemon(answers: Callable[[], bool]) -> int:
    """Starts dockerd and waits until `answers` says so; gives its process id.

    Raises EnvironmentFault with the last lines of dockerd's log where it ends or stays silent.
    """
    RUN_FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        config = daemon_config(MACHINE_CONFIG.read_text() if MACHINE_CONFIG.is_file() else None)
    except ValueError as error:
        raise EnvironmentFault(
            f"{MACHINE_CONFIG} is not JSON: {error}", "repair it, then `make engine`"
        ) from error
    CONFIG_FILE.write_text(config)
    forget_the_dead(PID_FILE, "dockerd")
    forget_the_dead(CONTAINERD_PID_FILE, "containerd")
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"}
    with LOG_FILE.open("wb") as log:
        process = subprocess.Popen(
            ["dockerd", "--config-file", str(CONFIG_FILE), "--pidfile", str(PID_FILE)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
    limit = time.monotonic() + START_LIMIT
    while time.monotonic() < limit:
        if answers():
            return process.pid
        if process.poll() is not None:
            raise EnvironmentFault(f"dockerd ended at once with status {process.returncode}: {log_tail()}")
        time.sleep(0.2)
    process.terminate()
    raise EnvironmentFault(f"dockerd did not answer within {START_LIMIT:.0f} s: {log_tail()}")


def forget_the_dead(pid_file: Path, program: str, patience: float = 10.0) -> None:
    """Removes the pid file of a killed daemon, once its process is gone (`patience` seconds at most).

    dockerd starts neither itself nor containerd while any process has the id that such a file names, and ids
    are handed out again. A daemon that runs keeps its file: dockerd says what it thinks of that.
    """
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return
    limit = time.monotonic() + patience
    while _name(pid) == program and not _command_line(pid) and time.monotonic() < limit:
        time.sleep(0.1)  # it is on its way out
    if _name(pid) != program or not _command_line(pid):
        pid_file.unlink(missing_ok=True)


def stop_daemon(pid: int) -> None:
    """Ends our dockerd and the containerd that it started. Raises EnvironmentFault where it does not end."""
    # Known by their command lines, so that a process id that is handed out again is left alone.
    family = {member: _command_line(member) for member in (pid, *_children(pid))}
    family = {member: words for member, words in family.items() if words and Path(words[0]).name in _PROGRAMS}
    _kill(pid, signal.SIGTERM)
    if not _wait_gone(family, STOP_LIMIT):
        for member, words in family.items():
            if _command_line(member) == words:
                _kill(member, signal.SIGKILL)
        if not _wait_gone(family, 10.0):
            raise EnvironmentFault(f"dockerd (process {pid}) does not end; its log is {LOG_FILE}")
    PID_FILE.unlink(missing_ok=True)


def log_tail(lines: int = 6) -> str:
    """The last lines of dockerd's log."""
    try:
        text = LOG_FILE.read_text("utf-8", "replace")
    except OSError:
        return "there is no log"
    return f"{LOG_FILE} ends with\n" + "\n".join(text.splitlines()[-lines:])


def _kill(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it ended between the look and the signal
        os.kill(pid, number)


def _name(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _command_line(pid: int) -> list[str]:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [] if state == "Z" else [part.decode("utf-8", "replace") for part in raw.split(b"\0") if part]


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, task.read_text().split())
        except OSError:
            continue
    return children


def _wait_gone(family: Mapping[int, list[str]], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while any(_command_line(pid) == words for pid, words in family.items()):
        if time.monotonic() > limit:
            return False
        time.sleep(0.1)
    return True
