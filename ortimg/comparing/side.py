"""Turns what was found in files into one side of a comparison."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ortimg.comparing.gather import Found
from ortimg.comparing.libraries import Core, CudaProvider
from ortimg.core.compare_model import Side, Source
from ortimg.core.model import CudaSet
from ortimg.core.python_packages import GPU_PACKAGE
from ortimg.core.versions import is_version, number
from ortimg.errors import CheckFailed
from ortimg.measure.ort import PROVIDER

_FROM_CUDA = ("libcuda", "libcublas", "libcudnn", "libcurand", "libcufft", "libnvrtc", "libnvJitLink")
_FILE_VERSION = re.compile(r"libonnxruntime\.so\.([0-9]+\.[0-9]+\.[0-9]+)")
_CUDART = re.compile(r"libcudart\.so\.([0-9]+(?:\.[0-9]+)?)(?:\..*)?")
_CUBLAS = re.compile(r"libcublas\.so\.([0-9]+)(?:\..*)?")
_CUDNN = re.compile(r"libcudnn\.so\.([0-9]+(?:\.[0-9]+)*)")
_VERS = "VERS_"
_CURRENT = "opt/onnxruntime/current"


def side_of(found: Found, name: str, source: Source, sets: Sequence[CudaSet]) -> Side:
    """`sets`: of the catalogue, which knows whether a driver can compile their code. Raises CheckFailed."""
    folder = _choose(found, name)
    path, core = _core(found, folder)
    provider = found.providers.get(f"{folder}/{PROVIDER}".lstrip("/"))
    needed = _from_cuda(provider.library.needed) if provider else None
    cuda, cudnn = _versions(found, needed)
    code = tuple(found.cuda_code.values())
    fails = {row.cuda for row in sets if row.jit_fails}
    everything = [core.library] if core else []
    everything += [provider.library] if provider else []
    glibcs = [library.glibc for library in everything if library.glibc]
    return Side(
        name=name,
        source=source,
        brings_cuda=bool(found.cuda_names) or source is Source.IMAGE,
        ort=_version(found, folder, path, core),
        other_orts=_others(found, folder),
        cuda=cuda,
        cudnn=cudnn,
        soname=core.library.soname if core else None,
        symbols=next((text for text in core.library.defines if text.startswith(_VERS)), None)
        if core
        else None,
        # The wheel has one too since 1.19, which only the wheel itself loads.
        has_library=core is not None and not folder.endswith("onnxruntime/capi"),
        has_cuda=provider is not None,
        needed=needed,
        lazy=_lazy(found, provider) if provider else None,
        libraries=tuple(sorted(found.cuda_names)) if found.cuda_names or source is Source.IMAGE else None,
        gpu=provider.gpu if provider else None,
        set_gpu=code or None,
        set_jit=False if any(cuda and cuda.startswith(one) for one in fails) else None,
        exports=core.exports if core else None,
        headers=found.c_api(),
        size=found.size,
        size_of="all files",
        glibc=max(glibcs, key=number, default=None),
        packages=tuple(sorted(found.packages)),
        programs=tuple(found.programs),
        broken=tuple(f"/{path}: {why}" for path, why in sorted(found.broken.items())),
    )


def _from_cuda(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name.startswith(_FROM_CUDA))


def _lazy(found: Found, provider: CudaProvider) -> tuple[str, ...]:
    """CUDA libraries that the provider opens when it uses them: by the names in it, as the files are called.

    It holds names that it never opens (those of another CUDA major) and builds others while it runs; the
    manifest of our images has those.
    """
    by_stem: dict[str, set[str]] = {}
    for name in found.cuda_names:
        by_stem.setdefault(_stem(name), set()).add(name)
    names = {*_from_cuda(provider.opened), *_manifest(found).dlopened}
    seen: set[str] = set()
    for name in names:
        there = by_stem.get(_stem(name))
        if there is None or name in there:
            seen.add(name)
        elif name == _stem(name):  # without a version: any will do
            seen |= there
    return tuple(sorted(seen - {*provider.library.needed}))


def _stem(name: str) -> str:
    return name.partition(".so")[0] + ".so"


def _choose(found: Found, name: str) -> str:
    """The folder of the ONNX Runtime that counts: the current one, else one with CUDA, else any."""
    paths = [*found.cores, *found.providers, *found.python_cores]
    folders = list(dict.fromkeys(posixpath.dirname(path) for path in sorted(paths)))
    if not folders:
        broken = next(
            (f"/{path}: {why}" for path, why in found.broken.items() if "onnxruntime" in path), None
        )
        if broken:
            raise CheckFailed(
                f"{name}: its ONNX Runtime cannot be read: {broken}", "Build or unpack it again."
            )
        raise CheckFailed(
            f"{name} holds no ONNX Runtime: there is no libonnxruntime.so and no onnxruntime package in it",
            "Name an image or folder with one; `ortimg list` shows those of images.yaml.",
        )
    if current := found.links.get(_CURRENT):
        prefix = posixpath.normpath(posixpath.join("opt/onnxruntime", current.lstrip("/")))
        under = [folder for folder in folders if folder.startswith(f"{prefix}/")]
        if under:
            return under[0]
    with_cuda = [folder for folder in folders if f"{folder}/{PROVIDER}".lstrip("/") in found.providers]
    return (with_cuda or folders)[0]


def _core(found: Found, folder: str) -> tuple[str | None, Core | None]:
    for path, core in sorted(found.cores.items()):
        if posixpath.dirname(path) == folder:
            return path, core
    return None, None


def _others(found: Found, folder: str) -> tuple[str, ...]:
    folders = {posixpath.dirname(path) for path in (*found.cores, *found.python_cores)}
    return tuple(f"/{other}" for other in sorted(folders - {folder}))


def _version(found: Found, folder: str, path: str | None, core: Core | None) -> str | None:
    """By the symbols, else by the file's name, VERSION_NUMBER, or the Python package."""
    if core is not None:
        for text in core.library.defines:
            if text.startswith(_VERS) and is_version(text.removeprefix(_VERS)):
                return text.removeprefix(_VERS)
    if path is not None and (match := _FILE_VERSION.fullmatch(posixpath.basename(path))):
        return match[1]
    written = found.versions.get(f"{posixpath.dirname(folder)}/VERSION_NUMBER".lstrip("/"))
    if written and is_version(written):
        return written
    for package in sorted(found.packages):
        stem, _, version = package.rpartition(".")[0].rpartition("-")
        if stem.replace("_", "-").lower() in (GPU_PACKAGE, "onnxruntime") and is_version(version):
            return version
    return None


