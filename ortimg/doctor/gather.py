"""Makes a snapshot of a file system and an environment: libraries, loader files, Python packages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from ortimg.core.doctor.facts import FAMILY, Elf, Folder, LibraryFile, Machine, Place, Snapshot
from ortimg.doctor.files import Files
from ortimg.doctor.ld_cache import conf_folders, read_cache

STANDARD = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
# Where people put such libraries, besides the loader's path.
_LIKELY = (
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/lib",
    "/usr/local/cuda*/compat",
    "/usr/local/cuda*/lib*/stubs",
    "/usr/local/cuda*/targets/x86_64-linux/lib",
    "/usr/local/cuda*/targets/x86_64-linux/lib/stubs",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/nvidia/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/*",
    "/run/nvidia/driver/usr/lib*",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/opt/onnxruntime*/lib",
    "/opt/onnxruntime*/*/lib",
    "/opt/*/lib",
    "/opt/*/lib64",
)
_SITES = (
    "/usr/lib/python3*/*-packages",
    "/usr/local/lib/python3*/*-packages",
    "/opt/*/lib/python3*/site-packages",
    "/opt/*/*/lib/python3*/site-packages",
    "/*venv*/lib/python3*/site-packages",
    "/app/*venv*/lib/python3*/site-packages",
    "/root/*venv*/lib/python3*/site-packages",
    "/home/*/*venv*/lib/python3*/site-packages",
)
_IN_SITE = ("nvidia/*/lib", "onnxruntime/capi", "tensorrt_libs", "torch/lib")
_GLIBC = re.compile(rb"GNU C Library[^\n]*?(?:version |GLIBC )([0-9]+\.[0-9]+)")


def gather(
    files: Files,
    environment: Mapping[str, str] | None,
    place: Place,
    machine: Machine,
    *,
    glibc: str | None = None,
    sites: Iterable[str] = (),
    everywhere: Iterable[str] = (),
) -> Snapshot:
    """`sites`: further site-packages; `everywhere`: paths of all libraries where those are known."""
    variable = (environment or {}).get("LD_LIBRARY_PATH")
    path = tuple(_folder(files, part) for part in re.split("[:;]", variable)) if variable else ()
    conf = conf_folders(files)
    real = files.real("/etc/ld.so.cache")
    raw = files.read(real) if real else None
    cache = read_cache(raw) if raw else None
    found_sites = [site for pattern in (*_SITES, *sites) for site in files.glob(pattern)]
    folders = [folder.path.rstrip("/") for folder in path if folder.path.startswith("/") and folder.there]
    folders += [*conf, *STANDARD]
    folders += [folder for pattern in _LIKELY for folder in files.glob(pattern)]
    folders += [
        folder for site in found_sites for inner in _IN_SITE for folder in files.glob(f"{site}/{inner}")
    ]
    paths = [
        f"{folder}/{name}"
        for folder in dict.fromkeys(folders)
        for name in files.entries(folder) or ()
        if FAMILY.fullmatch(name)
    ]
    paths += [path for _, path in cache or () if FAMILY.fullmatch(posixpath.basename(path))]
    paths += everywhere
    return Snapshot(
        place=place,
        environment=environment,
        libraries=_libraries(files, dict.fromkeys(paths)),
        library_path=path,
        conf=conf,
        cache=cache,
        standard=tuple(folder for folder in STANDARD if files.entries(folder) is not None),
        glibc=glibc or _glibc(files),
        packages=_packages(files, found_sites),
        machine=machine,
    )


def _folder(files: Files, path: str) -> Folder:
    if not path.startswith("/"):
        return Folder(path)
    names = files.entries(path)
    if names is None:
        return Folder(path, there=False)
    return Folder(path, real=files.real(path) or path, shared=sum(".so" in name for name in names))


def _libraries(files: Files, paths: Iterable[str]) -> tuple[LibraryFile, ...]:
    facts: dict[str, tuple[int, Elf | None]] = {}
    libraries = []
    for path in paths:
        real = files.real(path)
        size = files.size(real) if real else None
        if real is None or size is None:
            continue  # a link to nothing, a folder
        if real not in facts:
            facts[real] = (size, files.elf(real) if size else None)
        libraries.append(LibraryFile(path, real, *facts[real]))
    return tuple(libraries)


def _packages(files: Files, sites: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found = {}
    for site in dict.fromkeys(sites):
        names = tuple(
            name
            for name in files.entries(site) or ()
            if name.lower().startswith(("onnxruntime", "ort_nightly", "ort-nightly"))
            and name.endswith((".dist-info", ".egg-info"))
        )
        if names:
            found[site] = names
    return found


def _glibc(files: Files) -> str | None:
    """`2.36`, from the banner inside libc.so.6."""
    for folder in STANDARD:
        real = files.real(f"{folder}/libc.so.6")
        raw = files.read(real) if real else None
        if raw and (match := _GLIBC.search(raw)):
            return match[1].decode()
    return None
