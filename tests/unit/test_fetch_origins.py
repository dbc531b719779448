"""Origins in order, each reason kept.

Upstream is a server on 127.0.0.1, pip is the real one on a local folder, `mvn` is a script that hands out a
local jar (tests/docker/test_real_inputs.py runs the real one).
"""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Server, body, jar, release_files, serving, shared_library, status, tgz
from test_repack import row, wheel

from ortimg.core.lock import Lock, OrtLock, Repacked
from ortimg.core.model import Base, CudaSet, CudaWheel, MavenSource, Origin, OrtRelease, WheelSource
from ortimg.errors import EnvironmentFault
from ortimg.inputs.bootstrap import derive_sources
from ortimg.inputs.cache import Cache
from ortimg.inputs.download import Downloader
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.probe import Upstream
from ortimg.inputs.result import Fetched, Kind, Missing, Update

ARCHIVE = tgz(release_files())
ARCHIVE_SHA = hashlib.sha256(ARCHIVE).hexdigest()
JAR = jar()
JAR_SHA = hashlib.sha256(JAR).hexdigest()
PATH = "/v1.16.2/onnxruntime-linux-x64-gpu-1.16.2.tgz"
URL = f"https://github.com/microsoft/onnxruntime/releases/download{PATH}"
DOWN = Upstream(releases="github.com: name not resolved", hub="registry-1.docker.io: name not resolved")
UP = Upstream()
MAVEN = MavenSource(coordinates="com.microsoft.onnxruntime:onnxruntime_gpu:1.16.2", sha256=JAR_SHA)


@pytest.fixture(autouse=True)
def closed_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outside this machine: pip has a folder, and no index."""
    (tmp_path / "wheels").mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as running:
        monkeypatch.setenv("ORTIMG_RELEASE_MIRROR", running.url)
        yield running


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts an `mvn` first on PATH that stores `the.jar` where Maven would; returns the jar's path."""
    source, log = tmp_path / "the.jar", tmp_path / "mvn.log"
    source.write_bytes(JAR)
    log.touch()
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "mvn"
    script.write_text(
        "#!/bin/sh\nset -eu\n"
        f'echo "$@" >> {log}\n'
        "for word; do case $word in\n"
        "-Dartifact=*) a=${word#*=};;\n-Dmaven.repo.local=*) repo=${word#*=};;\nesac; done\n"
        'version=${a##*:}; folder="$repo/com/microsoft/onnxruntime/onnxruntime_gpu/$version"\n'
        f'[ -e {source} ] || {{ echo "[ERROR] Could not find artifact $a"; exit 1; }}\n'
        f'mkdir -p "$folder"; cp {source} "$folder/onnxruntime_gpu-$version.jar"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return source


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def release(**changes: object) -> OrtRelease:
    return row(**({"url": URL, "sha256": ARCHIVE_SHA, "maven": MAVEN} | changes))


def fetcher(cache: Cache, upstream: Upstream, lock: Lock | None = None, **more: object) -> Fetcher:
    quick = Downloader(connect_seconds=2, read_seconds=2, backoff=0.01)
    return Fetcher(cache, upstream=upstream, lock=lock, downloader=quick, **more)  # type: ignore[arg-type]


def get(cache: Cache, upstream: Upstream, wanted: OrtRelease, lock: Lock | None = None) -> Fetched | Missing:
    with fetcher(cache, upstream, lock) as running:
        return running.ort(wanted).result()


def test_upstream_comes_first_and_is_kept(server: Server, cache: Cache, mvn: Path) -> None:
    server.answers[PATH] = body(ARCHIVE)
    with fetcher(cache, UP) as running:
        result = running.ort(release()).result()
        assert running.ort(release()).result() is result, "asked twice, fetched once"
    assert isinstance(result, Fetched)
    assert (result.origin, result.identity, result.reasons, result.cached) == (
        Origin.UPSTREAM,
        ARCHIVE_SHA,
        (),
        False,
    )
    assert result.files[0].name == "onnxruntime-linux-x64-gpu-1.16.2.tgz"
    assert result.files[0].path.read_bytes() == ARCHIVE
    assert running.seen == Lock(ort={"1.16.2-cuda11": OrtLock(upstream=ARCHIVE_SHA)})
    again = get(Cache(cache.root), DOWN, release())
    assert isinstance(again, Fetched)
    assert (again.origin, again.cached, again.reasons) == (Origin.UPSTREAM, True, ())
    assert server.asked == [PATH]
    assert not (mvn.parent / "mvn.log").read_text()


def test_an_unreachable_release_host_means_maven_and_the_reason_is_kept(cache: Cache, mvn: Path) -> None:
    updates: list[Update] = []
    with fetcher(cache, DOWN, on_update=updates.append) as running:
        result = running.ort(release()).result()
    assert isinstance(result, Fetched)
    assert result.origin is Origin.MAVEN
    assert result.reasons == ("upstream: github.com: name not resolved",)
    assert result.top_folder == "onnxruntime-linux-x64-gpu-1.16.2"
    assert running.seen.ort["1.16.2-cuda11"] == OrtLock(maven=Repacked(source=JAR_SHA, tar=result.identity))
    assert any("github.com: name not resolved" in update.text for update in updates)
    assert updates[-1].text.startswith("maven (fetched")
    assert "-Dtransitive=false" in (mvn.parent / "mvn.log").read_text()
    again = get(Cache(cache.root), DOWN, release())
    assert isinstance(again, Fetched)
    assert (again.identity, again.cached) == (result.identity, True)
    assert (mvn.parent / "mvn.log").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(404), "the server answered 404"),
        (body(b"<html><title>Welcome</title>", Content_Type="text/html"), "a web page"),
        (body(ARCHIVE[:100], length=len(ARCHIVE)), "broke off"),
    ],
    ids=["404", "web-page", "cut"],
)
@pytest.mark.usefixtures("mvn")
def test_a_file_that_does_not_come_means_maven(
    server: Server, cache: Cache, answer: object, words: str
) -> None:
    server.answers[PATH] = answer  # type: ignore[assignment]
    result = get(cache, UP, release())
    assert isinstance(result, Fetched)
    assert result.origin is Origin.MAVEN
    assert words in result.reasons[0]


