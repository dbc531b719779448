"""What the tests of the doctor's pure checks share: systems written down in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hosts import DRIVERS

from ortimg.core.doctor.facts import Elf, Folder, LibraryFile, Machine, Place, Snapshot
from ortimg.core.doctor.findings import Found
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.names import Check
from ortimg.verify.report import FindingVerdict

CUDA = "/usr/local/cuda-12.2/lib64"
ORT = "/opt/onnxruntime/1.22.0/lib"
PROVIDER = f"{ORT}/libonnxruntime_providers_cuda.so"
NO_GPU = Machine()

__all__ = ["CUDA", "DRIVERS", "NO_GPU", "ORT", "PROVIDER", "library", "loader", "one", "said", "system"]


def library(path: str, *needed: str, real: str | None = None, **facts: object) -> LibraryFile:
    """A library whose SONAME is its file's name."""
    name = path.rpartition("/")[2]
    elf = Elf(soname=str(facts.pop("soname", name)), needed=needed, **facts)  # type: ignore[arg-type]
    return LibraryFile(path, real or path, 1000, elf)


def system(
    *libraries: LibraryFile,
    path: str | None = None,
    cached: Iterable[str] = (),
    place: Place = Place.CONTAINER,
    environment: Mapping[str, str] | None = None,
    missing: Iterable[str] = (),
    **facts: object,
) -> Snapshot:
    """`path` is LD_LIBRARY_PATH; `cached` are folders whose libraries stand in ld.so.cache, in this order."""
    variables = dict(environment or {})
    folders: tuple[Folder, ...] = ()
    if path is not None:
        variables["LD_LIBRARY_PATH"] = path
        folders = tuple(
            Folder(
                part,
                there=part not in missing,
                real=part,
                shared=sum(one.folder == part for one in libraries),
            )
            for part in path.split(":")
        )
    cache = tuple((one.name, one.path) for folder in cached for one in libraries if one.folder == folder)
    return Snapshot(
        place=place,
        environment=variables,
        libraries=libraries,
        library_path=folders,
        cache=cache,
        **facts,  # type: ignore[arg-type]
    )


def loader(snapshot: Snapshot) -> Loader:
    return Loader(snapshot)


def said(found: Iterable[Found], check: Check) -> list[str]:
    """Verdict and evidence of each finding of this check that is not fine."""
    return [
        f"{one.verdict.value}: {one.evidence}"
        for one in found
        if one.check is check and one.verdict is not FindingVerdict.OK
    ]


def one(found: Iterable[Found], check: Check) -> Found:
    """The only finding of this check."""
    (only,) = [finding for finding in found if finding.check is check]
    return only
