"""A fallback (Maven jar, wheel) repacked into the release archive's own layout, byte for byte reproducible.

The layouts: up to 1.18 `libonnxruntime.so -> libonnxruntime.so.<v>`; from 1.19 on
`libonnxruntime.so -> libonnxruntime.so.1 -> libonnxruntime.so.<v>`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import tarfile
import zipfile
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import msgspec

from ortimg.core.model import Origin, OrtRelease
from ortimg.inputs.archive import BRIDGE, PROVIDER, check_commit, check_files, check_provider
from ortimg.inputs.cache import CHUNK, Cache, Entry
from ortimg.inputs.download import WrongFile

TENSORRT = "libonnxruntime_providers_tensorrt.so"
ORIGIN_NOTE = "ORTIMG-ORIGIN.txt"
EPOCH = 0  # mtime of every member
_JAR = "ai/onnxruntime/native/linux-x64/"
_WHEEL = "onnxruntime/capi/"
_TEXTS = ("LICENSE", "ThirdPartyNotices.txt", "Privacy.md")


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One member of the archive: a file on disk, a short text, or a link."""

    name: str  # below the top folder
    path: Path | None = None
    data: bytes | None = None
    link: str | None = None


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """The hashes of a written archive."""

    tar_sha256: str  # of the tar stream inside: the identity, the same with every zlib
    sha256: str  # of the file


def repack(
    cache: Cache, name: str, source: Path, source_sha256: str, release: OrtRelease, origin: Origin
) -> Entry:
    """Repack the jar or wheel `source` into the cache under `name`.

    Raises `WrongFile` where the libraries in it are not those of the release.
    """
    what = f"{origin.value} package of ONNX Runtime {release.key}"
    with cache.workdir(3 * source.stat().st_size) as work:
        members = _members(source, source_sha256, release, origin, what, work)
        target = work / "archive.tgz"
        top = release.top_folder or f"onnxruntime-linux-x64-gpu-{release.version}"
        packed = write_archive(target, top, members)
        return cache.adopt(
            name,
            target,
            sha256=packed.sha256,
            origin=origin,
            details={"tar_sha256": packed.tar_sha256, "source_sha256": source_sha256, "top_folder": top},
        )


def write_archive(target: Path, top: str, members: list[Member]) -> Packed:
    """Write a .tgz: members sorted, owner 0:0, fixed modes and times; files are streamed."""
    with target.open("wb") as file:
        outer = _Tee(file)
        packer = gzip.GzipFile(
            filename="", mode="wb", fileobj=cast(BinaryIO, outer), compresslevel=1, mtime=0
        )
        with packer:
            inner = _Tee(cast(BinaryIO, packer))
            with tarfile.open(
                fileobj=cast(BinaryIO, inner), mode="w|", format=tarfile.GNU_FORMAT, bufsize=CHUNK
            ) as archive:
                for info, path, data in _plan(top, members):
                    if path is not None:
                        with path.open("rb") as source:
                            archive.addfile(info, source)
                    else:
                        archive.addfile(info, io.BytesIO(data or b""))
    return Packed(tar_sha256=inner.digest.hexdigest(), sha256=outer.digest.hexdigest())


def _plan(top: str, members: list[Member]) -> list[tuple[tarfile.TarInfo, Path | None, bytes | None]]:
    folders = {top} | {
        f"{top}/{parent}"
        for member in members
        for parent in PurePosixPath(member.name).parents
        if str(parent) != "."
    }
    rows: list[tuple[tarfile.TarInfo, Path | None, bytes | None]] = []
    for folder in folders:
        info = _info(folder, 0o755)
        info.type = tarfile.DIRTYPE
        rows.append((info, None, None))
    for member in members:
        info = _info(f"{top}/{member.name}", 0o755 if ".so" in member.name else 0o644)
        if member.link is not None:
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, member.link, 0o777
        elif member.path is not None:
            info.size = member.path.stat().st_size
        else:
            info.size = len(member.data or b"")
        rows.append((info, member.path, member.data))
    return sorted(rows, key=lambda row: row[0].name)