def _versions(found: Found, needed: tuple[str, ...] | None) -> tuple[str | None, str | None]:
    """CUDA and cuDNN: by file names and NEEDED; the manifest of our images says it to the last digit."""
    told = _manifest(found)
    names = sorted({*found.cuda_names, *(needed or ())}, key=len, reverse=True)

    def by_name(pattern: re.Pattern[str]) -> str | None:
        return next((match[1] for text in names if (match := pattern.fullmatch(text))), None)

    cuda = by_name(_CUDART) or by_name(_CUBLAS)
    if cuda is not None:
        cuda = cuda.removesuffix(".0")  # libcudart.so.11.0 is the SONAME for all of CUDA 11
    return _exact(told.cuda, cuda), _exact(told.cudnn, by_name(_CUDNN))


def _exact(told: str | None, seen: str | None) -> str | None:
    """What the manifest says, unless the files are of another major version."""
    if told is None or (seen is not None and told.partition(".")[0] != seen.partition(".")[0]):
        return seen
    return told


class _Manifest(msgspec.Struct, frozen=True):
    """What the manifest of an image of ours says; None and empty: it has none, or says nothing."""

    cuda: str | None = None
    cudnn: str | None = None
    dlopened: tuple[str, ...] = ()


def _manifest(found: Found) -> _Manifest:
    try:
        data: Any = msgspec.json.decode(found.manifest or b"{}")
        return _Manifest(
            cuda=(data.get("cuda") or {}).get("version"),
            cudnn=(data.get("cudnn") or {}).get("version"),
            dlopened=tuple((data.get("ort") or {}).get("dlopened") or ()),
        )
    except (msgspec.DecodeError, AttributeError, TypeError):
        return _Manifest()
