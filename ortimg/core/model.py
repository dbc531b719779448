"""The words of the project as frozen data: catalogue rows and cells.

In a catalogue row `None` means unknown; nothing is invented.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ortimg.core.cudnn import NO_CUDNN, is_cudnn


class Flavour(StrEnum):
    """What an image is for. `runtime` is not written in an identifier."""

    RUNTIME = "runtime"
    DEVEL = "devel"  # with headers, CMake package, pkg-config file and a compiler
    # The wheel instead of the archive, on the distribution's own Python of this version.
    PYTHON3_8 = "python3.8"
    PYTHON3_9 = "python3.9"
    PYTHON3_10 = "python3.10"
    PYTHON3_11 = "python3.11"
    PYTHON3_12 = "python3.12"
    PYTHON3_13 = "python3.13"
    PYTHON3_14 = "python3.14"

    @property
    def python(self) -> str | None:
        """Version of the Python that the image has, "3.11"; None for a flavour without one."""
        return self.value.removeprefix("python") if self.value.startswith("python") else None


class Origin(StrEnum):
    """Where an input came from. Everything but `upstream` and the CUDA wheels is a fallback."""

    UPSTREAM = "upstream"  # release archive, Docker Hub image
    MAVEN = "maven"
    WHEEL = "wheel"
    BOOTSTRAP = "bootstrap"
    DEBIAN = "debian"  # headers of Debian's package


class Tier(StrEnum):
    """How far an image was verified: static < load < run."""

    STATIC = "static"
    LOAD = "load"
    RUN = "run"


class Confidence(StrEnum):
    """How sure a fact is."""

    MEASURED = "A"  # measured, or two independent sources and more
    ONE_SOURCE = "B"
    INFERRED = "C"
    UNKNOWN = "U"


class GpuArchitectures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compute capabilities with machine code (`sass`) and with portable code (`ptx`), as "80", "90a"."""

    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    ptx_isa: str | None = None  # newest version of the PTX language in it, "7.8": the driver must know it
    confidence: Confidence = Confidence.UNKNOWN