CPU = {name: data for name, data in release_files().items() if "cuda" not in name}
NO_BRIDGE = {name: data for name, data in release_files().items() if "shared" not in name}
CUDA_12 = release_files(needed=("libcublas.so.12", "libcublasLt.so.12"))


@pytest.mark.parametrize(
    ("data", "pin", "words"),
    [
        (ARCHIVE[:-1] + b"x", ARCHIVE_SHA, "re-uploaded upstream or damaged in transit"),
        (tgz(CPU), None, "this is the CPU archive"),
        (tgz(NO_BRIDGE), None, "libonnxruntime_providers_shared.so is not in it"),
        (tgz(CUDA_12), None, "needs libcublas.so.12, expected CUDA 11"),
    ],
    ids=["hash", "cpu-archive", "no-bridge", "cuda-12"],
)
def test_a_wrong_file_is_never_papered_over(
    server: Server, cache: Cache, mvn: Path, data: bytes, pin: str | None, words: str
) -> None:
    server.answers[PATH] = body(data)
    with fetcher(cache, UP) as running:
        result = running.ort(release(sha256=pin)).result()
    assert isinstance(result, Missing)
    assert result.wrong
    assert words in str(result)
    assert not (mvn.parent / "mvn.log").read_text(), "no other origin is tried in silence"
    assert cache.names() == ()
    assert running.seen == Lock()
    assert list((cache.root / "tmp").iterdir()) == []


def test_an_unknown_hash_is_pinned_when_first_seen(server: Server, cache: Cache) -> None:
    server.answers[PATH] = body(ARCHIVE)
    with fetcher(cache, UP) as running:
        assert isinstance(running.ort(release(sha256=None)).result(), Fetched)
    assert running.seen.ort["1.16.2-cuda11"].upstream == ARCHIVE_SHA


def test_the_lock_is_a_pin_too(server: Server, tmp_path: Path) -> None:
    server.answers[PATH] = body(ARCHIVE)
    lock = Lock(ort={"1.16.2-cuda11": OrtLock(upstream="f" * 64)})
    for number, sha256 in enumerate((None, ARCHIVE_SHA)):
        result = get(Cache(tmp_path / str(number)), UP, release(sha256=sha256), lock)
        assert isinstance(result, Missing)
        assert result.wrong
        assert "f" * 64 in str(result)
        assert ARCHIVE_SHA in str(result)


def test_a_cached_archive_that_the_lock_does_not_know_is_not_used(server: Server, cache: Cache) -> None:
    server.answers[PATH] = body(ARCHIVE)
    assert isinstance(get(cache, UP, release(sha256=None)), Fetched)
    lock = Lock(ort={"1.16.2-cuda11": OrtLock(upstream="f" * 64)})
    result = get(cache, DOWN, release(sha256=None, maven=None), lock)
    assert isinstance(result, Missing)


def test_another_jar_than_the_pinned_one(cache: Cache, mvn: Path) -> None:
    mvn.write_bytes(jar(else_=b"x"))
    result = get(cache, DOWN, release())
    assert isinstance(result, Missing)
    assert result.wrong
    assert JAR_SHA in str(result)
    assert cache.names() == ()


