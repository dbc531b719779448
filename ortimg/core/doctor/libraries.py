"""Libraries of CUDA and cuDNN that somebody asks for and that the loader does not find, and why."""

from __future__ import annotations

from collections.abc import Iterator

from ortimg.core.doctor.facts import FAMILY, LibraryFile, Snapshot, stem
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.names import Check

PROVIDER = "libonnxruntime_providers_cuda.so"
_DRIVER = {"libcuda.so.1", "libnvidia-ml.so.1"}  # the host's: other checks tell of them


def provider_of(snapshot: Snapshot, loader: Loader) -> LibraryFile | None:
    """The CUDA provider that ONNX Runtime would open: beside the core that the loader takes, else any."""
    providers = [library for library in snapshot.libraries if library.name == PROVIDER]
    for name in sorted({one.name for one in snapshot.libraries if stem(one.name) == "libonnxruntime.so"}):
        if hit := loader.first(name):
            folders = (hit.library.folder, hit.library.real.rpartition("/")[0])
            beside = [one for one in providers if one.folder in folders]
            if beside:
                return beside[0]
    return providers[0] if providers else None


def check_libraries(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    """Wanted against present, for everything that is asked for."""
    told: set[str] = set()
    provider = provider_of(snapshot, loader)
    if provider is not None and provider.elf is not None:
        for name in provider.elf.needed:
            if not _ours(name) or name in told:
                continue
            told.add(name)
            if loader.first(name, provider) is None:
                yield _explain(snapshot, loader, name, provider)
    yield from _unwanted_cudnn(snapshot, loader, told)
    yield from _inner(snapshot, loader, told)
    yield from _empty(snapshot)
    if provider is not None and told:
        missing = [name for name in told if loader.first(name, provider) is None]
        if not missing:
            yield ok(Check.LIBRARY_MISSING, f"{provider.path} finds {', '.join(sorted(told))}")


def _ours(name: str) -> bool:
    return FAMILY.fullmatch(name) is not None and name not in _DRIVER and "onnxruntime" not in name


def _explain(snapshot: Snapshot, loader: Loader, name: str, asker: LibraryFile) -> Found:
    """Elsewhere on the disk, there with another number, or nowhere."""
    preload = snapshot.variable("LD_PRELOAD") or ""
    note = (
        f"; LD_PRELOAD has {name}, which helps only programs started with it"
        if any(word.endswith(f"/{name}") for word in preload.replace(":", " ").split())
        else ""
    )
    who = asker.path
    if there := loader.elsewhere(name):
        return _off_path(name, there[0], f"{who} wants it{note}")
    others = sorted(
        {one.path for one in snapshot.libraries if stem(one.name) == stem(name) and one.name != stem(name)},
        key=lambda path: (len(path), path),
    )
    if others:
        present = next(one for one in snapshot.libraries if one.path == others[0])
        soname = present.elf.soname if present.elf and present.elf.soname else present.name
        return fail(
            Check.LIBRARY_SONAME,
            f"{who} wants {name}; present is {present.path} with SONAME {soname}{note}",
            None,
            name,
        )
    return fail(Check.LIBRARY_MISSING, f"{who} wants {name}, which is nowhere{note}", None, name)


def _off_path(name: str, there: LibraryFile, why: str) -> Found:
    check = Check.CUDNN_OFF_PATH if name.startswith("libcudnn") else Check.LIBRARY_OFF_PATH
    return fail(
        check,
        f"{name} is present in {there.folder}, but not on the loader's search path; {why}",
        _path_cure(there.folder),
        name,
        there.folder,
    )


def _path_cure(folder: str) -> str:
    cure = f"write {folder} into a file of /etc/ld.so.conf.d and run ldconfig"
    if "-packages/nvidia/" in folder:
        cure += "; in Python call onnxruntime.preload_dlls() first (ONNX Runtime 1.21 and newer)"
    return cure


def _unwanted_cudnn(snapshot: Snapshot, loader: Loader, told: set[str]) -> Iterator[Found]:
    """cuDNN off the path where no provider says that it is wanted: since 1.28 it is opened late."""
    names = sorted(
        {
            one.name
            for one in snapshot.libraries
            if stem(one.name) == "libcudnn.so" and one.name != stem(one.name)
        }
    )
    sonames = [name for name in names if name.partition(".so.")[2].isdigit()]
    for name in sonames:
        there = loader.elsewhere(name)
        if name in told or not there or loader.first(name) is not None:
            continue
        yield warn(
            Check.CUDNN_OFF_PATH,
            f"{name} is present in {there[0].folder}, but not on the loader's search path",
            _path_cure(there[0].folder),
            name,
        )


def _inner(snapshot: Snapshot, loader: Loader, told: set[str]) -> Iterator[Found]:
    """What the CUDA libraries on the path need: a cuDNN of another CUDA wants another cuBLAS."""
    for library in _on_path(snapshot, loader):
        for name in library.elf.needed if library.elf else ():
            if not _ours(name) or name in told or loader.first(name, library) is not None:
                continue
            others = sorted(
                {hit for hit in _names(snapshot, loader) if stem(hit) == stem(name) and hit != stem(name)}
            )
            if library.name.startswith("libcudnn") and others:
                told.add(name)
                yield fail(
                    Check.CUDNN_CUBLAS,
                    f"{library.path} needs {name}, the loader has {', '.join(others)}: a cuDNN made for "
                    "another CUDA",
                    None,
                    name,
                )
            elif not loader.elsewhere(name):
                told.add(name)
                yield fail(
                    Check.LIBRARY_MISSING, f"{library.path} needs {name}, which is nowhere", None, name
                )


def _on_path(snapshot: Snapshot, loader: Loader) -> list[LibraryFile]:
    """The files of CUDA and cuDNN that the loader takes under their own names."""
    found: dict[str, LibraryFile] = {}
    for name in _names(snapshot, loader):
        hit = loader.first(name)
        if hit is not None and _ours(name):
            found.setdefault(hit.library.real, hit.library)
    return [*found.values()]


def _names(snapshot: Snapshot, loader: Loader) -> list[str]:
    return [name for name in sorted({one.name for one in snapshot.libraries}) if loader.first(name)]


def _empty(snapshot: Snapshot) -> Iterator[Found]:
    empty = sorted({library.path for library in snapshot.libraries if library.size == 0})
    if empty:
        yield fail(Check.LIBRARY_EMPTY, f"empty library files: {', '.join(empty[:5])}", None, *empty[:5])