class LibraryGpu(GpuArchitectures, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPU code of one library of a CUDA set."""

    library: str  # SONAME


class MavenSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Maven jar that holds the same native libraries."""

    coordinates: str  # group:artifact:version
    sha256: str | None = None  # of the jar


class WheelSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A PyPI wheel that holds the same native libraries."""

    requirement: str  # name==version
    filename: str
    sha256: str
    gpu: GpuArchitectures | None = None  # GPU code of the wheel's own CUDA provider, a build of its own


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the files of an archive lie. `{version}` stands for the version."""

    name: str  # "A"
    links: tuple[str, ...]  # in lib/, as `libonnxruntime.so -> libonnxruntime.so.{version}`
    build_files: tuple[str, ...] = ()  # CMake package and pkg-config file
    wrong_paths: tuple[str, ...] = ()  # folders that those name and that are not there
    top_folder: str  # as a rule; the row's own field counts
    confidence: Confidence = Confidence.UNKNOWN


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something about a release that hurts."""

    what: str
    issue: str | None = None  # where it was reported: `microsoft/onnxruntime#22703`

    def __str__(self) -> str:
        return f"{self.what} ({self.issue})" if self.issue else self.what


class DebianHeaders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Debian package with the headers of the same version; its libraries have no CUDA."""

    package: str
    suite: str  # where Debian has it: "trixie", or "sid", where it is replaced by the next version one day


class OrtRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release archive of ONNX Runtime GPU for Linux x64: one version for one CUDA major."""

    version: str
    cuda_major: int
    cudnn_major: int
    cuda_build: str | None = None  # toolkit it was built with, "11.8"
    cuda_confidence: Confidence = Confidence.UNKNOWN
    asset: str
    asset_confidence: Confidence = Confidence.MEASURED  # that an archive of this name exists
    url: str
    sha256: str | None = None  # of the archive; None: no public source
    sha256_sources: int = 0  # independent sources of that hash
    size: int | None = None  # bytes of the archive
    top_folder: str | None = None
    top_folder_confidence: Confidence = Confidence.MEASURED  # where a folder is named
    layout: str | None = None  # name of a `Layout`
    soname: str  # of libonnxruntime.so
    needed: tuple[str, ...] = ()  # CUDA part of NEEDED of the CUDA provider
    dlopened: tuple[str, ...] = ()  # CUDA libraries it opens only when it uses them
    needed_confidence: Confidence = Confidence.UNKNOWN
    glibc: str  # lowest glibc
    glibcxx: str  # lowest GLIBCXX of libstdc++
    abi_confidence: Confidence = Confidence.ONE_SOURCE  # of soname, glibc, glibcxx, executable_stack
    executable_stack: tuple[str, ...] = ()  # libraries that ask for one: glibc 2.41 and later refuse these
    gpu: GpuArchitectures = GpuArchitectures()
    git_commit: str | None = None
    maven: MavenSource | None = None  # only where the jar is of this CUDA major
    wheel: WheelSource | None = None  # only where the wheel is of this CUDA major and holds the C library
    headers: DebianHeaders | None = None  # where else its headers are: the fallbacks hold none
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name of this archive in file names, locks and messages: `1.16.2-cuda11`."""
        return f"{self.version}-cuda{self.cuda_major}"

    @property
    def loads_cudnn_late(self) -> bool:
        """Whether its CUDA provider comes up without cuDNN, which it opens only when it uses it."""
        linked, later = (any(map(is_cudnn, names)) for names in (self.needed, self.dlopened))
        return later and not linked


class Wheel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of PyPI, pinned."""

    requirement: str  # name==version
    filename: str
    sha256: str
    size: int  # bytes


class CudaWheel(Wheel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of NVIDIA's wheels and the libraries that are taken from it."""

    libraries: tuple[str, ...]  # SONAMEs, regular files in the wheel
    dropped: tuple[str, ...] = ()  # libraries left behind on purpose, the reason stands in the data file


class CudaSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The CUDA and cuDNN libraries of one CUDA version and one cuDNN major."""

    cuda: str  # "11.8"
    cudnn: str  # major, "8"; NO_CUDNN in a set made by `without_cudnn`
    cudnn_version: str  # "8.9.6.50", NO_CUDNN
    glibc: str | None = None  # lowest glibc of its libraries
    glibcxx: str | None = None  # lowest GLIBCXX of libstdc++
    gpu: tuple[LibraryGpu, ...] = ()  # GPU code of the libraries that hold any, measured
    jit_fails: str | None = None  # what happened when the driver compiled its libraries; None: not tried
    wheels: tuple[CudaWheel, ...]

    @property
    def key(self) -> str:
        """Name of this set: `11.8-cudnn8`."""
        return f"{self.cuda}-cudnn{self.cudnn}"

    @property
    def major(self) -> int:
        return int(self.cuda.partition(".")[0])

    @property
    def cudnn_major(self) -> int:
        """8, 9; 0 in a set without cuDNN."""
        return 0 if self.cudnn == NO_CUDNN else int(self.cudnn)

    def without_cudnn(self) -> CudaSet:
        """The same libraries but for cuDNN's."""
        wheels = [
            msgspec.structs.replace(wheel, libraries=kept)
            for wheel in self.wheels
            if (kept := tuple(name for name in wheel.libraries if not is_cudnn(name)))
        ]
        return msgspec.structs.replace(
            self,
            cudnn=NO_CUDNN,
            cudnn_version=NO_CUDNN,
            gpu=tuple(row for row in self.gpu if not is_cudnn(row.library)),
            wheels=tuple(wheels),
        )

    @property
    def folder(self) -> str:
        """Where the libraries lie in an image."""
        return f"/usr/local/cuda-{self.cuda}/lib64"

    @property
    def libraries(self) -> tuple[str, ...]:
        return tuple(name for wheel in self.wheels for name in wheel.libraries)


class PythonWheel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wheel of ONNX Runtime GPU for one Python."""

    python: str  # "3.11"
    filename: str
    sha256: str
    size: int  # bytes


class PythonRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wheels of one version of ONNX Runtime GPU; they are all for one CUDA major."""

    version: str
    cuda_major: int
    files: tuple[PythonWheel, ...]


class PythonSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ONNX Runtime's wheel imports, for one Python and one NumPy major."""

    python: str
    numpy: int
    files: tuple[Wheel, ...]


class Installer(StrEnum):
    """What a distribution installs packages with, as templates/stages/base.j2 knows it."""

    APT = "apt"
    MICRODNF = "microdnf"


class BasePackages(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a distribution calls the packages that flavours need."""

    installer: Installer
    devel: tuple[str, ...]
    python: tuple[str, ...]


class BasePython(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A distribution's own Python, /usr/bin/python3."""

    version: str  # "3.11"
    site: str  # folder of its packages, which it searches for .pth files; no link leads there


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A distribution that cells stand on."""

    name: str
    image: str  # Docker Hub reference
    title: str  # for people: "Debian 12 (bookworm)"
    glibc: str | None  # None: musl, not a glibc distribution
    glibcxx: str | None
    confidence: Confidence = Confidence.UNKNOWN
    suite: str | None = None  # Debian suite it can be bootstrapped from
    user: str | None = (
        None  # USER of its image; None: root. An image takes the files of its base, not its settings
    )
    packages: BasePackages | None = None  # for flavours that need more than the bare distribution
    python: BasePython | None = None

    def key_for(self, flavour: Flavour) -> str:
        """Name of this base with what `flavour` needs: `debian12`, `debian12-devel`."""
        return self.name if flavour is Flavour.RUNTIME else f"{self.name}-{flavour.value}"

    def packages_for(self, flavour: Flavour) -> tuple[str, ...]:
        """Names of the packages that `flavour` needs here; none for the bare distribution."""
        if self.packages is None or flavour is Flavour.RUNTIME:
            return ()
        return self.packages.devel if flavour is Flavour.DEVEL else self.packages.python


class NoAsset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version that has no Linux GPU archive."""

    version: str
    reason: str


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts that do not change with a user's wishes."""

    releases: tuple[OrtRelease, ...]
    layouts: tuple[Layout, ...] = ()
    no_assets: tuple[NoAsset, ...]
    cuda_sets: tuple[CudaSet, ...]
    bases: tuple[Base, ...]
    python_releases: tuple[PythonRelease, ...] = ()
    python_sets: tuple[PythonSet, ...] = ()


def dlopened(release: OrtRelease, cuda_set: CudaSet) -> tuple[str, ...]:
    """CUDA libraries that the release opens when it uses them; without cuDNN's where the set has none."""
    if cuda_set.cudnn != NO_CUDNN:
        return release.dlopened
    return tuple(name for name in release.dlopened if not is_cudnn(name))


def identifier_of(ort: str, cuda: str, cudnn: str, base: str, flavour: str) -> str:
    """`1.16.2-cuda11.8-cudnn8-debian12`; the flavour `runtime` is not written."""
    identifier = f"{ort}-cuda{cuda}-cudnn{cudnn}-{base}"
    return identifier if flavour == Flavour.RUNTIME else f"{identifier}-{flavour}"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One resolved combination: one image."""

    release: OrtRelease
    cuda_set: CudaSet
    base: Base
    flavour: Flavour = Flavour.RUNTIME
    wheels: tuple[Wheel, ...] = ()  # of a Python flavour: ONNX Runtime's first, then what it imports
    tags: tuple[str, ...] = ()  # alias tags besides the identifier

    @property
    def ort_key(self) -> str:
        """Name of what ONNX Runtime is taken from: `1.16.2-cuda11`, `1.17.1-cuda11-python3.11`."""
        return f"{self.release.key}-{self.flavour.value}" if self.flavour.python else self.release.key

    @property
    def unit_key(self) -> str:
        """Name of the unit of ONNX Runtime: `1.16.2-cuda11.8-cudnn8`, `1.17.1-cuda11.8-cudnn8-python3.11`."""
        key = f"{self.release.version}-cuda{self.cuda_set.key}"
        return f"{key}-{self.flavour.value}" if self.flavour.python else key

    @property
    def base_key(self) -> str:
        """Name of what the cell stands on: `debian12`, `debian12-devel`."""
        return self.base.key_for(self.flavour)

    @property
    def identifier(self) -> str:
        """`1.16.2-cuda11.8-cudnn8-debian12`; also the image tag and the folder of its Dockerfile."""
        return identifier_of(
            self.release.version, self.cuda_set.cuda, self.cuda_set.cudnn, self.base.name, self.flavour
        )


class Exclusion(msgspec.Struct, frozen=True, kw_only=True):
    """A combination of the matrix that is not built, and why."""

    ort: str
    cuda: str
    cudnn: str
    base: str
    flavour: str
    reason: str
    nearest: str | None  # identifier of the nearest cell that works; None where the exclusion is a wish

    @property
    def identifier(self) -> str:
        """What the cell would be called."""
        return identifier_of(self.ort, self.cuda, self.cudnn, self.base, self.flavour)
