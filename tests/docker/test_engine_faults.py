"""The engine dies in the middle of a build, or its disk gets full: a second, real engine."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from own_engine import OwnEngine, own_engine
from small import BASE, CELLS, Parts, Small, rows_of, runs, small_parts, small_project, units_of

from ortimg.engine.client import Engine
from ortimg.errors import ExitCode

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="only root starts a dockerd"),
]
ONE, TWO = CELLS
DATA = 60_000_000  # bytes that a step writes


@dataclass
class World:
    """An engine that holds the base and the units of the small project: to make them is no part of this."""

    parts: Parts
    engine: OwnEngine
    cache: Path  # with the inputs in it

    def project(self, folder: Path, step: str) -> Small:
        """A project whose first cell is built, and whose second cell has one more step."""
        name = f"faults-{folder.name.replace('_', '-').lower()}"
        found = small_project(folder, self.parts, name, self.cache)
        found.more["DOCKER_HOST"] = self.engine.host
        done, rows = found.build(ONE)
        assert done.returncode == ExitCode.DONE, done.stderr
        assert rows[ONE]["result"] == "built"
        found.step(step)
        return found


@pytest.fixture(scope="module")
def world(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with small_parts(tmp_path_factory.mktemp("parts"), engine) as parts:
        first = small_project(tmp_path_factory.mktemp("first"), parts, "faults")
        done, _ = first.build(ONE)
        assert done.returncode == ExitCode.DONE, done.stderr
        with own_engine(tmp_path_factory.mktemp("e")) as own:
            own.load([BASE, *units_of(first, engine)])
            engine.remove(first.image(ONE))
            yield World(parts, own, first.cache)


def run_until(
    project: Small, reached: Callable[[], object], then: Callable[[], object]
) -> tuple[int, str, str]:
    """`ortimg build --json`, and `then` as soon as `reached`; its exit code, its stdout and its stderr."""
    with project.start("build", "--json") as running:
        limit = time.monotonic() + 60
        while not reached() and running.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)
        then()
        out, err = running.communicate(timeout=120)
    return running.returncode, out, err


def test_an_engine_that_is_killed_in_the_middle_of_a_build(world: World, tmp_path: Path) -> None:
    nap = f"2.{os.getpid()}"
    project = world.project(tmp_path, f"sleep {nap}")
    try:
        code, out, err = run_until(project, lambda: runs("sleep", nap), world.engine.kill)
    finally:
        world.engine.start()
    assert code == ExitCode.ENVIRONMENT, out + err
    rows = rows_of(out, err)
    assert rows[ONE]["result"] == "unchanged"  # known before the engine died
    assert rows[TWO]["result"] == "failed"
    assert world.engine.images(project.repository) == {ONE}  # the earlier image, and nothing wrong

    done = project.ortimg("build", "--resume")
    rows = rows_of(done.stdout, done.stderr)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert (rows[ONE]["result"], rows[TWO]["result"]) == ("unchanged", "built")
    assert {ONE, TWO} <= world.engine.images(project.repository)


WRITE = f"head -c {DATA} /dev/urandom >/of-a-test"


@pytest.mark.parametrize(
    "step",
    ["sleep {nap}; " + WRITE, WRITE + "; sleep {nap}"],
    ids=["while a step writes", "while the image is stored"],
)
def test_an_engine_whose_disk_gets_full(world: World, tmp_path: Path, step: str) -> None:
    nap = f"2.{os.getpid()}"
    project = world.project(tmp_path, step.format(nap=nap))
    try:
        code, out, err = run_until(
            project, lambda: runs("sleep", nap), lambda: world.engine.leave_free(DATA // 3)
        )
        assert code == ExitCode.ENVIRONMENT, out + err
        rows = rows_of(out, err)
        assert rows[ONE]["result"] == "unchanged"
        assert rows[TWO]["result"] == "failed"
        cause = rows[TWO]["cause"].lower()
        assert "no space left on device" in cause or "full disk" in cause
        assert world.engine.images(project.repository) == {ONE}
    finally:
        world.engine.resize(4 << 30)
    done, rows = project.build()
    assert done.returncode == ExitCode.DONE, done.stderr
    assert (rows[ONE]["result"], rows[TWO]["result"]) == ("unchanged", "built")