def _info(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime, info.mode, info.uid, info.gid = EPOCH, mode, 0, 0
    return info


def _members(
    source: Path, source_sha256: str, release: OrtRelease, origin: Origin, what: str, work: Path
) -> list[Member]:
    core = f"libonnxruntime.so.{release.version}"
    try:
        with zipfile.ZipFile(source) as package:
            members = _unpack(package, release, core, work)
    except zipfile.BadZipFile as error:
        raise WrongFile(f"{what}: not a whole zip file ({error})") from error
    check_files({member.name for member in members}, release, what)
    check_provider(work / PROVIDER, release, what)
    commit = next((m.data.decode().strip() for m in members if m.name == "GIT_COMMIT_ID" and m.data), None)
    check_commit(commit, release, what)
    note = (
        f"ONNX Runtime {release.version} for CUDA {release.cuda_major}, Linux x64.\n"
        f"Repacked by ortimg into the layout of the release archive, because that could not be reached.\n"
        f"From: {_described(release, origin)}\n"
        f"sha256: {source_sha256}\n"
        "The libraries are those of that package, unchanged. It holds no headers and no CMake or\n"
        "pkg-config files, so there are none here.\n"
        "LICENSE is the licence text of the project where the package itself holds none.\n"
    )
    members.append(Member(name=ORIGIN_NOTE, data=note.encode()))
    return members


def _described(release: OrtRelease, origin: Origin) -> str:
    if origin is Origin.MAVEN and release.maven is not None:
        return f"the Maven jar {release.maven.coordinates}"
    if origin is Origin.WHEEL and release.wheel is not None:
        return f"the wheel {release.wheel.filename}"
    return f"{origin.value}"


def _unpack(package: zipfile.ZipFile, release: OrtRelease, core: str, work: Path) -> list[Member]:
    """Only the Linux x64 members are read; file times and modes of the package do not count."""
    names = set(package.namelist())
    libraries = _JAR if f"{_JAR}{BRIDGE}" in names else _WHEEL
    texts = "" if libraries == _JAR else "onnxruntime/"
    members: list[Member] = []

    def library(found: str, name: str) -> None:
        path = work / name
        with package.open(found) as reader, path.open("wb") as writer:
            shutil.copyfileobj(reader, writer, CHUNK)
        members.append(Member(name=f"lib/{name}", path=path))

    for candidate in (core, "libonnxruntime.so"):  # a wheel holds the full name, a jar the bare one
        if f"{libraries}{candidate}" in names:
            library(f"{libraries}{candidate}", core)
            members += _links(release, core)
            break
    for name in (PROVIDER, BRIDGE, TENSORRT):
        if f"{libraries}{name}" in names:
            library(f"{libraries}{name}", name)
    for name in _TEXTS:
        if f"{texts}{name}" in names:
            members.append(Member(name=name, data=package.read(f"{texts}{name}")))
    if not any(member.name == "LICENSE" for member in members):
        text = resources.files("ortimg.data").joinpath("onnxruntime-LICENSE.txt").read_bytes()
        members.append(Member(name="LICENSE", data=text))
    commit = (
        package.read("GIT_COMMIT_ID").decode().strip() if "GIT_COMMIT_ID" in names else release.git_commit
    )
    if commit:
        members.append(Member(name="GIT_COMMIT_ID", data=f"{commit}\n".encode()))
    members.append(Member(name="VERSION_NUMBER", data=f"{release.version}\n".encode()))
    return members


def _links(release: OrtRelease, core: str) -> list[Member]:
    if release.soname == core:
        return [Member(name="lib/libonnxruntime.so", link=core)]
    return [
        Member(name="lib/libonnxruntime.so", link=release.soname),
        Member(name=f"lib/{release.soname}", link=core),
    ]


class _Tee:
    """A writer that hashes what passes."""

    def __init__(self, below: BinaryIO) -> None:
        self.below = below
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.below.write(data)

    def flush(self) -> None:
        self.below.flush()


def tar_sha256(path: Path) -> str:
    """SHA-256 of the tar stream inside a .tgz."""
    with gzip.open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
