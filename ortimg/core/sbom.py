"""What an image is made of, for a software bill of materials (SBOM). Pure.

Scanners find packages by the databases of package managers; libraries that lie in a folder have none, so ORT,
CUDA and cuDNN are named here from what built the image: the plan, the lock, the image's own labels and files.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from ortimg.core.cudnn import NO_CUDNN
from ortimg.core.lock import Lock, OrtLock
from ortimg.core.model import Cell, CudaWheel, Origin, Wheel

ORT_LICENCES = "onnxruntime"  # folder below /usr/share/licenses
_CUDNN_WHEEL = "nvidia-cudnn"


class Licence(msgspec.Struct, frozen=True, kw_only=True):
    """A licence, as far as it is known."""

    name: str  # an SPDX identifier or expression where `spdx`
    spdx: bool = False
    path: str | None = None  # of its text in the image
    text: str | None = None


class LicenceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file below /usr/share/licenses."""

    path: str
    text: str


class LibraryFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the image."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the image."""

    name: str
    version: str | None = None
    purl: str | None = None  # https://github.com/package-url/purl-spec
    cpe: str | None = None  # CPE 2.3, https://nvd.nist.gov/products/cpe
    supplier: str | None = None
    download: str | None = None  # where it came from
    sha256: str | None = None  # of the archive, jar or wheel that it came in, as images.lock pins it
    origin: str | None = None  # "maven: com.microsoft.onnxruntime:onnxruntime_gpu:1.16.2"
    licences: tuple[Licence, ...] = ()
    files: tuple[LibraryFile, ...] = ()
    parts: tuple[Component, ...] = ()

    @property
    def ref(self) -> str:
        """Name within a document."""
        return self.purl or f"ortimg:{self.name}@{self.version or ''}"


class Bom(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document, whatever its format."""

    repository: str
    identifier: str
    digest: str  # of the image, "sha256:…"
    epoch: int  # date of the document, seconds since 1970
    components: tuple[Component, ...]
    notes: tuple[str, ...] = ()  # what was not looked at

    @property
    def image(self) -> Component:
        """The image itself."""
        name = self.repository.rpartition("/")[2]
        purl = (
            f"pkg:oci/{name}@{quote(self.digest, safe='')}?repository_url={quote(self.repository, safe='/')}"
        )
        return Component(name=self.repository, version=self.identifier, purl=f"{purl}&tag={self.identifier}")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was read from an image."""

    origins: Mapping[str, str]  # of the label `ortimg.origin`: {"ort": "maven", …}
    ort: tuple[LibraryFile, ...]  # libraries of ONNX Runtime
    cuda: tuple[LibraryFile, ...]  # of CUDA and cuDNN
    verifier: tuple[LibraryFile, ...]
    licences: tuple[LicenceFile, ...]


def parse_origins(label: str) -> dict[str, str]:
    """The label `ortimg.origin`, `ort=maven,cuda=wheel,base=bootstrap`."""
    return dict(part.split("=", 1) for part in label.split(",") if "=" in part)


def own_components(cell: Cell, lock: Lock, found: Found) -> tuple[Component, ...]:
    """ORT, CUDA, cuDNN, the verifier, and the Python packages of a Python flavour."""
    wheels = cell.cuda_set.wheels
    cuda = tuple(_cuda_wheel(wheel, found) for wheel in wheels if not _is_cudnn(wheel))
    version = cell.cuda_set.cuda
    rows = [
        _ort(cell, lock, found),
        Component(
            name="CUDA",
            version=version,
            supplier="NVIDIA",
            # The one product of these that NVD lists by a name that is certain.
            cpe=f"cpe:2.3:a:nvidia:cuda_toolkit:{version}:*:*:*:*:*:*:*",
            parts=cuda,
        ),
    ]
    cudnn = tuple(_cuda_wheel(wheel, found) for wheel in wheels if _is_cudnn(wheel))
    if cell.cuda_set.cudnn != NO_CUDNN and cudnn:
        rows.append(
            Component(name="cuDNN", version=cell.cuda_set.cudnn_version, supplier="NVIDIA", parts=cudnn)
        )
    rows += [_wheel(wheel) for wheel in cell.wheels[1:]]
    rows.append(
        Component(name="ort-verify", licences=(Licence(name="MIT", spdx=True),), files=found.verifier)
    )
    return tuple(rows)


def missing_libraries(cell: Cell, found: Found) -> tuple[str, ...]:
    """Libraries that the cell promises and the image does not have where they should be."""
    there = {file.name for file in found.cuda}
    return tuple(name for name in cell.cuda_set.libraries if name not in there)


def _ort(cell: Cell, lock: Lock, found: Found) -> Component:
    release = cell.release
    ort = Component(
        name="ONNX Runtime",
        version=release.version,
        supplier="Microsoft",
        licences=_licences(ORT_LICENCES, found),
        files=found.ort,
    )
    if cell.wheels:
        own = _wheel(cell.wheels[0])
        return msgspec.structs.replace(ort, purl=own.purl, sha256=own.sha256, origin=own.origin)
    row = lock.ort.get(release.key, OrtLock())
    origin = found.origins.get("ort")
    if origin == Origin.MAVEN and release.maven is not None:
        group, artifact, version = release.maven.coordinates.split(":")
        return msgspec.structs.replace(
            ort,
            purl=f"pkg:maven/{group}/{artifact}@{version}",
            sha256=row.maven.source if row.maven else None,
            origin=f"maven: {release.maven.coordinates}",
        )
    if origin == Origin.WHEEL and release.wheel is not None:
        return msgspec.structs.replace(
            ort,
            purl=_pypi(release.wheel.requirement),
            sha256=release.wheel.sha256,
            origin=f"wheel: {release.wheel.filename}",
        )
    return msgspec.structs.replace(
        ort,
        purl=f"pkg:github/microsoft/onnxruntime@v{release.version}",
        download=release.url,
        sha256=row.upstream,
        origin=f"upstream: {release.url}",
    )


def _cuda_wheel(wheel: CudaWheel, found: Found) -> Component:
    row = _wheel(wheel)
    files = tuple(file for file in found.cuda if file.name in wheel.libraries)
    return msgspec.structs.replace(row, supplier="NVIDIA", licences=_licences(row.name, found), files=files)


def _wheel(wheel: Wheel) -> Component:
    name, _, version = wheel.requirement.partition("==")
    return Component(
        name=name,
        version=version,
        purl=_pypi(wheel.requirement),
        sha256=wheel.sha256,
        origin=f"wheel: {wheel.filename}",
    )


def _pypi(requirement: str) -> str:
    name, _, version = requirement.partition("==")
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{quote(version)}"


def _is_cudnn(wheel: CudaWheel) -> bool:
    return wheel.requirement.startswith(_CUDNN_WHEEL)


def _licences(folder: str, found: Found) -> tuple[Licence, ...]:
    """The licence texts that the image has for a component; third-party notices are none of its own."""
    return tuple(
        Licence(name="MIT", spdx=True, path=file.path)
        if file.text.lstrip().startswith("MIT License")
        else Licence(name=f"{folder}-{_stem(file.path)}", path=file.path, text=file.text)
        for file in found.licences
        if f"/{folder}/" in file.path and "ThirdPartyNotices" not in file.path
    )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
