"""Real clients and real inputs: `mvn`, pip, mmdebstrap. Uses the user's cache and fills it where it must."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ortimg.core.model import Catalogue, Origin
from ortimg.data import read_catalogue
from ortimg.inputs.archive import check_archive
from ortimg.inputs.bootstrap import host_codename, machine_sources
from ortimg.inputs.cache import Cache
from ortimg.inputs.download import Unreachable
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.maven import Turns, download_jar
from ortimg.inputs.probe import Upstream
from ortimg.inputs.repack import ORIGIN_NOTE
from ortimg.inputs.result import Fetched

pytestmark = pytest.mark.inputs

ROOT = Path(__file__).parents[2]
DOWN = Upstream(releases="asked not to", hub="asked not to")
GROUP = "org.example.ortimg"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return read_catalogue()


@pytest.fixture(scope="module")
def fetcher() -> Iterator[Fetcher]:
    with Fetcher(Cache.default(), lock=read_lock(ROOT), upstream=DOWN) as running:
        yield running


def test_the_real_archive_made_of_the_jar(fetcher: Fetcher, catalogue: Catalogue, tmp_path: Path) -> None:
    row = next(row for row in catalogue.releases if row.key == "1.16.2-cuda11")
    result = fetcher.ort(row).result()
    assert isinstance(result, Fetched), str(result)
    if result.origin is Origin.UPSTREAM:
        pytest.skip("this machine's cache holds the release archive itself")
    assert result.origin is Origin.MAVEN
    locked = read_lock(ROOT).ort[row.key].maven
    assert locked is not None
    assert result.identity == locked.tar
    contents = check_archive(result.files[0].path, row, tmp_path, "1.16.2")
    assert set(row.needed) <= set(contents.needed)
    assert contents.commit == row.git_commit
    with tarfile.open(result.files[0].path) as archive:
        names = archive.getnames()
    assert f"{result.top_folder}/{ORIGIN_NOTE}" in names
    assert not any("onnxruntime4j" in name for name in names)


def test_every_wheel_of_a_set_is_the_pinned_one(fetcher: Fetcher, catalogue: Catalogue) -> None:
    row = next(row for row in catalogue.cuda_sets if row.key == "11.8-cudnn8")
    result = fetcher.cuda(row).result()
    assert isinstance(result, Fetched), str(result)
    for file, wheel in zip(result.files, row.wheels, strict=True):
        assert (file.name, file.sha256, file.size) == (wheel.filename, wheel.sha256, wheel.size)


@pytest.mark.skipif(os.geteuid() != 0 or not host_codename(), reason="bootstrapping needs root, and Debian")
@pytest.mark.parametrize("name", ["debian12", "debian13"])
def test_a_bootstrapped_base(fetcher: Fetcher, catalogue: Catalogue, name: str) -> None:
    row = next(row for row in catalogue.bases if row.name == name)
    assert row.suite is not None
    result = fetcher.base(row).result()
    assert isinstance(result, Fetched), str(result)
    root, packages = result.files
    record = json.loads(packages.path.read_text())
    assert record["suite"] == row.suite
    versions = {package.partition(":")[0]: version for package, version in record["packages"].items()}
    assert {"apt", "ca-certificates", "dpkg", "libgcc-s1", "libstdc++6", "zlib1g"} <= versions.keys()
    assert versions["libc6"].startswith(f"{row.glibc}-")
    assert "perl" not in versions
    with tarfile.open(root.path) as archive:
        members = {member.name.removeprefix("./").rstrip("/"): member for member in archive}
        sources = archive.extractfile(members["etc/apt/sources.list"])
        assert sources is not None
        lines = [line for line in sources.read().decode().splitlines() if line]
    assert lines == list(machine_sources(row.suite, threading.Event()))
    assert any("-security" in line for line in lines)
    assert any("-updates" in line for line in lines)
    for library in ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libc.so.6"):
        assert f"usr/lib/x86_64-linux-gnu/{library}" in members
    assert members["lib"].issym(), "COPY --link into /lib would replace this link"
    assert "etc/ssl/certs/ca-certificates.crt" in members
    assert "usr/share/doc/libc6/copyright" in members
    assert "var/lib/dpkg/status" in members
    # this machine's own affairs
    for gone in ("etc/resolv.conf", "etc/hostname", "etc/apt/apt.conf.d/99mmdebstrap"):
        assert gone not in members
    for folder in ("var/lib/apt/lists/", "var/cache/apt/archives/", "usr/share/man/", "tmp/"):
        assert not [path for path in members if path.startswith(folder) and members[path].size]


# the real `mvn`, on a repository of one small jar


def _publish(repository: Path, settings: Path, data: bytes, sha1: str) -> None:
    folder = repository.joinpath(*GROUP.split("."), "small", "1.0")
    folder.mkdir(parents=True)
    project = f"<groupId>{GROUP}</groupId><artifactId>small</artifactId><version>1.0</version>"
    pom = f"<project><modelVersion>4.0.0</modelVersion>{project}</project>".encode()
    for suffix, content, checksum in (
        ("jar", data, sha1),
        ("pom", pom, hashlib.sha1(pom, usedforsecurity=False).hexdigest()),
    ):
        (folder / f"small-1.0.{suffix}").write_bytes(content)
        (folder / f"small-1.0.{suffix}.sha1").write_text(checksum)
    settings.parent.mkdir()
    settings.write_text(
        "<settings><profiles><profile><id>here</id><repositories><repository><id>here</id>"
        f"<url>{repository.as_uri()}</url></repository></repositories></profile></profiles>"
        "<activeProfiles><activeProfile>here</activeProfile></activeProfiles></settings>"
    )


def _download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, sha1: str) -> bytes:
    _publish(tmp_path / "repository", tmp_path / ".m2" / "settings.xml", data, sha1)
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={tmp_path}")
    target = tmp_path / "small.jar"
    turns = Turns(mvn=threading.Semaphore(1), unpack=threading.Semaphore(1))
    # the cache's own Maven repository: it has Maven's plug-ins by now
    download_jar(
        Cache.default(), f"{GROUP}:small:1.0", target, stop=threading.Event(), say=print, turns=turns
    )
    return target.read_bytes()


def test_the_real_mvn_brings_a_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(1000)
    sha1 = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    assert _download(tmp_path, monkeypatch, data, sha1) == data
    repository = Cache.default().root / "m2"
    assert not list(repository.joinpath(*GROUP.split(".")).rglob("*.jar")), "the jar is moved, not copied"


def test_the_real_mvn_refuses_a_jar_with_another_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unreachable, match="Checksum validation failed"):
        _download(tmp_path, monkeypatch, b"data", "0" * 40)


def test_a_jar_that_does_not_exist_says_what_mvn_says() -> None:
    turns = Turns(mvn=threading.Semaphore(1), unpack=threading.Semaphore(1))
    cache = Cache.default()
    with cache.workdir() as work, pytest.raises(Unreachable) as caught:
        download_jar(
            cache,
            "com.microsoft.onnxruntime:onnxruntime_gpu:0.0.1",
            work / "x.jar",
            stop=threading.Event(),
            say=print,
            turns=turns,
        )
    assert "mvn cannot get com.microsoft.onnxruntime:onnxruntime_gpu:0.0.1" in caught.value.message