def test_no_fallback_is_said(cache: Cache) -> None:
    result = get(cache, DOWN, release(maven=None))
    assert isinstance(result, Missing)
    assert not result.wrong
    assert result.reasons == (
        "upstream: github.com: name not resolved",
        "no fallback holds ONNX Runtime 1.16.2 for CUDA 11",
    )
    assert "ORTIMG_RELEASE_MIRROR" in (result.hint or "")


def test_every_origin_fails_and_each_reason_is_there(cache: Cache, mvn: Path) -> None:
    mvn.unlink()
    result = get(cache, DOWN, release())
    assert isinstance(result, Missing)
    assert [reason.partition(":")[0] for reason in result.reasons] == ["upstream", "maven"]
    assert "Could not find artifact" in result.reasons[1]


def test_the_wheel_comes_after_maven(cache: Cache, tmp_path: Path, mvn: Path) -> None:
    mvn.unlink()
    data = wheel("1.23.2")
    name = "onnxruntime_gpu-1.23.2-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl"
    (tmp_path / "wheels" / name).write_bytes(_installable(data, "onnxruntime_gpu", "1.23.2"))
    sha256 = hashlib.sha256((tmp_path / "wheels" / name).read_bytes()).hexdigest()
    wanted = row(
        "1.23.2",
        cuda_major=12,
        cudnn_major=9,
        soname="libonnxruntime.so.1",
        maven=MavenSource(coordinates="com.microsoft.onnxruntime:onnxruntime_gpu:1.23.2"),
        wheel=WheelSource(requirement="onnxruntime-gpu==1.23.2", filename=name, sha256=sha256),
    )
    result = get(cache, DOWN, wanted)
    assert isinstance(result, Fetched), str(result)
    assert result.origin is Origin.WHEEL
    assert [reason.partition(":")[0] for reason in result.reasons] == ["upstream", "maven"]
    assert cache.names() == ("ort/1.23.2-cuda12/wheel",), "the wheel itself is not kept"


def test_the_cache_alone_tells_what_is_known(server: Server, cache: Cache) -> None:
    with fetcher(cache, UP) as running:
        assert running.known_ort(release()) is None
    server.answers[PATH] = body(ARCHIVE)
    fetched = get(cache, UP, release())
    assert isinstance(fetched, Fetched)
    with fetcher(cache, DOWN) as running:
        known = running.known_ort(release())
        assert known is not None
        assert (known.identity, known.cached) == (fetched.identity, True)
        assert running.known_ort(release(sha256="f" * 64)) is None


@pytest.mark.usefixtures("mvn")
def test_a_cached_fallback_is_known_only_while_upstream_is_away(cache: Cache) -> None:
    assert isinstance(get(cache, DOWN, release()), Fetched)
    with fetcher(cache, DOWN) as running:
        assert running.known_ort(release()) is not None
    with fetcher(cache, UP) as running:
        assert running.known_ort(release()) is None


def test_an_interrupt_ends_what_runs(cache: Cache, mvn: Path) -> None:
    script = mvn.parent / "bin" / "mvn"
    script.write_text(f"#!/bin/sh\ntouch {mvn.parent}/started\nsleep 600\n")
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), fetcher(cache, DOWN) as running:
        future = running.ort(release())
        while not (mvn.parent / "started").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt
    result = future.result()
    assert isinstance(result, Missing)
    assert result.reasons == ("interrupted",)
    assert time.monotonic() - start < 10
    assert list((cache.root / "tmp").iterdir()) == []


# CUDA sets


def _installable(data: bytes, name: str, version: str) -> bytes:
    """The metadata that pip wants to see in a wheel."""
    path = Path(os.environ["PIP_FIND_LINKS"]) / "tmp.zip"
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as package:
        info = f"{name}-{version}.dist-info"
        # fixed times: the hash must be the same in every run
        for file, text in {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }.items():
            package.writestr(zipfile.ZipInfo(f"{info}/{file}"), text)
    result = path.read_bytes()
    path.unlink()
    return result


def cuda_set(tmp_path: Path) -> CudaSet:
    rows = []
    for name, library in (("nvidia_cublas_cu11", "libcublas.so.11"), ("nvidia_cudnn_cu11", "libcudnn.so.8")):
        filename = f"{name}-1.0-py3-none-manylinux2014_x86_64.whl"
        path = tmp_path / "wheels" / filename
        with zipfile.ZipFile(path, "w") as package:
            package.writestr(f"nvidia/x/lib/{library}", shared_library("libc.so.6"))
        data = _installable(path.read_bytes(), name, "1.0")
        path.write_bytes(data)
        rows.append(
            CudaWheel(
                requirement=f"{name.replace('_', '-')}==1.0",
                filename=filename,
                sha256=hashlib.sha256(data).hexdigest(),
                size=len(data),
                libraries=(library,),
            )
        )
    return CudaSet(cuda="11.8", cudnn="8", cudnn_version="8.9.6.50", wheels=tuple(rows))


