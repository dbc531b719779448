"""How versions are read, and what a person is told about an engine that cannot build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ortimg.engine.check import judge, require_free_space
from ortimg.engine.daemon import daemon_config
from ortimg.engine.info import EngineFacts, ask_engine, facts_from
from ortimg.engine.setup import Machine, missing_packages, this_machine, what_a_person_must_run
from ortimg.engine.versions import MIN_BUILDX, MIN_ENGINE, at_least, dotted, parse_version
from ortimg.errors import EnvironmentFault, ExitCode

GOOD = EngineFacts(
    client="28.2.2",
    server="26.1.5+dfsg1",
    buildx="0.13.1+ds1",
    containerd_store=True,
    data_root="/var/lib/docker",
)
BARE = EngineFacts(
    client="28.2.2", fault="Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("26.1.5+dfsg1", (26, 1, 5)),
        ("v0.13.1", (0, 13, 1)),
        ("Docker version 20.10.24+dfsg1, build 297e128", (20, 10, 24)),
        ("github.com/docker/buildx 0.13.1+ds1 0.13.1+ds1-3", (0, 13, 1)),
        ("v0.20.0-desktop.2", (0, 20, 0)),
        ("25.0", (25, 0)),
        ("dev", None),
        ("", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(text) == version


def test_versions_are_compared_as_numbers() -> None:
    assert at_least("25.0.0", MIN_ENGINE)
    assert at_least("100.0", MIN_ENGINE)
    assert not at_least("24.0.9", MIN_ENGINE)
    assert not at_least("9.99", MIN_ENGINE)
    assert at_least("0.13.0", MIN_BUILDX)
    assert not at_least("0.9.1", MIN_BUILDX)
    assert not at_least(None, MIN_BUILDX)
    assert (dotted(MIN_ENGINE), dotted(MIN_BUILDX)) == ("25", "0.13")


def test_a_good_engine_passes() -> None:
    info = judge(GOOD)
    assert (info.client, info.server, info.buildx) == ("28.2.2", "26.1.5+dfsg1", "0.13.1+ds1")
    assert info.containerd_store
    again = judge(GOOD, buildkit="1")
    assert replace(again, free_bytes=info.free_bytes) == info  # somebody else uses the disk too


@pytest.mark.parametrize(
    ("facts", "buildkit", "words"),
    [
        (EngineFacts(fault="there is no docker command on PATH"), None, ("no docker command", "make engine")),
        (BARE, None, ("no container engine answers", "Cannot connect", "run `make engine`")),
        (replace(BARE, fault="permission denied while trying to connect"), None, ("may not use", "usermod")),
        (replace(BARE, endpoint="tcp://10.0.0.1:2375"), None, ("DOCKER_HOST=tcp://10.0.0.1:2375", "unset")),
        (
            replace(BARE, fault='context "x": context not found'),
            None,
            ("no container", "unset DOCKER_CONTEXT"),
        ),
        (replace(GOOD, server="20.10.24"), None, ("20.10.24", ">= 25", "COPY --link", "ADD --checksum")),
        (replace(GOOD, server="24.0.9"), None, ("24.0.9", ">= 25")),
        (replace(GOOD, buildx="0.12.1"), None, ("0.12.1", ">= 0.13", "named contexts")),
        (replace(GOOD, buildx=None), None, ("no buildx plugin", ">= 0.13", "make engine")),
        (GOOD, "0", ("DOCKER_BUILDKIT=0", "classic builder", "unset DOCKER_BUILDKIT")),
        (GOOD, "false", ("classic builder",)),
        (EngineFacts(client="4.3.1", server="4.3.1", podman=True), None, ("Podman 4.3.1", "buildx")),
    ],
)
def test_what_a_person_is_told(facts: EngineFacts, buildkit: str | None, words: tuple[str, ...]) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        judge(facts, buildkit)
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    text = str(caught.value)
    assert len(text.splitlines()) <= 2
    for word in words:
        assert word in text


def test_docker_info_is_read() -> None:
    facts = facts_from(
        {
            "ServerVersion": "26.1.5+dfsg1",
            "DockerRootDir": "/var/lib/docker",
            "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
            "ClientInfo": {"Version": "28.2.2", "Plugins": [{"Name": "buildx", "Version": "0.13.1+ds1"}]},
        }
    )
    assert facts == GOOD


def test_a_broken_plugin_is_no_plugin_and_a_silent_engine_is_no_server() -> None:
    facts = facts_from(
        {
            "ServerVersion": "",
            "ServerErrors": ["permission denied"],
            "DriverStatus": None,
            "ClientInfo": {
                "Version": "24.0.5",
                "Plugins": [{"Name": "buildx", "Version": "0.14.0", "Err": "bad"}],
            },
        }
    )
    assert (facts.server, facts.buildx, facts.fault) == (None, None, "permission denied")
    assert not facts.containerd_store


def test_podmans_own_info_is_recognised() -> None:
    facts = facts_from({"host": {"arch": "amd64"}, "store": {}, "version": {"Version": "4.3.1"}})
    assert facts.podman
    assert facts.server == "4.3.1"


def test_free_space_says_need_and_have(tmp_path: Path) -> None:
    require_free_space(tmp_path / "not" / "there" / "yet", 1)
    with pytest.raises(EnvironmentFault, match=r"the build needs 1000000000\.0 GB free, .* has \d+\.\d GB"):
        require_free_space(tmp_path, 10**18, "the build")


def test_only_what_is_missing_is_installed() -> None:
    assert missing_packages(EngineFacts(), None) == ("docker.io", "docker-cli", "docker-buildx")
    assert missing_packages(BARE, None) == ("docker.io", "docker-buildx")
    assert (
        missing_packages(replace(BARE, buildx="0.13.1"), "Docker version 26.1.5+dfsg1, build 411e817") == ()
    )
    assert missing_packages(BARE, "Docker version 20.10.24+dfsg1") == ("docker.io", "docker-buildx")
    assert missing_packages(replace(GOOD, buildx=None), None) == ("docker-buildx",)


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (Machine("debian", "bookworm", "x86_64", root=False), ("only root", "sudo make engine")),
        (Machine("fedora", "", "x86_64", root=True), ("dnf install", "fedora x86_64")),
        (Machine("debian", "bookworm", "aarch64", root=True), ("debian aarch64", "apt-get install")),
        (Machine("plan9", "", "x86_64", root=True), ("plan9", "docs.docker.com/engine/install")),
    ],
)
def test_elsewhere_a_person_gets_the_commands(machine: Machine, words: tuple[str, ...]) -> None:
    assert not machine.installable
    text = "\n".join(what_a_person_must_run(machine, True))
    assert len(text.splitlines()) == 2
    for word in (*words, ">= 25", "0.13"):
        assert word in text


def test_os_release_is_read(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text('ID="ubuntu"\nVERSION_CODENAME=noble\nNAME="Ubuntu"\n')
    machine = this_machine(tmp_path / "os-release")
    assert (machine.distribution, machine.codename) == ("ubuntu", "noble")
    assert this_machine(tmp_path / "absent").distribution == "unknown"


def test_the_machines_own_daemon_settings_stay() -> None:
    text = daemon_config('{"data-root": "/data", "features": {"buildkit": true}}')
    assert '"data-root": "/data"' in text
    assert '"buildkit": true' in text
    assert '"containerd-snapshotter": true' in text
    assert '"containerd-snapshotter": true' in daemon_config(None)


def test_a_docker_command_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_bytes(b"\x7fELFnone")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_engine().fault == "docker cannot be run: Exec format error"
