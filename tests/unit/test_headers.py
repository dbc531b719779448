"""Headers for the flavour devel: from the archive, from Debian's package, or a word that there are none."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import msgspec
import pytest
from test_apt_source import DEB822, ONE_LINE
from test_fetch_origins import DOWN, MAVEN, UP, fetcher
from test_fetch_origins import cache as cache
from test_fetch_origins import closed_world as closed_world
from test_fetch_origins import mvn as mvn
from test_fetch_origins import release as release
from test_fetch_origins import server as server

from ortimg.core.lock import Lock, Repacked, dump, merge, parse
from ortimg.core.model import DebianHeaders, Origin
from ortimg.engine.apt import one_suite
from ortimg.errors import EnvironmentFault
from ortimg.inputs import headers
from ortimg.inputs.cache import Cache
from ortimg.inputs.download import Unreachable, WrongFile
from ortimg.inputs.result import Fetched, Kind, Missing

SOURCE = DebianHeaders(package="libonnxruntime-dev", suite="sid")


def test_upstream_part_of_a_debian_version() -> None:
    for version in ("1.23.2", "1.23.2-1", "1.23.2+dfsg-6.1", "2:1.23.2~rc1-1", "1:1.23.2-1+b2"):
        assert headers.upstream_part(version) == "1.23.2"


def test_one_suite_keeps_mirror_and_keys() -> None:
    assert one_suite({"debian.sources": DEB822}, "bookworm", "sid") == (
        "Types: deb\n"
        "URIs: http://mirror.example/debian\n"
        "Suites: sid\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )
    assert "Suites: sid\n" in one_suite({"a.list": ONE_LINE}, "bookworm", "sid")
    assert one_suite({"a.list": ONE_LINE}, "trixie", "sid") == "", "of another release nothing is known"


def deb(folder: Path, version: str, api: int) -> Path:
    """A package of headers, as small as can be."""
    root = folder / "package"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        f"Package: libonnxruntime-dev\nVersion: {version}\nArchitecture: amd64\n"
        "Maintainer: nobody <nobody@example.com>\nDescription: headers\n"
    )
    inside = root / "usr" / "include" / "onnxruntime" / "core"
    inside.mkdir(parents=True)
    (inside / "one.h").write_text("// one\n")
    (inside.parent / "onnxruntime_c_api.h").write_text(f"#pragma once\n#define ORT_API_VERSION {api}\n")
    (root / "usr" / "lib").mkdir()
    (root / "usr" / "lib" / "other").write_text("not a header\n")
    target = folder / f"libonnxruntime-dev_{version}_amd64.deb"
    subprocess.run(["dpkg-deb", "--build", root, target], check=True, capture_output=True)
    shutil.rmtree(root)
    return target


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local archive in place of the machine's mirror, and the real apt: the folder for its packages."""
    folder = tmp_path / "archive"
    folder.mkdir()

    def packages(*_words: object) -> str:
        rows = []
        for file in folder.glob("*.deb"):
            name, version, _ = file.name.split("_")
            fields = {
                "Package": name,
                "Version": version,
                "Architecture": "amd64",
                "Filename": f"./{file.name}",
            }
            data = file.read_bytes()
            fields |= {"Size": str(len(data)), "SHA256": hashlib.sha256(data).hexdigest()}
            rows.append("".join(f"{key}: {value}\n" for key, value in fields.items()))
        (folder / "Packages").write_text("\n".join(rows))
        return f"Types: deb\nURIs: file:{folder}\nSuites: ./\nTrusted: yes\n"

    monkeypatch.setattr(headers, "one_suite", packages)
    return folder


needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="only Debian has apt")


def debian(cache: Cache, row: object) -> Fetched | Missing:
    with fetcher(cache, DOWN) as running:
        return running.headers(row).result()  # type: ignore[arg-type]


