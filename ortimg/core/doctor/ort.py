"""ONNX Runtime's own files: one of them, clean run paths, no executable stack; and the Python packages."""

from __future__ import annotations

from collections.abc import Iterator

from ortimg.core.doctor.facts import LibraryFile, Snapshot, stem
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.names import Check
from ortimg.core.python_packages import GPU_PACKAGE, clash
from ortimg.core.versions import at_least

_REFUSES = "2.41"  # glibc that refuses to dlopen a library with an executable stack
_CORE = "libonnxruntime.so"


def check_ort(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    """What the checks of ONNX Runtime's files say."""
    yield from _two(snapshot, loader)
    yield from _files(snapshot)
    yield from _packages(snapshot)


def cores(snapshot: Snapshot, loader: Loader) -> list[LibraryFile]:
    """Every ONNX Runtime on the loader's path, first one first."""
    order = [folder.path.rstrip("/") for folder in snapshot.library_path if folder.path]
    order += [path.rpartition("/")[0] for _, path in snapshot.cache or ()]
    order += snapshot.standard
    rank = {folder: place for place, folder in reversed([*enumerate(order)])}
    names = {one.name for one in snapshot.libraries if stem(one.name) == _CORE}
    hits = [hit.library for name in names for hit in loader.all(name)]
    hits.sort(key=lambda library: (rank.get(library.folder, len(order)), len(library.name)))
    return [*{library.real: library for library in reversed(hits)}.values()][::-1]


def version_of(library: LibraryFile) -> str | None:
    """`1.20.1`, from the version of its symbols (`VERS_1.20.1`), else from its name or folder."""
    for name in library.elf.defines if library.elf else ():
        if name.startswith("VERS_"):
            return name.removeprefix("VERS_")
    number = library.real.rpartition(".so")[2].lstrip(".")
    if number.count(".") == 2:
        return number
    parts = [
        part for part in library.real.split("/") if part.count(".") == 2 and part.replace(".", "").isdigit()
    ]
    return parts[-1] if parts else None


def _two(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    found = cores(snapshot, loader)
    if len(found) > 1:
        listed = ", then ".join(f"{one.path} ({version_of(one) or 'version not known'})" for one in found)
        yield fail(Check.ORT_TWO, f"{len(found)} ONNX Runtimes on the loader's path, in its order: {listed}")
    elif found:
        yield ok(Check.ORT_TWO, f"{found[0].path} is the only one on the loader's path")


def _files(snapshot: Snapshot) -> Iterator[Found]:
    seen: set[str] = set()
    for library in snapshot.libraries:
        if library.real in seen or "onnxruntime" not in library.name or library.elf is None:
            continue
        seen.add(library.real)
        if library.elf.run_path is not None and searches_here(library.elf.run_path):
            yield fail(
                Check.ORT_RUN_PATH,
                f'{library.path} searches the current directory: its run path is "{library.elf.run_path}"',
                None,
                library.name,
                library.elf.run_path,
            )
        if library.elf.executable_stack:
            glibc = snapshot.glibc
            refused = glibc is not None and at_least(glibc, _REFUSES)
            words = f"{library.path} asks for an executable stack"
            if refused:
                yield fail(Check.ORT_STACK, f"{words}; glibc {glibc} refuses to load it")
            else:
                have = f", this is {glibc}" if glibc else ""
                yield warn(Check.ORT_STACK, f"{words}; glibc {_REFUSES} and newer refuse to load it{have}")


def searches_here(run_path: str) -> bool:
    """Whether an element is empty or relative: both start from the current directory."""
    return any(not part.startswith(("/", "$")) for part in run_path.split(":"))


def _packages(snapshot: Snapshot) -> Iterator[Found]:
    for site, folders in snapshot.packages.items():
        if told := clash(folders):
            evidence, _, cure = told.partition(": ")
            yield fail(Check.PYTHON_PACKAGES, f"{site}: {evidence}", cure)
            continue
        names = {folder.partition("-")[0].replace("_", "-").lower() for folder in folders}
        if "onnxruntime" in names and GPU_PACKAGE not in names:
            yield warn(
                Check.PYTHON_PACKAGES,
                f"{site} has onnxruntime, the CPU package, and not {GPU_PACKAGE}",
                f"pip uninstall onnxruntime, then install {GPU_PACKAGE} alone",
            )
        elif GPU_PACKAGE in names:
            yield ok(Check.PYTHON_PACKAGES, f"{site} has {GPU_PACKAGE} alone")
