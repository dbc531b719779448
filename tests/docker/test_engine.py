"""A real engine: builds that pass, fail and are cancelled; images inspected, run, imported and counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ortimg.engine import daemon
from ortimg.engine.buildx import BuildOutcome, run_build
from ortimg.engine.cache import cache_records, prune_cache
from ortimg.engine.check import check_engine
from ortimg.engine.client import Engine
from ortimg.engine.info import ask_engine
from ortimg.engine.rawjson import BuildEvent, EventKind
from ortimg.engine.setup import start_engine, stop_engine
from ortimg.engine.status import status_lines
from ortimg.errors import ConfigError, EnvironmentFault

pytestmark = pytest.mark.engine

# One static program is a whole root: no base image is pulled.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    for (int i = 1; i < count; i++) {
        if (!strncmp(words[i], "exit=", 5)) return atoi(words[i] + 5);
        if (!strncmp(words[i], "sleep=", 6)) sleep(atoi(words[i] + 6));
        else if (!strcmp(words[i], "uid")) printf("uid %d\n", (int)getuid());
        else puts(words[i]);
        fflush(stdout);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    (folder / "p.c").write_text(PROGRAM)
    (folder / "bin").mkdir()
    subprocess.run(["cc", "-static", "-O1", "-o", folder / "bin" / "p", folder / "p.c"], check=True)
    return folder


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture
def reference(engine: Engine, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"localhost/ortimg-test/{request.node.name.replace('_', '-')[:40].rstrip('-')}:{os.getpid()}"
    yield name
    engine.remove(name)


class Build:
    """One build of a Dockerfile text with `root` as its context."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.events: list[BuildEvent] = []
        self.cancel = threading.Event()

    def __call__(self, dockerfile: str, *options: str) -> BuildOutcome:
        path = self.folder / "Dockerfile"
        path.write_text(f"FROM scratch\nCOPY bin /bin\n{dockerfile}\n")
        arguments = [
            "build",
            "--no-cache",
            "-f",
            str(path),
            *(options or ("--output=type=cacheonly",)),
            str(self.root),
        ]
        return run_build(arguments, on_event=self.see, log=self.folder / "build.log", cancel=self.cancel)

    def see(self, event: BuildEvent) -> None:
        self.events.append(event)
        if event.text == "now":
            self.cancel.set()


@pytest.fixture
def build(root: Path, tmp_path: Path) -> Build:
    return Build(root, tmp_path)


def session_is_empty(word: str) -> bool:
    """Whether no process has `word` on its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    return False
            except OSError:
                continue
    return True


def test_the_engine_is_good_and_answers_quickly() -> None:
    check_engine()  # imports
    began = time.monotonic()
    info = check_engine()
    assert time.monotonic() - began < 0.5
    assert info.free_bytes is None or info.free_bytes > 0


def test_starting_an_engine_that_runs_changes_nothing() -> None:
    before = daemon.our_pid()
    said: list[str] = []
    facts = start_engine(said.append)
    assert daemon.our_pid() == before
    assert facts.server
    assert said == [f"engine {facts.server} with buildx {facts.buildx} is used as it is"]


def test_an_engine_that_is_not_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(daemon, "PID_FILE", tmp_path / "absent")
    said: list[str] = []
    stop_engine(said.append)
    server = check_engine().server
    assert said == [f"engine {server} is running, but ortimg did not start it: left alone"]


def test_status_has_a_line_for_each_part() -> None:
    lines = status_lines()
    assert [line.split()[0] for line in lines] == ["client", "server", "buildx", "store", "builder"]
    assert not [line for line in lines if "unknown" in line or "missing" in line]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dockerd"), reason="only root starts a dockerd")
def test_a_daemon_of_our_own_starts_and_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A second, real dockerd, in a network namespace of its own so that the first one keeps its bridge."""
    folder = tmp_path_factory.mktemp("d")
    shim = folder / "bin" / "dockerd"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec unshare --net {shutil.which("dockerd")} "$@"\n')
    shim.chmod(0o755)
    socket = f"unix://{folder}/d.sock"
    settings = {"data-root": f"{folder}/data", "exec-root": f"{folder}/exec", "hosts": [socket]}
    (folder / "machine.json").write_text(json.dumps({**settings, "bridge": "none", "iptables": False}))
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", socket)
    for name, value in (("PID_FILE", "d.pid"), ("LOG_FILE", "d.log"), ("CONFIG_FILE", "d.json")):
        monkeypatch.setattr(daemon, name, folder / value)
    monkeypatch.setattr(daemon, "RUN_FOLDER", folder)
    monkeypatch.setattr(daemon, "MACHINE_CONFIG", folder / "machine.json")

    assert daemon.our_pid() is None
    pid = daemon.start_daemon(lambda: ask_engine().server is not None)
    try:
        assert daemon.our_pid() == pid
        assert os.getsid(pid) == pid  # it does not end with the process that started it
        assert check_engine().containerd_store
        assert not session_is_empty(f"{folder}/exec/containerd")
        (folder / "d.pid").write_text(str(os.getpid()))  # a pid that was handed out again
        assert daemon.our_pid() is None
        (folder / "d.pid").write_text(str(pid))
    finally:
        daemon.stop_daemon(pid)
    assert daemon.our_pid() is None
    assert session_is_empty(f"{folder}/exec")
    with pytest.raises(EnvironmentFault, match=r"DOCKER_HOST=unix://.* is set"):
        start_engine(lambda _: None)

    (folder / "machine.json").write_text('{"nonsense-option": 1}')
    with pytest.raises(EnvironmentFault, match=r"(?s)dockerd ended at once with status 1: .*nonsense-option"):
        daemon.start_daemon(lambda: False)