@needs_apt
@pytest.mark.usefixtures("mvn")
def test_headers_of_the_same_version_come_from_debian(cache: Cache, apt: Path) -> None:
    deb(apt, "1.16.2+dfsg-1", 16)
    row = release(headers=SOURCE)
    first = debian(cache, row)
    assert isinstance(first, Fetched)
    assert (first.kind, first.origin, first.cached) == (Kind.HEADERS, Origin.DEBIAN, False)
    assert first.reasons == (f"upstream: {DOWN.releases}", "maven: that package holds no headers")
    with tarfile.open(first.files[0].path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert names == ["", "include", "include/core", "include/core/one.h", "include/onnxruntime_c_api.h"]
    with fetcher(cache, DOWN) as running:
        second = running.headers(row).result()
        assert running.known_headers(row) is not None
        locked = running.seen.headers["1.16.2-cuda11"]
    assert isinstance(second, Fetched)
    assert second.cached
    assert locked == Repacked(source=first.source_sha256, tar=first.identity)


@needs_apt
@pytest.mark.usefixtures("mvn")
def test_another_version_of_debian_is_refused(cache: Cache, apt: Path) -> None:
    deb(apt, "1.24.0-1", 24)
    result = debian(cache, release(headers=SOURCE))
    assert isinstance(result, Missing)
    assert result.reasons[-2] == "debian: Debian sid has libonnxruntime-dev 1.24.0-1, not 1.16.2"
    assert str(result).endswith("; the release archive (upstream) has them")


@needs_apt
def test_headers_of_another_api_are_refused(cache: Cache, apt: Path) -> None:
    deb(apt, "1.16.2-1", 17)
    with pytest.raises(WrongFile, match="its headers are not those of ONNX Runtime"):
        headers.fetch_debian_headers(cache, release(), SOURCE, threading.Event(), lambda _text: None)


@pytest.mark.usefixtures("mvn")
def test_a_fallback_without_headers_says_so(cache: Cache) -> None:
    """Never a silent gap: where nothing has the headers, what would have them is named."""
    result = debian(cache, release(maven=MAVEN))
    assert isinstance(result, Missing)
    assert str(result) == (
        f"headers 1.16.2-cuda11: upstream: {DOWN.releases}; maven: that package holds no headers; "
        "debian: no package with headers of 1.16.2 is known; the release archive (upstream) has them"
    )
    assert result.hint is not None
    assert "ORTIMG_RELEASE_MIRROR" in result.hint
    assert not result.wrong


def test_a_machine_without_a_mirror(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "one_suite", lambda *_words: "")
    with pytest.raises(Unreachable, match="this machine's apt has no Debian mirror"):
        headers.fetch_debian_headers(cache, release(), SOURCE, threading.Event(), lambda _text: None)


def test_the_release_archive_has_the_headers(cache: Cache, server: object) -> None:
    from test_fetch_origins import ARCHIVE, ARCHIVE_SHA, PATH, body

    server.answers[PATH] = body(ARCHIVE)  # type: ignore[attr-defined]
    with fetcher(cache, UP) as running:
        result = running.headers(release(headers=SOURCE)).result()
    assert isinstance(result, Fetched)
    assert (result.kind, result.origin, result.identity) == (Kind.ORT, Origin.UPSTREAM, ARCHIVE_SHA)


def test_the_lock_keeps_the_headers_whatever_package_brings_them() -> None:
    first = Lock(headers={"a": Repacked(source="1" * 64, tar="2" * 64)})
    rebuilt = Lock(headers={"a": Repacked(source="3" * 64, tar="2" * 64)})
    assert merge(first, rebuilt).headers["a"] == Repacked(source="3" * 64, tar="2" * 64)
    other = msgspec.structs.replace(first, headers={"a": Repacked(source="1" * 64, tar="4" * 64)})
    with pytest.raises(EnvironmentFault, match=r"a \(headers\): sha256 is 4+, images.lock says 2+"):
        merge(first, other)
    assert parse(dump(first)) == first


def test_the_lock_pins_the_wheels_of_a_python_flavour() -> None:
    first = Lock(python={"1.17.1-cuda11-python3.11": {"a.whl": "1" * 64}})
    with pytest.raises(EnvironmentFault, match=r"a\.whl: sha256 is 2+"):
        merge(first, Lock(python={"1.17.1-cuda11-python3.11": {"a.whl": "2" * 64}}))
