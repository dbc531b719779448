"""`ortimg build` of the real cell as a user meets it: nothing to do, failures, out of reach, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real import IDENTIFIER, LDCONFIG, MARK, ROOT, RealCell, changed, ortimg
from requests.certs import where

from ortimg.engine.client import Engine
from ortimg.errors import ExitCode
from ortimg.inputs.authorities import VARIABLES
from ortimg.sources import builtin_templates

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

PARTIAL = "stages/image.j2"
NO_HUB = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}


class OwnProject:
    """A user's folder with an images.yaml of its own; its images are removed in the end."""

    def __init__(self, root: Path, repository: str) -> None:
        self.root = root
        self.repository = repository

    def configure(self, *bases: str) -> list[str]:
        """Writes images.yaml; gives the identifiers."""
        (self.root / "images.yaml").write_text(
            f'repository: {self.repository}\nmatrix:\n  ort: ["1.16.2"]\n  cuda: ["11.8"]\n  cudnn: ["8"]\n'
            f"  base: [{', '.join(bases)}]\n"
        )
        return [f"1.16.2-cuda11.8-cudnn8-{base}" for base in bases]

    def override(self, old: str, new: str) -> None:
        """A `templates/` folder with one changed partial."""
        path = self.root / "templates" / PARTIAL
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed((builtin_templates() / PARTIAL).read_text(), old, new))

    def build(self, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
        return ortimg("build", *words, cwd=self.root, **options)

    def image(self, identifier: str) -> str:
        return f"{self.repository}:{identifier}"


@pytest.fixture
def project(engine: Engine, real_cell: RealCell, tmp_path: Path) -> Iterator[OwnProject]:  # noqa: ARG001
    found = OwnProject(tmp_path / "project", f"ortimg-test/{tmp_path.name.replace('_', '-').lower()}")
    found.root.mkdir()
    yield found
    for image in engine.images(reference=f"{found.repository}:*"):
        for name in image.references:
            if name.startswith(f"{found.repository}:"):
                engine.remove(name)


def cells(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """The rows of `--json`, by identifier; stdout holds the one object and nothing else."""
    report = json.loads(done.stdout)
    assert report["schema"] == 1
    keys = {
        *("identifier", "result", "tier", "image", "seconds", "bytes_total", "bytes_own"),
        *("origins", "cause"),
    }
    for row in report["cells"]:
        assert keys <= row.keys()
        assert row["origins"].keys() == {"ort", "cuda", "base"}
    return {row["identifier"]: row for row in report["cells"]}


# Nothing to do


def test_a_second_build_starts_no_build(real_cell: RealCell, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    shim = tmp_path / "bin" / "docker"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$*" >>{log}\nexec {shutil.which("docker")} "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    done = ortimg("build", IDENTIFIER, "--json", env=environment)
    assert done.returncode == ExitCode.DONE
    row = cells(done)[IDENTIFIER]
    assert (row["result"], row["tier"], row["image"]) == ("unchanged", "load", real_cell.reference)
    assert row["cause"] is None
    assert row["bytes_total"] > 2_000_000_000
    calls = log.read_text().splitlines()
    assert calls  # it is our docker that was called
    assert [call for call in calls if "buildx build" in call] == []


def test_the_summary_says_unchanged_and_no_gpu(real_cell: RealCell) -> None:  # noqa: ARG001
    done = ortimg("build", IDENTIFIER)
    assert done.returncode == ExitCode.DONE
    assert "1 unchanged" in done.stdout
    assert "Not verified on a GPU" in done.stdout


# A cell that fails


def test_a_failed_cell_keeps_the_others_and_leaves_no_tag(engine: Engine, project: OwnProject) -> None:
    good, bad = project.configure("debian12", "debian13")
    project.override(LDCONFIG, '{% if base.name != "debian13" %}\n' + LDCONFIG + "{% endif %}\n")
    done = project.build("--json")
    assert done.returncode == ExitCode.FAILED, done.stderr
    rows = cells(done)
    assert rows[good]["result"] == "built"
    assert rows[bad]["result"] == "failed"
    assert (rows[bad]["image"], rows[bad]["tier"]) == (None, None)
    assert "ldconfig has not run" in rows[bad]["cause"]
    assert "ort-verify --tier load" in rows[bad]["cause"]
    assert engine.inspect(project.image(good)) is not None
    assert engine.inspect(project.image(bad)) is None
    assert "Traceback" not in done.stderr

    again = project.build("--json")
    assert again.returncode == ExitCode.FAILED
    assert {name: row["result"] for name, row in cells(again).items()} == {good: "unchanged", bad: "failed"}


def test_a_cell_that_fails_now_keeps_its_older_image(engine: Engine, project: OwnProject) -> None:
    """The tag goes to an image that passed, or stays where it was."""
    (name,) = project.configure("debian12")
    assert project.build().returncode == ExitCode.DONE
    before = engine.inspect(project.image(name))
    project.override(LDCONFIG, "")
    assert project.build().returncode == ExitCode.FAILED
    assert before is not None
    assert engine.inspect(project.image(name)) == before


# Out of reach


def test_what_is_out_of_reach(engine: Engine, project: OwnProject) -> None:
    near, far = project.configure("debian12", "ubuntu22.04")
    done = project.build("--available", "--json", env=NO_HUB)
    assert done.returncode == ExitCode.DONE, done.stderr
    rows = cells(done)
    assert rows[near]["result"] == "built"
    assert (rows[far]["result"], rows[far]["image"]) == ("unavailable", None)
    assert "docker.io" in rows[far]["cause"]

    shown = project.build("--available", env=NO_HUB)
    assert shown.returncode == ExitCode.DONE
    assert f"unavailable: {far}" in shown.stdout
    assert "1 unchanged, 1 unavailable" in shown.stdout

    strict = project.build("--json", env=NO_HUB)
    assert strict.returncode == ExitCode.ENVIRONMENT
    assert {name: row["result"] for name, row in cells(strict).items()} == {near: "unchanged", far: "failed"}

    alone = project.build(far, "--available", env=NO_HUB)
    assert alone.returncode == ExitCode.ENVIRONMENT
    assert engine.inspect(project.image(far)) is None


# A proxy


def test_proxy_and_certificates_of_this_machine_are_in_no_image(project: OwnProject, tmp_path: Path) -> None:
    """Docker gives the proxy of its settings to every build, and its address may hold a password."""
    secret = "http://user:swordfish@127.0.0.1:9"
    (tmp_path / "docker").mkdir()
    proxies = dict.fromkeys(("httpProxy", "httpsProxy", "ftpProxy", "noProxy"), secret)
    (tmp_path / "docker" / "config.json").write_text(json.dumps({"proxies": {"default": proxies}}))
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")
    authority = tmp_path / "swordfish.pem"
    authority.write_bytes(Path(where()).read_bytes())
    environment = {
        **os.environ,
        **dict.fromkeys(names, secret),
        **dict.fromkeys((*VARIABLES, "PIP_CERT"), str(authority)),
        "DOCKER_CONFIG": str(tmp_path / "docker"),
    }
    (name,) = project.configure("debian12")
    seen = f'RUN --network=none test -n "$HTTPS_PROXY" # {MARK}\n'  # it was there, so it could have stayed
    project.override(LDCONFIG, LDCONFIG + seen)
    done = project.build("--json", env=environment)
    assert done.returncode == ExitCode.DONE, done.stderr
    for words in (("history", "--no-trunc"), ("inspect",)):
        command = ["docker", "image", *words, project.image(name)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "NVIDIA_VISIBLE_DEVICES" in shown
        assert "swordfish" not in shown
    assert "swordfish" not in done.stdout + done.stderr
    look = ["docker", "run", "--rm", "--network", "none", project.image(name), "sh", "-c"]
    look.append("grep -rls swordfish /etc /usr/local /usr/share /root /opt; find / -xdev -name 'swordfish*'")
    assert subprocess.run(look, capture_output=True, text=True, check=False).stdout == ""


# Interrupts


def processes(*words: str) -> list[str]:
    """Command lines that hold every word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if all(word in line for word in words):
                found.append(line)
    return found


def wait_until(condition: Any, seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not (found := bool(condition())) and time.monotonic() < limit:
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(
    engine: Engine, project: OwnProject, number: signal.Signals
) -> None:
    (name,) = project.configure("debian12")
    nap = f"600.{os.getpid()}{int(number)}"  # known by its number among the machine's processes
    project.override(LDCONFIG, f"{LDCONFIG}RUN --network=none sleep {nap} # {MARK}\n")
    with subprocess.Popen(
        # A CI job in the background ignores SIGINT, and what it starts inherits that.
        ["env", "--default-signal=INT", sys.executable, "-m", "ortimg", "build"],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        started = wait_until(lambda: processes("sleep", nap), 120)
        os.killpg(running.pid, number)  # as a terminal does
        began = time.monotonic()
        try:
            _out, errors = running.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise
    assert started, errors
    assert time.monotonic() - began < 15
    assert running.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in errors
    assert processes("buildx", str(project.root)) == []
    assert wait_until(lambda: not processes("sleep", nap), 5)
    assert engine.inspect(project.image(name)) is None

    shutil.rmtree(project.root / "templates")
    done = project.build("--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    assert cells(done)[name]["result"] == "built"
    assert engine.inspect(project.image(name)) is not None


# No engine


@pytest.mark.parametrize("words", [("build",), ("build", "--available"), ("build", "--json")])
def test_no_engine_is_told_in_two_lines(words: tuple[str, ...]) -> None:
    done = ortimg(*words, cwd=ROOT, env={**os.environ, "DOCKER_HOST": "unix:///nonexistent"})
    assert done.returncode == ExitCode.ENVIRONMENT
    assert done.stdout == ""
    assert 1 <= len(done.stderr.splitlines()) <= 2
    assert "unix:///nonexistent" in done.stderr