def test_a_build_passes(build: Build, reference: str, engine: Engine) -> None:
    run = 'RUN --network=none ["/bin/p", "hello", "an error is only a word"]'
    outcome = build(run, "-t", reference, "--label", "ortimg.test=1")
    assert outcome.ok, outcome.failure
    assert outcome.failure is None
    steps = [e.step for e in build.events if e.kind is EventKind.DONE]
    assert any("RUN --network=none" in step for step in steps)
    assert [e.text for e in build.events if e.kind is EventKind.LOG] == ["hello", "an error is only a word"]
    assert "an error is only a word" in outcome.log.read_text()
    image = engine.inspect(reference)
    assert image is not None
    assert image.labels["ortimg.test"] == "1"
    assert image.id in {found.id for found in engine.images(label="ortimg.test=1")}


def test_a_failing_step_is_named_with_its_code_and_last_words(build: Build) -> None:
    outcome = build(
        'RUN --network=none ["/bin/p", "libcufft.so.10: cannot open shared object file", "exit=7"]'
    )
    assert not outcome.ok
    assert not outcome.cancelled
    failure = outcome.failure
    assert failure is not None
    assert failure.step is not None and "RUN --network=none" in failure.step
    assert failure.exit_code == 7
    assert failure.last_lines == ("libcufft.so.10: cannot open shared object file",)
    assert not failure.environment


def test_a_crash_is_explained(build: Build) -> None:
    # A first process ignores its own signals: the code that a shell gives for a dead child stands in.
    outcome = build('RUN --network=none ["/bin/p", "boom", "exit=134"]')
    assert outcome.failure is not None
    assert "134 (SIGABRT" in outcome.failure.cause


def test_a_base_that_cannot_be_reached_is_the_environments_fault(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM localhost:1/nothing/here:1\n")
    outcome = run_build(
        ["build", str(tmp_path)], on_event=lambda _: None, log=tmp_path / "log", cancel=threading.Event()
    )
    assert outcome.failure is not None
    assert outcome.failure.environment
    assert "localhost:1/nothing/here" in f"{outcome.failure} {outcome.log.read_text()}"


def test_a_cancel_ends_the_build_and_leaves_no_process(build: Build, reference: str, engine: Engine) -> None:
    mark = f"ortimg.cancel={os.getpid()}"
    began = time.monotonic()
    outcome = build('RUN --network=none ["/bin/p", "now", "sleep=300"]', "-t", reference, "--label", mark)
    assert time.monotonic() - began < 30
    assert outcome.cancelled
    assert not outcome.ok
    assert outcome.failure is None
    assert session_is_empty(mark)
    assert session_is_empty("sleep=300")
    assert engine.inspect(reference) is None


def test_no_process_is_left_when_the_listener_raises(build: Build) -> None:
    mark = f"ortimg.raise={os.getpid()}"

    def see(event: BuildEvent) -> None:
        if event.kind is EventKind.LOG:
            raise RuntimeError("listener")

    build.see = see  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="listener"):
        build('RUN --network=none ["/bin/p", "x", "sleep=300"]', "--label", mark)
    assert session_is_empty(mark)


