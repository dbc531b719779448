"""LD_LIBRARY_PATH and LD_PRELOAD: elements that do harm or nothing, and which CUDA comes first."""

from __future__ import annotations

from collections.abc import Iterator

from ortimg.core.doctor.facts import Folder, LibraryFile, Snapshot, cuda_of_folder, file_version, stem
from ortimg.core.doctor.findings import Found, fail, warn
from ortimg.core.doctor.loader import Hit, Loader
from ortimg.core.doctor.names import Check
from ortimg.core.versions import number


def check_paths(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    """What the two variables of the loader do."""
    value = snapshot.variable("LD_LIBRARY_PATH")
    for folder in snapshot.library_path:
        if not folder.path:
            yield warn(
                Check.PATH_EMPTY,
                f'LD_LIBRARY_PATH="{value}" has an empty element: the loader searches the current directory',
            )
        elif not folder.path.startswith("/"):
            yield warn(
                Check.PATH_EMPTY,
                f"LD_LIBRARY_PATH names {folder.path}, which depends on the current directory",
                "write the whole path",
            )
        elif not folder.there:
            yield warn(Check.PATH_MISSING, f"LD_LIBRARY_PATH names {folder.path}, which is missing")
        elif not folder.shared:
            yield warn(Check.PATH_USELESS, f"LD_LIBRARY_PATH names {folder.path}: no .so inside")
    if preload := snapshot.variable("LD_PRELOAD"):
        yield warn(Check.PATH_PRELOAD, f"LD_PRELOAD is set: {preload}")
    yield from _order(snapshot)
    yield from _stale(snapshot, loader)


def _order(snapshot: Snapshot) -> Iterator[Found]:
    """Folders of several CUDA versions on the path, in their order."""
    versions: dict[str, Folder] = {}
    for folder in snapshot.library_path:
        version = cuda_of_folder(folder.path) or cuda_of_folder(folder.real) or _by_cudart(snapshot, folder)
        if version and version not in versions:
            versions[version] = folder
    if len(versions) < 2:
        return
    listed = ", then ".join(f"CUDA {version} ({folder.path})" for version, folder in versions.items())
    order = [*versions]
    cure = None
    if number(order[0]) < max(number(version) for version in order):
        cure = f"put {versions[max(order, key=number)].path} first, or better unset LD_LIBRARY_PATH"
    yield warn(Check.PATH_ORDER, f"LD_LIBRARY_PATH has several CUDAs, the first wins: {listed}", cure)


def _by_cudart(snapshot: Snapshot, folder: Folder) -> str | None:
    """The CUDA of a folder whose name does not tell it, by the libcudart in it: `12`, `11.0`."""
    names = sorted(
        library.name.partition(".so.")[2]
        for library in snapshot.libraries
        if library.folder == folder.path.rstrip("/") and stem(library.name) == "libcudart.so"
    )
    versions = [name for name in names if name]
    return min(versions, key=len) if versions else None


def _stale(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    """A libcudart from LD_LIBRARY_PATH that hides another version of itself."""
    names = {
        library.name
        for library in snapshot.libraries
        if stem(library.name) == "libcudart.so" and library.name != "libcudart.so"
    }
    for name in sorted(names):
        hits = loader.all(name)
        if not hits or hits[0].by != "LD_LIBRARY_PATH" or not _is_soname(hits[0].library):
            continue
        for other in hits[1:]:
            if file_version(hits[0].library) != file_version(other.library):
                yield _shadow(hits[0], other)
                break


def _is_soname(library: LibraryFile) -> bool:
    return library.elf is None or library.elf.soname in (None, library.name)


def _shadow(first: Hit, other: Hit) -> Found:
    mine, its = file_version(first.library), file_version(other.library)

    def words(hit: Hit, version: str | None) -> str:
        return f"{hit.library.path}{f' ({version})' if version else ''}"

    evidence = (
        f"LD_LIBRARY_PATH makes the loader take {words(first, mine)} before {words(other, its)}; a wrong "
        "libcudart is "
        'seen as "CUDA driver version is insufficient for CUDA runtime version" (error 35), whatever the '
        "driver"
    )
    older = mine is not None and its is not None and number(mine) < number(its)
    cure = f"take {first.library.folder} out of LD_LIBRARY_PATH"
    return (fail if older else warn)(Check.CUDART_STALE, evidence, cure, first.library.path)
