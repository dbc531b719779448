"""The engine's own Dockerfile frontend reads every committed Dockerfile; its linter too, where it has one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ortimg.core.stages import split_stages
from ortimg.factory.disk import builder_name

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
DOCKERFILES = sorted((ROOT / "dockerfiles").glob("*/Dockerfile"))


def buildx(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "buildx", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def has_check() -> bool:
    """`--check` came with buildx 0.15 and needs Dockerfile frontend 1.8."""
    return "--check" in buildx("build", "--help").stdout


def test_there_is_something_to_read() -> None:
    assert DOCKERFILES


def asked(path: Path) -> list[str]:
    """The stages as the frontend sees them; buildx older than 0.14 calls `--call` `--print`."""
    option = "--call" if "--call" in buildx("build", "--help").stdout else "--print"
    process = buildx(
        "build",
        f"--builder={builder_name()}",
        f"{option}=targets,format=json",
        "--output=type=cacheonly",
        f"--file={path}",
        str(ROOT / "dockerfiles"),
        BUILDX_EXPERIMENTAL="1",
    )
    assert process.returncode == 0, process.stderr
    return [target.get("name", "") for target in json.loads(process.stdout)["targets"]]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_the_engine_reads_it_and_sees_the_stages_that_we_see(path: Path) -> None:
    assert asked(path) == [*split_stages(path.read_text("utf-8"))]


def test_a_dockerfile_that_is_none_is_noticed(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM scratch AS tools\nRUNN x\n")
    with pytest.raises(AssertionError, match="unknown instruction: RUNN"):
        asked(bad)


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_docker_build_check(path: Path) -> None:
    if not has_check():
        version = buildx("version").stdout.split()[1]
        pytest.skip(f"NOT CHECKED: buildx {version} has no `docker build --check`, it came with 0.15")
    process = buildx(
        "build", f"--builder={builder_name()}", "--check", f"--file={path}", str(ROOT / "dockerfiles")
    )
    assert process.returncode == 0, process.stdout + process.stderr
