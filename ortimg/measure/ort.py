"""One archive of ONNX Runtime, read: what a catalogue row says about it, as the files say it."""

from __future__ import annotations

import posixpath
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from ortimg.core.abi import PYTHON_MODULE
from ortimg.core.model import GpuArchitectures, OrtRelease
from ortimg.core.versions import number
from ortimg.measure.elf import Library, opened_by_name, read_library
from ortimg.measure.fatbin import read_gpu_code

PROVIDER = "libonnxruntime_providers_cuda.so"
BRIDGE = "libonnxruntime_providers_shared.so"
_FROM_CUDA = ("libcuda", "libcublas", "libcudnn", "libcurand", "libcufft", "libnvrtc", "libnvJitLink")
_INNER = ("ai/onnxruntime/native/linux-x64/", "onnxruntime/capi/")  # of a jar, of a wheel
_CHUNK = 1 << 20  # bytes


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. TensorRT's provider is left aside: no image holds it."""

    version: str | None  # VERSION_NUMBER
    git_commit: str | None
    top_folder: str | None  # None: a jar or wheel has none
    soname: str | None
    links: tuple[str, ...]  # `libonnxruntime.so -> libonnxruntime.so.1`, in lib/
    cmake: bool
    pkg_config: bool
    headers: bool
    needed: tuple[str, ...]  # CUDA part of NEEDED of the CUDA provider
    opened: tuple[str, ...]  # CUDA libraries whose names stand in it as text
    system: tuple[str, ...]  # NEEDED of all libraries, besides CUDA
    glibc: str | None
    glibcxx: str | None
    run_paths: dict[str, str]
    executable_stack: tuple[str, ...]  # libraries that ask for one
    defines: tuple[str, ...]  # symbol versions of libonnxruntime.so
    gpu: GpuArchitectures


class NotAnArchiveError(Exception):
    """The file holds no ONNX Runtime for GPUs."""


class _Member(msgspec.Struct, frozen=True):
    name: str  # below the top folder; a jar's and wheel's libraries count as lib/
    link: str | None = None
    data: IO[bytes] | None = None


def measure(archive: Path, work: Path) -> Measured:
    """Read a release archive, a Maven jar or a wheel; `work` takes one library at a time (up to 800 MB).

    Raises `NotAnArchiveError`.
    """
    tops: set[str] = set()
    links: list[str] = []
    texts: dict[str, str] = {}
    names: set[str] = set()
    libraries: dict[str, Library] = {}
    opened: tuple[str, ...] = ()
    gpu = GpuArchitectures()
    for member in _members(archive, tops):
        names.add(member.name)
        folder, base = posixpath.split(member.name)
        if member.link is not None and folder == "lib":
            links.append(f"{base} -> {member.link}")
        if member.data is None:
            continue
        if member.name in ("VERSION_NUMBER", "GIT_COMMIT_ID"):
            texts[member.name] = member.data.read(200).decode(errors="replace").strip()
        elif folder == "lib" and (base in (PROVIDER, BRIDGE) or base.startswith("libonnxruntime.so")):
            path = work / base
            with path.open("wb") as target:
                shutil.copyfileobj(member.data, target, _CHUNK)
            libraries[base] = read_library(path)
            if base == PROVIDER:
                opened = tuple(name for name in opened_by_name(path) if name != "libcuda.so.1")
                gpu = read_gpu_code(path)
            path.unlink()
    core = next(
        (library for name, library in libraries.items() if name.startswith("libonnxruntime.so")), None
    )
    if core is None or PROVIDER not in libraries:
        raise NotAnArchiveError(f"{archive.name}: libonnxruntime.so and {PROVIDER} are not both in it")
    wanted = [name for library in libraries.values() for name in library.needed]
    return Measured(
        version=texts.get("VERSION_NUMBER"),
        git_commit=texts.get("GIT_COMMIT_ID"),
        top_folder=next(iter(tops)) if len(tops) == 1 else None,
        soname=core.soname,
        links=tuple(sorted(links)),
        cmake=any(name.startswith("lib/cmake/") for name in names),
        pkg_config=any(name.startswith("lib/pkgconfig/") for name in names),
        headers="include/onnxruntime_c_api.h" in names,
        needed=tuple(name for name in libraries[PROVIDER].needed if name.startswith(_FROM_CUDA)),
        opened=opened,
        system=tuple(sorted({name for name in wanted if not name.startswith(_FROM_CUDA)})),
        glibc=_newest(library.glibc for library in libraries.values()),
        glibcxx=_newest(library.glibcxx for library in libraries.values()),
        run_paths={name: library.run_path for name, library in libraries.items() if library.run_path},
        executable_stack=tuple(name for name, library in libraries.items() if library.executable_stack),
        defines=core.defines,
        gpu=gpu,
    )


def _newest(versions: Iterator[str | None]) -> str | None:
    return max((version for version in versions if version), key=number, default=None)


def _members(archive: Path, tops: set[str]) -> Iterator[_Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as package:
            for name in package.namelist():
                prefix = next((prefix for prefix in _INNER if name.startswith(prefix)), None)
                with package.open(name) as data:
                    yield _Member(f"lib/{name.removeprefix(prefix)}" if prefix else name, None, data)
        return
    with tarfile.open(archive, "r|*") as package:
        for info in package:
            parts = [part for part in PurePosixPath(info.name).parts if part != "."]
            if not parts:
                continue
            tops.add(parts[0])
            link = info.linkname if info.issym() else None
            yield _Member("/".join(parts[1:]), link, package.extractfile(info) if info.isreg() else None)


def _of_c(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not name.startswith(PYTHON_MODULE))


def differences(row: OrtRelease, found: Measured) -> tuple[str, ...]:
    """Where the files say something else than the row. What a fallback lacks is no difference."""
    said: list[tuple[str, object, object]] = [
        ("soname", row.soname, found.soname),
        ("needed", tuple(sorted(row.needed)), tuple(sorted(found.needed))),
        ("glibc", row.glibc, found.glibc),
        ("glibcxx", row.glibcxx, found.glibcxx),
        ("executable_stack", _of_c(row.executable_stack), found.executable_stack),
        ("gpu.sass", row.gpu.sass, found.gpu.sass),
        ("gpu.ptx", row.gpu.ptx, found.gpu.ptx),
        ("gpu.ptx_isa", row.gpu.ptx_isa, found.gpu.ptx_isa),
    ]
    for name, row_says, file_says in (
        ("version", row.version, found.version),
        ("git_commit", row.git_commit, found.git_commit),
        ("top_folder", row.top_folder, found.top_folder),
    ):
        if row_says is not None and file_says is not None:
            said.append((name, row_says, file_says))
    return tuple(f"{name}: the row says {a}, the file {b}" for name, a, b in said if a != b)