def test_a_cuda_set_by_pip(cache: Cache, tmp_path: Path) -> None:
    wanted = cuda_set(tmp_path)
    with fetcher(cache, DOWN) as running:
        result = running.cuda(wanted).result()
    assert isinstance(result, Fetched), str(result)
    assert [file.name for file in result.files] == [wheel.filename for wheel in wanted.wheels]
    assert running.seen.cuda == {"11.8-cudnn8": {wheel.filename: wheel.sha256 for wheel in wanted.wheels}}
    for path in (tmp_path / "wheels").iterdir():
        path.unlink()
    with fetcher(Cache(cache.root), DOWN) as running:
        again = running.cuda(wanted).result()
        known = running.known_cuda(wanted)
    assert isinstance(again, Fetched)
    assert again.cached
    assert known is not None
    assert known.identity == again.identity == result.identity


def test_a_wheel_with_another_hash(cache: Cache, tmp_path: Path) -> None:
    wanted = cuda_set(tmp_path)
    path = tmp_path / "wheels" / wanted.wheels[0].filename
    path.write_bytes(_installable(path.read_bytes(), "more", "1"))
    with fetcher(cache, DOWN) as running:
        result = running.cuda(wanted).result()
    assert isinstance(result, Missing)
    assert result.wrong
    assert wanted.wheels[0].sha256 in str(result)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in str(result)
    assert cache.names() == (f"wheels/{wanted.wheels[1].filename}",), "the good one is kept"


def test_a_wheel_that_is_nowhere(cache: Cache, tmp_path: Path) -> None:
    wanted = cuda_set(tmp_path)
    (tmp_path / "wheels" / wanted.wheels[1].filename).unlink()
    with fetcher(cache, DOWN) as running:
        result = running.cuda(wanted).result()
    assert isinstance(result, Missing)
    assert not result.wrong
    assert "pip cannot download nvidia-cudnn-cu11==1.0" in str(result)


# bases

DEBIAN = Base(name="debian12", image="debian:12-slim", title="Debian 12", glibc="2.36", glibcxx="3.4.30")
ROCKY = Base(name="rocky9", image="rocky:9", title="Rocky Linux 9", glibc="2.34", glibcxx="3.4.29")


def test_a_base_is_the_engines_to_pull_where_the_hub_answers(cache: Cache) -> None:
    with fetcher(cache, UP) as running:
        result = running.base(DEBIAN).result()
    assert isinstance(result, Fetched)
    assert (result.kind, result.origin, result.image, result.files) == (
        Kind.BASE,
        Origin.UPSTREAM,
        DEBIAN.image,
        (),
    )
    assert running.seen.bases[DEBIAN.name].digest is None, "unresolved, nothing is invented"


def test_a_base_that_the_engine_holds_needs_no_hub(cache: Cache) -> None:
    with fetcher(cache, DOWN, has_image=lambda image: image == ROCKY.image) as running:
        assert isinstance(running.base(ROCKY).result(), Fetched)
        assert isinstance(running.base(DEBIAN).result(), Missing)


def test_a_base_that_cannot_be_had_is_said(cache: Cache) -> None:
    with fetcher(cache, DOWN) as running:
        result = running.base(ROCKY).result()
    assert isinstance(result, Missing)
    assert str(result) == (
        "base rocky9: upstream: registry-1.docker.io: name not resolved; Rocky Linux 9 cannot be bootstrapped"
    )


def test_sources_of_another_suite_come_from_the_machines_own() -> None:
    listed = (
        "'http://mirror.example/debian/dists/bookworm/InRelease' mirror_InRelease 0 \n"
        "'http://mirror.example/debian/dists/bookworm-updates/InRelease' mirror_InRelease 0 \n"
        "'http://security.example/dists/bookworm-security/InRelease' security_InRelease 0 \n"
        "'http://third.example/repo/dists/nodistro/InRelease' third 0 \n"
        "'http://third.example/dists/tool-bookworm/InRelease' third 0 \n"
        "'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' packages 0 \n"
    )
    assert derive_sources(listed, "bookworm", "trixie") == (
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://security.example trixie-security main",
    )
    assert derive_sources(listed, "jammy", "trixie") == ()


def test_a_cache_that_cannot_be_written_is_no_reason_for_another_origin(cache: Cache, mvn: Path) -> None:
    cache.root.mkdir(parents=True)
    (cache.root / "tmp").write_text("in the way")
    result = get(cache, DOWN, release())
    assert isinstance(result, Missing)
    assert "ORTIMG_CACHE" in (result.hint or ""), result
    assert not (mvn.parent / "mvn.log").read_text()
    with pytest.raises(EnvironmentFault), cache.workdir():
        pass
