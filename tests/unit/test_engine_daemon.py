"""What a killed daemon leaves behind must not keep the next one from starting."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ortimg.engine.daemon import forget_the_dead


def named_sleep(name: str) -> subprocess.Popen[bytes]:
    """A process that sleeps under another name."""
    script = (
        f"import ctypes, sys, time; ctypes.CDLL(None).prctl(15, b'{name}'); print(flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_the_file_of_a_process_that_is_gone_goes(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    file = tmp_path / "pid"
    file.write_text(str(ended.pid))
    forget_the_dead(file, "dockerd")
    assert not file.exists()


def test_the_file_goes_when_its_process_id_is_somebody_elses(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    file.write_text(str(os.getpid()))
    forget_the_dead(file, "dockerd")
    assert not file.exists()


def test_a_zombie_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    daemon = named_sleep("dockerd")
    daemon.kill()
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has collected it
    file = tmp_path / "pid"
    file.write_text(str(daemon.pid))
    forget_the_dead(file, "dockerd", patience=0.3)
    assert not file.exists()
    daemon.communicate()


def test_a_daemon_that_runs_keeps_its_file(tmp_path: Path) -> None:
    daemon = named_sleep("dockerd")
    file = tmp_path / "pid"
    file.write_text(str(daemon.pid))
    forget_the_dead(file, "dockerd", patience=0.1)
    assert file.exists()
    daemon.kill()
    daemon.communicate()


def test_no_file_is_fine(tmp_path: Path) -> None:
    forget_the_dead(tmp_path / "absent", "dockerd")
