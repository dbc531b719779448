"""Other programs: told apart by how they end, stopped with us, installed only where that is allowed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, StoppedError
from ortimg.inputs.process import ProgramFailedError, need, run


def test_output_of_both_streams() -> None:
    assert run(("sh", "-c", "echo a; echo b >&2"), stop=threading.Event()) == "a\nb\n"


def test_a_failure_has_its_status_and_last_lines() -> None:
    with pytest.raises(ProgramFailedError) as caught:
        run(("sh", "-c", "for i in 1 2 3 4 5; do echo line $i; done; exit 7"), stop=threading.Event())
    assert caught.value.status == 7
    assert caught.value.tail == "line 3 | line 4 | line 5"
    assert str(caught.value).startswith("sh failed (exit status 7)")


def test_a_program_that_does_not_end() -> None:
    with pytest.raises(ProgramFailedError, match=r"no end after 0 s"):
        run(("sleep", "600"), stop=threading.Event(), seconds=0.1)


def test_stopping_ends_the_children_too(tmp_path: Path) -> None:
    stop, child = threading.Event(), tmp_path / "child"

    def look() -> None:
        if child.exists():
            stop.set()

    with pytest.raises(StoppedError):
        run(
            ("sh", "-c", f"sleep 600 & echo $! > {child}.new; mv {child}.new {child}; wait"),
            stop=stop,
            tick=look,
        )
    assert _gone(int(child.read_text()))


def _run_for_long(pid_file: str) -> None:
    command = ("sh", "-c", f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 600")
    run(command, stop=threading.Event())


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv here")
def test_a_killed_run_leaves_no_program_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    process = multiprocessing.get_context("spawn").Process(target=_run_for_long, args=(str(pid_file),))
    process.start()
    while not pid_file.exists():
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert _gone(int(pid_file.read_text()))


def test_a_missing_program_names_the_command_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no apt-get here
    with pytest.raises(EnvironmentFault) as caught:
        need("mvn", "maven", cache=Cache(tmp_path), say=print, stop=threading.Event())
    assert caught.value.message == "mvn is not installed"
    assert "apt-get install maven" in (caught.value.hint or "")


def _gone(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # ended; nobody collects it in a container without an init
            return True
        time.sleep(0.01)
    return False
