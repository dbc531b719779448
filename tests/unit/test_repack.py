"""A jar or wheel in the release archive's own layout, the same bytes every time."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from loopback import COMMIT, NEEDED_11, jar, release_files, shared_library, tgz

from ortimg.core.model import MavenSource, Origin, OrtRelease, WheelSource
from ortimg.inputs.archive import check_archive
from ortimg.inputs.cache import Cache, sha256_of
from ortimg.inputs.download import WrongFile
from ortimg.inputs.repack import ORIGIN_NOTE, repack, tar_sha256

# The whole chain from these jars to their archives is deterministic. A change here changes images.lock of
# everyone who uses a fallback: never by accident.
TAR_SHA256 = "6ef887c9f8f5dbc67c5319b4c0afe2eae773e97bfd5210f96e858964b41a9221"

NEEDED_12 = ("libcublasLt.so.12", "libcublas.so.12", "libcudnn.so.9", "libcurand.so.10", "libcudart.so.12")


def row(version: str = "1.16.2", **changes: object) -> OrtRelease:
    values: dict[str, object] = {
        "version": version,
        "cuda_major": 11,
        "cudnn_major": 8,
        "asset": f"onnxruntime-linux-x64-gpu-{version}.tgz",
        "url": f"https://github.com/microsoft/onnxruntime/releases/download/v{version}/x.tgz",
        "soname": f"libonnxruntime.so.{version}",
        "glibc": "2.16",
        "glibcxx": "3.4.19",
        "git_commit": COMMIT,
        "maven": MavenSource(coordinates=f"com.microsoft.onnxruntime:onnxruntime_gpu:{version}"),
    }
    return OrtRelease(**(values | changes))  # type: ignore[arg-type]


def wheel(version: str) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as package:
        for name in (f"libonnxruntime.so.{version}", "libonnxruntime_providers_shared.so"):
            package.writestr(f"onnxruntime/capi/{name}", shared_library("libc.so.6"))
        package.writestr("onnxruntime/capi/libonnxruntime_providers_cuda.so", shared_library(*NEEDED_12))
        package.writestr("onnxruntime/capi/onnxruntime_pybind11_state.so", b"not taken")
        package.writestr("onnxruntime/LICENSE", b"the wheel's own licence\n")
        package.writestr("onnxruntime/ThirdPartyNotices.txt", b"notices\n")
    return raw.getvalue()


def listing(path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        return {member.name: member for member in archive.getmembers()}


def read(path: Path, name: str) -> bytes:
    with tarfile.open(path) as archive:
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_layout_of_a_jar_up_to_1_18(cache: Cache, tmp_path: Path) -> None:
    source = tmp_path / "x.jar"
    source.write_bytes(jar())
    entry = repack(cache, "a", source, sha256_of(source), row(), Origin.MAVEN)
    top = "onnxruntime-linux-x64-gpu-1.16.2"
    members = listing(cache.path(entry))
    assert list(members) == sorted(members)
    assert list(members) == [
        top,
        f"{top}/GIT_COMMIT_ID",
        f"{top}/LICENSE",
        f"{top}/{ORIGIN_NOTE}",
        f"{top}/ThirdPartyNotices.txt",
        f"{top}/VERSION_NUMBER",
        f"{top}/lib",
        f"{top}/lib/libonnxruntime.so",
        f"{top}/lib/libonnxruntime.so.1.16.2",
        f"{top}/lib/libonnxruntime_providers_cuda.so",
        f"{top}/lib/libonnxruntime_providers_shared.so",
    ]
    assert members[f"{top}/lib/libonnxruntime.so"].linkname == "libonnxruntime.so.1.16.2"
    assert members[f"{top}/lib/libonnxruntime.so.1.16.2"].isreg()
    assert {(m.uid, m.gid, m.mtime, m.uname) for m in members.values()} == {(0, 0, 0, "")}
    assert read(cache.path(entry), f"{top}/GIT_COMMIT_ID") == f"{COMMIT}\n".encode()
    assert read(cache.path(entry), f"{top}/VERSION_NUMBER") == b"1.16.2\n"
    note = read(cache.path(entry), f"{top}/{ORIGIN_NOTE}").decode()
    assert sha256_of(source) in note
    assert "com.microsoft.onnxruntime:onnxruntime_gpu:1.16.2" in note
    assert "no headers" in note
    assert b"Microsoft Corporation" in read(cache.path(entry), f"{top}/LICENSE")


def test_layout_of_a_wheel_from_1_19_on(cache: Cache, tmp_path: Path) -> None:
    source = tmp_path / "x.whl"
    source.write_bytes(wheel("1.23.2"))
    release = row(
        "1.23.2",
        cuda_major=12,
        cudnn_major=9,
        soname="libonnxruntime.so.1",
        wheel=WheelSource(requirement="onnxruntime-gpu==1.23.2", filename="w.whl", sha256="0" * 64),
    )
    entry = repack(cache, "a", source, sha256_of(source), release, Origin.WHEEL)
    lib = "onnxruntime-linux-x64-gpu-1.23.2/lib"
    members = listing(cache.path(entry))
    assert members[f"{lib}/libonnxruntime.so"].linkname == "libonnxruntime.so.1"
    assert members[f"{lib}/libonnxruntime.so.1"].linkname == "libonnxruntime.so.1.23.2"
    assert members[f"{lib}/libonnxruntime.so.1.23.2"].isreg()
    assert f"{lib}/onnxruntime_pybind11_state.so" not in members
    top = "onnxruntime-linux-x64-gpu-1.23.2"
    assert read(cache.path(entry), f"{top}/LICENSE") == b"the wheel's own licence\n"


def test_the_same_bytes_whatever_the_clock_the_mask_and_the_order(tmp_path: Path) -> None:
    seen = set()
    for number, mask in enumerate((0o022, 0o077)):
        before = os.umask(mask)
        try:
            source = tmp_path / f"{number}.jar"
            source.write_bytes(jar())  # zip members carry the time of writing; it must not matter
            os.utime(source, (number, number))
            cache = Cache(tmp_path / str(number))
            entry = repack(cache, "a", source, "0" * 64, row(), Origin.MAVEN)
        finally:
            os.umask(before)
        assert entry.sha256 == sha256_of(cache.path(entry))
        assert entry.details["tar_sha256"] == tar_sha256(cache.path(entry))
        seen.add((entry.sha256, entry.details["tar_sha256"]))
    assert len(seen) == 1
    assert seen.pop()[1] == TAR_SHA256


def test_a_repacked_archive_passes_the_checks_of_a_release_archive(cache: Cache, tmp_path: Path) -> None:
    source = tmp_path / "x.jar"
    source.write_bytes(jar())
    entry = repack(cache, "a", source, sha256_of(source), row(), Origin.MAVEN)
    contents = check_archive(cache.path(entry), row(), tmp_path, "it")
    assert contents.needed == NEEDED_11
    assert (contents.version, contents.commit) == ("1.16.2", COMMIT)


def test_not_a_zip(cache: Cache, tmp_path: Path) -> None:
    source = tmp_path / "x.jar"
    source.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(WrongFile, match="not a whole zip file"):
        repack(cache, "a", source, "0" * 64, row(), Origin.MAVEN)
    assert cache.names() == ()


def _without(name: str) -> dict[str, bytes]:
    return {key: data for key, data in release_files().items() if not key.endswith(name)}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (tgz(_without("providers_cuda.so")), "this is the CPU archive"),
        (tgz(_without("providers_shared.so")), "libonnxruntime_providers_shared.so is not in it"),
        (tgz(_without("libonnxruntime.so.1.16.2")), "libonnxruntime.so is not in it"),
        (tgz(release_files("1.16.3")), "VERSION_NUMBER says 1.16.3, expected 1.16.2"),
        (tgz(release_files() | {"GIT_COMMIT_ID": b"f" * 40}), "built from commit ffff"),
        (
            tgz(release_files(needed=("libcublas.so.12", "libcudnn.so.8"))),
            "needs libcublas.so.12, expected CUDA 11",
        ),
        (
            tgz(release_files(needed=("libcublas.so.11", "libcudnn.so.9"))),
            "needs libcudnn.so.9, expected cuDNN 8",
        ),
        (tgz(release_files(needed=("libcublas.so.11", "libcudnn_ops.so.9"))), "needs libcudnn_ops.so.9"),
        (tgz(release_files(needed=())), "not a CUDA build"),
        (tgz(release_files() | {"lib/libonnxruntime_providers_cuda.so": b"text"}), "is not an ELF file"),
        (tgz(release_files(), top=""), "one top folder expected"),
        (tgz({"../../etc/passwd": b"x"}), "unsafe path"),
        (tgz(release_files())[:-200], "not a whole .tgz archive"),
        (b"PK\x03\x04", "not a whole .tgz archive"),
        (b"", "not a whole .tgz archive"),
    ],
    ids=[
        *("cpu-archive", "no-bridge", "no-core", "other-version", "other-commit", "cuda-12", "cudnn-9"),
        *("cudnn-9-part", "no-cuda", "no-elf", "no-top-folder", "unsafe", "cut", "zip", "empty"),
    ],
)
def test_wrong_archives_are_told_apart(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(data)
    with pytest.raises(WrongFile) as caught:
        check_archive(path, row(), tmp_path, "a.tgz")
    assert words in caught.value.message
    assert caught.value.message.startswith("a.tgz: ")


def test_the_order_of_members_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.tgz"
    files = release_files()
    first = {"lib/libonnxruntime_providers_shared.so": files["lib/libonnxruntime_providers_shared.so"]}
    path.write_bytes(tgz(first | dict(reversed(files.items()))))
    assert check_archive(path, row(), tmp_path, "a.tgz").version == "1.16.2"
