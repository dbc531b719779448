"""Collects, file by file, what a comparison needs of a root file system; folders and images feed it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import msgspec

from ortimg.comparing.libraries import (
    BrokenFileError,
    Core,
    CudaProvider,
    may_link,
    read_core,
    read_cuda_library,
    read_program,
    read_provider,
)
from ortimg.core.compare_api import C_API, read_headers
from ortimg.core.compare_model import Headers, Program
from ortimg.core.model import GpuArchitectures
from ortimg.measure.ort import PROVIDER

_CORE = re.compile(r"libonnxruntime\.so(?:\.[0-9.]+)?")
_PYTHON_CORE = re.compile(r"onnxruntime_pybind11_state.*\.so")
_OURS = re.compile(r"libonnxruntime.*\.so.*|onnxruntime_pybind11_state.*\.so")
CUDA_LIBRARY = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cudnn|curand|cufft|nvrtc|nvJitLink)(?:[-_.].*)?\.so(?:\..*)?"
)
_WITH_GPU_CODE = re.compile(r"lib(?:cublas|cublasLt|cudnn|curand|cufft)(?:_.*)?\.so(?:\..*)?")
_NOT_MEASURED = re.compile(r"lib(?:cufftw|cudnn_(?:cnn|adv)_train)\.so.*")  # no image of ours holds them
_PACKAGE = re.compile(r".+\.(?:dist|egg)-info")
_HEADER = re.compile(r".*\.h")
MANIFEST = "usr/share/ortimg/manifest.json"
_SMALL = 4 << 20  # bytes; headers and manifests are smaller
_SKIPPED = ("proc/", "sys/", "dev/")  # a running system's own, not files


class Found(msgspec.Struct, kw_only=True):
    """What was seen. Keys and paths are relative to the root, without a leading slash."""

    cores: dict[str, Core] = {}
    providers: dict[str, CudaProvider] = {}
    python_cores: list[str] = []
    cuda_code: dict[str, GpuArchitectures] = {}
    cuda_names: set[str] = set()  # CUDA libraries, by file name
    packages: set[str] = set()
    programs: list[Program] = []
    headers: dict[str, bytes] = {}  # of the folders that may be ONNX Runtime's
    versions: dict[str, str] = {}  # VERSION_NUMBER
    links: dict[str, str] = {}  # libonnxruntime*.so* and /opt/onnxruntime/current
    broken: dict[str, str] = {}
    manifest: bytes | None = None
    size: int = 0  # bytes of all files

    def header_folder(self) -> str | None:
        """The folder with the C API's header; the shortest where there are several."""
        names = [path for path in self.headers if PurePosixPath(path).name == C_API]
        return str(PurePosixPath(min(names, key=len)).parent) if names else None

    def c_api(self) -> Headers | None:
        folder = self.header_folder()
        if folder is None:
            return None
        return read_headers(self.headers[f"{folder}/{C_API}"].decode(errors="replace"))


class Gatherer:
    """Feed it every file of a root, in any order; `found` then holds what it saw."""

    def __init__(self) -> None:
        self.found = Found()

    def folder(self, path: str) -> None:
        """A folder at `path`."""
        name = path.rpartition("/")[2]
        if _PACKAGE.fullmatch(name):
            self.found.packages.add(name)

    def link(self, path: str, target: str) -> None:
        """A symbolic link at `path`."""
        name = path.rpartition("/")[2]
        if _CORE.fullmatch(name) or path == "opt/onnxruntime/current":
            self.found.links[path] = target
        if CUDA_LIBRARY.fullmatch(name):
            self.found.cuda_names.add(name)

    def wants(self, path: str, size: int, head: bytes) -> bool:
        """Whether `file` needs the contents of the file at `path`, whose first bytes are `head`."""
        name = path.rpartition("/")[2]
        if _small(path, name):
            return size <= _SMALL
        if path.startswith(_SKIPPED):
            return False
        if CUDA_LIBRARY.fullmatch(name):
            return _measured(name)
        return bool(_OURS.fullmatch(name)) or head[:4] == b"\x7fELF"

    def file(self, path: str, size: int, contents: Callable[[], Path] | None) -> None:
        """A file at `path`. `contents` gives a file with the same contents; None where it was not wanted."""
        found = self.found
        found.size += size
        name = path.rpartition("/")[2]
        if CUDA_LIBRARY.fullmatch(name):
            found.cuda_names.add(name)
        if _PACKAGE.fullmatch(name):  # distutils writes a file instead of a folder
            found.packages.add(name)
        if contents is None:
            return
        try:
            self._read(path, name, contents)
        except BrokenFileError as error:
            found.broken[path] = str(error)

    def _read(self, path: str, name: str, contents: Callable[[], Path]) -> None:
        found = self.found
        if path == MANIFEST:
            found.manifest = contents().read_bytes()
        elif name == "VERSION_NUMBER":
            found.versions[path] = contents().read_text(errors="replace").strip()[:40]
        elif _HEADER.fullmatch(name):
            found.headers[path] = contents().read_bytes()
        elif name == PROVIDER:
            found.providers[path] = read_provider(contents())
        elif _CORE.fullmatch(name):
            found.cores[path] = read_core(contents())
        elif _PYTHON_CORE.fullmatch(name):
            found.python_cores.append(path)
        elif CUDA_LIBRARY.fullmatch(name):
            if (code := read_cuda_library(contents())) is not None:
                found.cuda_code[path] = code
        elif not _OURS.fullmatch(name) and may_link(file := contents()):
            try:
                program = read_program(file, f"/{path}")
            except BrokenFileError:
                return  # not ONNX Runtime's own: nothing that a comparison could say about it
            if program.linked:
                found.programs.append(program)


def _small(path: str, name: str) -> bool:
    if path == MANIFEST or name == "VERSION_NUMBER":
        return True
    return bool(_HEADER.fullmatch(name)) and (
        "onnxruntime" in path or name == C_API or path.startswith("include/")
    )


def _measured(name: str) -> bool:
    return bool(_WITH_GPU_CODE.fullmatch(name)) and not _NOT_MEASURED.fullmatch(name)
