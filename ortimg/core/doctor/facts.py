"""What is known about a system when it is looked at, frozen. The folder `ortimg/doctor` gathers it.

Paths are those inside the target: the root of an image or of an unpacked folder is `/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ortimg.core.drivers import Driver

# The libraries that matter: CUDA's, cuDNN's, the driver's, ONNX Runtime's.
FAMILY = re.compile(
    r"lib(?:cudart|cublas|cublasLt|cufft|curand|cudnn|nvrtc|nvJitLink|cusparse|cusolver|cuda|nvidia-ml|onnxruntime)"
    r"(?:[-_][A-Za-z0-9_.-]+?)?\.so(?:\.[0-9.]+)?"
)
_CUDA_FOLDER = re.compile(r"/cuda-([0-9]+\.[0-9]+)(?=/|$)")


class Place(StrEnum):
    """What kind of system it is."""

    HOST = "host"
    CONTAINER = "container"  # the doctor runs inside it
    IMAGE = "image"
    ROOT = "root"  # an unpacked root file system

    @property
    def runs(self) -> bool:
        """Whether the driver should be there: images and roots get it when they start."""
        return self in (Place.HOST, Place.CONTAINER)


@dataclass(frozen=True)
class Elf:
    """What a library or program asks of the loader."""

    soname: str | None = None
    needed: tuple[str, ...] = ()
    run_path: str | None = None  # RPATH or RUNPATH as it stands in the file
    wants: tuple[str, ...] = ()  # symbol versions asked of anything but the C and C++ libraries
    defines: tuple[str, ...] = ()  # symbol versions it defines: "VERS_1.16.2"
    executable_stack: bool = False


@dataclass(frozen=True)
class LibraryFile:
    """A library of `FAMILY` on the disk, under one of its names."""

    path: str
    real: str  # the file after all links
    size: int  # bytes
    elf: Elf | None = None  # None: it is no ELF file

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Folder:
    """An element of LD_LIBRARY_PATH."""

    path: str  # as it stands there; may be empty or relative
    there: bool = True
    real: str = ""  # after all links
    shared: int = 0  # number of files with ".so" in their name


@dataclass(frozen=True)
class GpuSeen:
    """A GPU that nvidia-smi lists."""

    name: str
    uuid: str = ""
    memory: int = 0  # bytes; 0: not known
    parts: tuple[str, ...] = ()  # UUIDs of its MIG devices


@dataclass(frozen=True)
class Machine:
    """Driver and GPUs of this machine, whatever the target is."""

    driver: Driver = field(default_factory=lambda: Driver(None))
    gpus: tuple[GpuSeen, ...] | None = None  # None: not known, nvidia-smi does not answer
    smi: str = "nvidia-smi is not installed"  # "": it answers; else why it does not
    module: str | None = None  # version of the kernel module, from /proc/driver/nvidia/version
    toolkit: bool | None = None  # NVIDIA's container toolkit is installed; None: not looked for

    @property
    def answers(self) -> bool:
        return not self.smi


@dataclass(frozen=True)
class Snapshot:
    """One system."""

    place: Place
    environment: Mapping[str, str] | None = None  # None: it has none of its own (an unpacked root)
    libraries: tuple[LibraryFile, ...] = ()
    library_path: tuple[Folder, ...] = ()  # LD_LIBRARY_PATH, in order
    conf: tuple[str, ...] = ()  # folders of /etc/ld.so.conf, in order
    cache: tuple[tuple[str, str], ...] | None = None  # name and path, in order; None: no ld.so.cache
    standard: tuple[str, ...] = ()  # the loader's own folders that are there
    glibc: str | None = None
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # site-packages → *.dist-info
    machine: Machine = field(default_factory=Machine)
    maps: tuple[str, ...] = ()  # files mapped into a process, from /proc/PID/maps
    process: str | None = None  # what that process is called: "process 4711"

    def variable(self, name: str) -> str | None:
        return None if self.environment is None else self.environment.get(name)

    def at(self, path: str) -> LibraryFile | None:
        return next((library for library in self.libraries if library.path == path), None)


def stem(name: str) -> str:
    """`libcudnn_ops.so.9.1.0` as `libcudnn_ops.so`."""
    return name.partition(".so")[0] + ".so"


def cuda_of_folder(path: str) -> str | None:
    """`12.2` for a path inside `/usr/local/cuda-12.2`."""
    match = _CUDA_FOLDER.search(path)
    return match[1] if match else None


def file_version(library: LibraryFile) -> str | None:
    """Version in the name of the real file (`libcudart.so.11.8.89`), else that of its CUDA folder.

    NVIDIA's wheels name files by their SONAME, which tells less: every CUDA 11 has `libcudart.so.11.0`.
    """
    number = library.real.rpartition(".so")[2].lstrip(".")
    if number.count(".") > 1:
        return number
    return cuda_of_folder(library.real) or (number if "." in number else None)
