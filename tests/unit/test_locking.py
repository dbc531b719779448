"""`ortimg lock` as a user runs it; the release host and the registry are a server on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from loopback import Server, body, serving, status
from test_prune_cache import put
from wishes import INDEX, cell, images

from ortimg.cli import cli
from ortimg.core.lock import Asset, Lock
from ortimg.inputs.cache import Cache
from ortimg.inputs.lockfile import read_lock, write_lock

ROW = INDEX.release("1.16.2", 11)
NO_HASH = INDEX.release("1.18.0", 12)  # nobody published its sha256
assert ROW is not None and ROW.sha256 is not None
assert NO_HASH is not None and NO_HASH.sha256 is None
HERE, THERE = "1.16.2-cuda11.8-cudnn8-debian12", "1.18.0-cuda12.2-cudnn8-debian12"
A, B, C = (letter * 64 for letter in "abc")
SIZE, DATE = 400_000_000, "2023-11-08T21:37:41Z"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with serving() as running:
        monkeypatch.setenv("ORTIMG_RELEASE_API", f"{running.url}/api")
        monkeypatch.setenv("ORTIMG_REGISTRY_MIRROR", f"{running.url.removeprefix('http://')}/hub")
        base(running, A)
        listed(running, "1.16.2", ROW.asset, sha256=ROW.sha256)
        listed(running, "1.18.0", NO_HASH.asset)
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    wish(folder)
    return folder


def wish(folder: Path, **parts: Any) -> None:
    rows = [cell("1.16.2", "11.8"), cell("1.18.0", "12.2")]
    tags = {"latest": THERE, "{ort}": "*"}
    (folder / "images.yaml").write_text(images(**({"include": rows, "tags": tags} | parts)))


def base(server: Server, digest: str) -> None:
    path = "/v2/hub/library/debian/manifests/12-slim"
    server.answers[path] = status(200, Docker_Content_Digest=f"sha256:{digest}")


def listed(server: Server, version: str, asset: str, size: int = SIZE, sha256: str | None = None) -> None:
    digest = sha256 and f"sha256:{sha256}"
    files = [{"name": "onnxruntime-win-x64.zip", "size": 1, "digest": None, "updated_at": DATE}]
    files += [{"name": asset, "size": size, "digest": digest, "updated_at": DATE}]
    server.answers[f"/api/v{version}"] = body(json.dumps({"assets": files}).encode())


def lock(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), "lock", *options])


def differences(folder: Path) -> list[tuple[str, str]]:
    """What `--check` finds: weight and what."""
    report = json.loads(lock(folder, "--check", "--json").stdout)
    assert not report["written"]
    return [(row["weight"], row["what"]) for row in report["differences"]]


def test_the_first_lock_holds_all_that_could_be_seen(project: Path, server: Server) -> None:
    result = lock(project)
    assert result.exit_code == 0, result.output
    assert f"new   tag latest: {THERE}\n" in result.stdout
    found = read_lock(project)
    assert found.bases["debian12"].digest == f"sha256:{A}"
    assert found.ort["1.16.2-cuda11"].upstream == ROW.sha256
    assert found.ort["1.16.2-cuda11"].asset == Asset(size=SIZE, updated=DATE)
    assert found.ort["1.18.0-cuda12"].upstream is None, "no hash is invented"
    assert found.cuda["11.8-cudnn8"] == {
        wheel.filename: wheel.sha256 for wheel in INDEX.sets["11.8", "8"].wheels
    }
    assert found.tags == {"latest": THERE, "1.16.2": HERE, "1.18.0": THERE}
    before = (project / "images.lock").stat().st_mtime_ns
    again = lock(project)
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr == "images.lock holds.\n"
    assert (project / "images.lock").stat().st_mtime_ns == before
    assert lock(project, "--check").exit_code == 0
    assert len([path for path in server.asked if path == "/api/v1.16.2"]) == 3, "once a run"


def test_a_base_that_moved_is_calm_and_waits_for_update(project: Path, server: Server) -> None:
    lock(project)
    base(server, B)
    found = lock(project, "--check")
    assert found.exit_code == 1
    assert found.stdout == (
        "      debian12: debian:12-slim\n"
        f"        was sha256:{A}\n"
        f"        now sha256:{B}\n"
        "        debian:12-slim means a newer image now, as a rule with security updates: build again\n"
    )
    assert "1 difference." in found.stderr
    assert "`ortimg lock --update` takes them." in found.stderr
    assert lock(project).exit_code == 1
    assert read_lock(project).bases["debian12"].digest == f"sha256:{A}"
    assert lock(project, "--update").exit_code == 0
    assert read_lock(project).bases["debian12"].digest == f"sha256:{B}"
    assert differences(project) == []


def test_an_archive_that_was_uploaded_anew_is_loud(project: Path, server: Server) -> None:
    lock(project)
    listed(server, "1.18.0", NO_HASH.asset, SIZE + 1)
    assert differences(project) == [("loud", "1.18.0-cuda12: release archive, as the release host has it")]
    told = lock(project, "--check")
    assert told.stdout.startswith("LOUD  1.18.0-cuda12: release archive")
    assert "was 400,000,000 bytes of 2023-11-08" in told.stdout
    assert "it was uploaded anew, or somebody stands between" in told.stdout
    assert lock(project, "--update", "1.16.2-*").exit_code == 1, "another cell's"
    assert lock(project, "--update", THERE).exit_code == 0
    assert differences(project) == []


def test_a_host_that_contradicts_the_catalogue_is_beyond_every_option(project: Path, server: Server) -> None:
    lock(project)
    listed(server, "1.16.2", ROW.asset, sha256=B)
    for options in ((), ("--check",), ("--update",)):
        found = lock(project, *options)
        assert found.exit_code == 1
        assert "LOUD  1.16.2-cuda11: release archive, sha256" in found.stdout
        assert f"the catalogue has {ROW.sha256}; the release host has {B}" in found.stdout
        assert "No option takes what is LOUD" in found.stderr
    assert read_lock(project).ort["1.16.2-cuda11"].upstream == ROW.sha256


def test_what_was_fetched_here_is_a_second_source(project: Path, server: Server) -> None:
    entry = put(Cache.default(), "ort/1.18.0-cuda12/upstream", 50, "upstream")
    assert lock(project).exit_code == 0
    assert read_lock(project).ort["1.18.0-cuda12"].upstream == entry.sha256
    listed(server, "1.18.0", NO_HASH.asset, sha256=C)
    found = lock(project, "--check")
    assert found.exit_code == 1
    assert f"the release host has {C}; the archive that was fetched here has {entry.sha256}" in found.stdout


def test_a_hash_that_the_catalogue_learns_takes_the_place_of_none(project: Path, server: Server) -> None:
    lock(project)
    listed(server, "1.18.0", NO_HASH.asset, sha256=C)
    assert differences(project) == [("calm", "1.18.0-cuda12: release archive, sha256")]
    assert lock(project).exit_code == 0
    assert read_lock(project).ort["1.18.0-cuda12"].upstream == C


def test_a_lock_that_the_catalogue_contradicts(project: Path, server: Server) -> None:  # noqa: ARG001
    lock(project)
    locked = read_lock(project)
    rows = dict(locked.ort)
    rows["1.16.2-cuda11"] = msgspec.structs.replace(rows["1.16.2-cuda11"], upstream=B)
    sets = {key: dict.fromkeys(wheels, C) for key, wheels in locked.cuda.items()}
    write_lock(project, msgspec.structs.replace(locked, ort=rows, cuda=sets))
    found = differences(project)
    assert ("loud", "1.16.2-cuda11: release archive, sha256") in found
    assert {weight for weight, _ in found} == {"loud"}
    assert sum(what.startswith("11.8-cudnn8: nvidia_") for _, what in found) == 5
    assert lock(project).exit_code == 1
    assert read_lock(project).ort["1.16.2-cuda11"].upstream == B
    assert lock(project, "--update").exit_code == 0
    again = read_lock(project)
    assert again.epoch >= locked.epoch  # the date of the update, to the second
    assert msgspec.structs.replace(again, epoch=locked.epoch) == locked


def test_tags_that_moved_are_listed(project: Path, server: Server) -> None:  # noqa: ARG001
    lock(project)
    wish(project, tags={"latest": HERE, "newest": THERE})
    result = lock(project)
    assert result.exit_code == 0
    assert (
        f"      tag latest\n        was {THERE}\n        now {HERE}\n"
        "        whoever pulls by this name gets another image with the next push\n"
    ) in result.stdout
    assert f"new   tag newest: {THERE}\n" in result.stdout
    assert f"      tag 1.16.2\n        was {HERE}\n        now gone\n" in result.stdout
    assert read_lock(project).tags == {"latest": HERE, "newest": THERE}


def test_what_no_cell_needs_goes(project: Path, server: Server) -> None:  # noqa: ARG001
    lock(project)
    wish(project, include=[cell("1.16.2", "11.8")], tags={})
    assert ("calm", "CUDA libraries of 12.2-cudnn8") in differences(project)
    assert lock(project).exit_code == 0
    found = read_lock(project)
    assert (list(found.ort), list(found.cuda), found.tags) == (["1.16.2-cuda11"], ["11.8-cudnn8"], {})


def test_a_name_that_is_gone_from_the_world_is_loud(project: Path, server: Server) -> None:
    lock(project)
    listed(server, "1.18.0", "onnxruntime-linux-x64-gpu-renamed-1.18.0.tgz")
    server.answers["/v2/hub/library/debian/manifests/12-slim"] = status(404)
    assert differences(project) == [
        ("loud", f"1.18.0-cuda12: {NO_HASH.asset}"),
        ("loud", "debian12: debian:12-slim"),
    ]
    told = lock(project, "--check").stdout.splitlines()
    assert all(line.startswith(("LOUD  ", "        ", "not resolved: ")) for line in told)


def test_without_a_network_the_lock_stays_and_it_is_said(project: Path, server: Server) -> None:
    lock(project)
    locked = read_lock(project)
    server.answers.clear()
    server.answers["/api/v1.16.2"] = status(403)
    server.answers["/api/v1.18.0"] = body(b"<html>")
    server.answers["/v2/hub/library/debian/manifests/12-slim"] = status(503)
    for options in ((), ("--check",), ("--update",)):
        result = lock(project, *options)
        assert result.exit_code == 0, result.output
        assert result.stdout == ""
        assert result.stderr.count("not resolved: ") == 3
        assert "debian12: digest of debian:12-slim (" in result.stderr
        assert "too many requests (403)" in result.stderr
        assert "no list of files came" in result.stderr
    assert read_lock(project) == locked


def test_a_first_lock_without_a_network_has_no_digest(project: Path, server: Server) -> None:
    server.answers.clear()
    server.answers["/v2/hub/library/debian/manifests/12-slim"] = status(503)
    assert lock(project).exit_code == 0
    found = read_lock(project)
    assert found.bases["debian12"].digest is None
    assert found.ort["1.16.2-cuda11"].upstream == ROW.sha256


def test_a_digest_stands_in_the_dockerfile_until_the_image_is_another(project: Path, server: Server) -> None:
    def text() -> str:
        assert CliRunner().invoke(cli, ["-C", str(project), "render"]).exit_code == 0
        return (project / "dockerfiles" / HERE / "Dockerfile").read_text()

    lock(project)
    assert f"FROM debian:12-slim@sha256:{A} AS base" in text()
    registry = f"{server.url.removeprefix('http://')}/other"
    wish(project, origins={"registry": registry})
    assert f"FROM {registry}/library/debian:12-slim AS base" in text()
    assert lock(project).exit_code == 0
    assert f"FROM {registry}/library/debian:12-slim@sha256:{A} AS base" in text()


def test_wishes_that_contradict_each_other(project: Path, server: Server) -> None:  # noqa: ARG001
    assert lock(project, "--check", "--update").exit_code == 2
    assert lock(project, "1.16.2-*").exit_code == 2
    assert lock(project, "--update", "nothing").exit_code == 2
    assert read_lock(project) == Lock()
