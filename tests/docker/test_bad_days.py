"""What a machine does on a bad day: signals, full and read-only disks, two runs at once, a wrong clock.

The project is tiny, its build is real. After each fault: the exit code, what was done before, the next run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from small import ASSET, CELLS, Parts, Small, rows_of, runs, slow_host, small_parts, small_project

from ortimg.engine.client import Engine
from ortimg.errors import ExitCode
from ortimg.inputs.cache import Cache

pytestmark = pytest.mark.engine
ONE, TWO = CELLS
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")


@pytest.fixture(scope="module")
def parts(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with small_parts(tmp_path_factory.mktemp("parts"), engine) as found:
        yield found


@pytest.fixture
def project(engine: Engine, parts: Parts, tmp_path: Path) -> Iterator[Small]:
    """Nothing is built and nothing is fetched."""
    found = small_project(tmp_path, parts, f"bad-{tmp_path.name.replace('_', '-').lower()}")
    yield found
    for image in engine.images(reference=f"{found.repository}:*"):
        for name in image.references:
            engine.remove(name)


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(disk: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)


def results(rows: dict[str, dict[str, str]]) -> list[str]:
    return [rows[cell]["result"] for cell in CELLS]


# Two at once


def test_two_builds_at_once_on_one_cache(project: Small) -> None:
    """Each input is fetched once and each unit is built once, whoever comes first."""
    both = [project.start("build", "--json") for _ in range(2)]
    ended = [running.communicate(timeout=240) for running in both]
    assert [running.returncode for running in both] == [ExitCode.DONE, ExitCode.DONE], ended
    for out, err in ended:
        assert {row["result"] for row in rows_of(out, err).values()} <= {"built", "unchanged"}
    said = "".join(err for _, err in ended)
    assert sum(path.endswith(ASSET) for path in project.parts.asked) == 1
    for unit in ("cuda", "ort"):
        assert len(re.findall(rf"^{unit}:\S+: built in", said, re.MULTILINE)) == 1, said
    _, rows = project.build()
    assert results(rows) == ["unchanged", "unchanged"]


# Signals


def interrupt(running: subprocess.Popen[str], numbers: Sequence[signal.Signals]) -> tuple[int, str]:
    """Exit code and stderr of a command to which the signals are sent, as a terminal does, one by one."""
    for number in numbers:
        os.killpg(running.pid, number)
        time.sleep(0.2)
    try:
        _, err = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        raise
    assert "Traceback" not in err, err
    return running.returncode, err


SIGNALS = [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)]
NAMES = ["SIGINT", "SIGTERM", "SIGINT twice"]


@pytest.mark.parametrize("signals", SIGNALS, ids=NAMES)
def test_a_signal_in_the_middle_of_a_fetch(project: Small, signals: tuple[signal.Signals, ...]) -> None:
    with slow_host(project.parts) as host:
        running = project.start("fetch", ORTIMG_RELEASE_MIRROR=host.url)
        assert host.asked.wait(60)
        code, _ = interrupt(running, signals)
    assert code == ExitCode.INTERRUPTED
    assert not any(name.startswith("ort/") for name in Cache(project.cache).names())
    if len(signals) == 1:  # a second one does not wait for threads to tidy up; the next run does that
        assert not any((project.cache / "tmp").iterdir())
    assert project.ortimg("fetch").returncode == ExitCode.DONE
    assert not any((project.cache / "tmp").iterdir())


@pytest.mark.parametrize("signals", SIGNALS[-1:], ids=NAMES[-1:])
def test_a_signal_in_the_middle_of_a_build(
    engine: Engine, project: Small, signals: tuple[signal.Signals, ...]
) -> None:
    assert project.build(ONE)[0].returncode == ExitCode.DONE
    nap = f"2.{os.getpid()}"
    project.step(f"sleep {nap}")
    running = project.start("build")
    while not runs("sleep", nap) and running.poll() is None:
        time.sleep(0.05)
    code, _ = interrupt(running, signals)
    assert code == ExitCode.INTERRUPTED
    assert not runs("sleep", nap)
    assert engine.inspect(project.image(TWO)) is None
    done = project.ortimg("build", "--resume")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert "1 built, 1 unchanged" in done.stdout


# Disks


@as_root
def test_a_cache_whose_disk_gets_full(project: Small, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=4g") as disk, slow_host(project.parts) as host:
        assert project.ortimg("fetch", ORTIMG_CACHE=str(disk)).returncode == ExitCode.DONE
        cache = Cache(disk)
        cache.drop(next(name for name in cache.names() if name.startswith("ort/")))
        there = {"ORTIMG_CACHE": str(disk), "ORTIMG_RELEASE_MIRROR": host.url}
        with project.start("fetch", "--json", **there) as running:
            assert host.asked.wait(60)
            resize(disk, shutil.disk_usage(disk).used + 4096)
            host.go_on.set()
            out, err = running.communicate(timeout=60)
        assert running.returncode == ExitCode.ENVIRONMENT, out + err
        assert "Traceback" not in err
        rows = {row["kind"]: row for row in json.loads(out)["inputs"]}
        assert rows["ort"]["result"] == "missing"
        assert "the disk is full" in rows["ort"]["cause"]
        assert [name.partition("/")[0] for name in cache.names() if "base/" not in name] == ["wheels"]
        # A disk that is too small from the beginning is told before anything is fetched.
        refused = project.ortimg("fetch", "--json", **there)
        assert refused.returncode == ExitCode.ENVIRONMENT
        assert "MB are needed, 0 MB are free" in refused.stdout
        resize(disk, 4 << 30)
        done = project.ortimg("fetch", "--json", **there)
        assert done.returncode == ExitCode.DONE, done.stdout + done.stderr
        rows = {row["kind"]: row for row in json.loads(done.stdout)["inputs"]}
        assert (rows["ort"]["result"], rows["cuda"]["result"]) == ("fetched", "cached")


@as_root
def test_a_home_that_cannot_be_written(project: Small, tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", "size=64k") as home:
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        where = {"HOME": str(home), "XDG_CACHE_HOME": ""}
        listed = project.ortimg("list", **where)
        assert (listed.returncode, listed.stdout.split()) == (ExitCode.DONE, [*CELLS])
        refused = project.ortimg("fetch", ORTIMG_CACHE="", **where)
        assert refused.returncode == ExitCode.ENVIRONMENT, refused.stdout
        assert "ORTIMG_CACHE" in refused.stderr
        done, rows = project.build(**where)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert results(rows) == ["built", "built"]


# The clock


def test_a_clock_that_goes_back(project: Small) -> None:
    """Half of the work is done today, the rest thirty years ago; then it is today again."""
    program = shutil.which("faketime")
    assert program, "the tests need Debian's faketime: run scripts/install-faketime.sh"
    assert project.build(ONE)[0].returncode == ExitCode.DONE
    preload = subprocess.run(
        [program, "-f", "-30y", "env"], check=True, capture_output=True, text=True
    ).stdout
    earlier = dict(
        line.split("=", 1) for line in preload.splitlines() if line.startswith(("LD_PRELOAD", "FAKETIME"))
    )
    done, rows = project.build(**earlier)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert results(rows) == ["unchanged", "built"]
    assert all(row["seconds"] >= 0 for row in rows.values())
    done, rows = project.build()
    assert results(rows) == ["unchanged", "unchanged"]