@pytest.fixture
def imported(root: Path, tmp_path: Path, reference: str, engine: Engine) -> str:
    tar = tmp_path / "root.tar"
    with tarfile.open(tar, "w") as archive:
        archive.add(root / "bin", "bin")
    image = engine.import_root(tar, reference, ['CMD ["/bin/p", "cmd"]', "LABEL a=b"])
    assert image.labels["a"] == "b"
    assert len(image.layers) == 1
    return reference


def test_a_root_is_imported_and_run(imported: str, engine: Engine) -> None:
    result = engine.run(imported, ["/bin/p", "out", "uid", "exit=3"], limit=30, user="1234", read_only=True)
    assert (result.exit_code, result.stdout, result.timed_out) == (3, "out\nuid 1234\n", False)


@pytest.mark.parametrize("name", ["UPPER:case", "a:b:c", "debian@sha256:0000"])
def test_what_is_no_reference_is_the_callers_fault(engine: Engine, name: str) -> None:
    with pytest.raises(ConfigError, match="is no image reference: invalid reference format"):
        engine.inspect(name)


def test_a_container_ends_at_its_time_limit(imported: str, engine: Engine) -> None:
    began = time.monotonic()
    result = engine.run(
        imported, ["/bin/p", "begun", "sleep=300"], limit=2, labels={"ortimg.limit": imported}
    )
    assert time.monotonic() - began < 20
    assert result.timed_out
    assert result.exit_code is None
    assert result.stdout == "begun\n"
    left = subprocess.run(
        ["docker", "ps", "-aq", "--filter", f"label=ortimg.limit={imported}"], capture_output=True, text=True
    )
    assert left.stdout == ""


def test_own_bytes_are_those_of_layers_that_no_other_image_has(
    imported: str, build: Build, reference: str, engine: Engine
) -> None:
    names = [f"{reference}-{n}" for n in "ab"]
    (build.root / "own").write_bytes(os.urandom(300_000))
    try:
        for name in names:
            path = build.folder / "Dockerfile"
            extra = "COPY own /own\n" if name.endswith("a") else ""
            path.write_text(f"FROM {imported}\nENV A=b\nCOPY --link bin /twice\nWORKDIR /\n{extra}")
            outcome = run_build(
                ["build", "-f", str(path), "-t", name, str(build.root)],
                on_event=build.see, log=build.folder / "log", cancel=build.cancel,
            )  # fmt: skip
            assert outcome.ok, outcome.failure
        sizes = engine.sizes(names)
        assert 300_000 <= sizes[names[0]].own < 330_000
        assert sizes[names[1]].own == 0
        assert sizes[names[0]].total - sizes[names[1]].total == sizes[names[0]].own
        assert sizes[names[1]].total > 2 * (build.root / "bin" / "p").stat().st_size
    finally:
        for name in names:
            assert engine.remove(name)
    assert engine.inspect(names[0]) is None
    assert not engine.remove(names[0])


def test_the_cache_gives_back_what_is_ours_and_nothing_else(build: Build, engine: Engine) -> None:
    word, other = f"ours-{os.getpid()}", f"theirs-{os.getpid()}"
    assert build(f'RUN --network=none ["/bin/p", "{other}"]').ok
    assert build(f'RUN --network=none ["/bin/p", "{word}"]\nRUN --network=none ["/bin/p", "and {word}"]').ok
    assert sum(word in record.description for record in cache_records(engine)) == 2
    assert prune_cache(engine, lambda record: word in record.description) > 0
    assert not [record for record in cache_records(engine) if word in record.description]
    assert [record for record in cache_records(engine) if other in record.description]
    prune_cache(engine, lambda record: other in record.description)
