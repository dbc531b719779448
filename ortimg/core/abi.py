"""What libraries ask of the C library and of libstdc++ that they meet."""

from __future__ import annotations

from ortimg.core.model import Base, CudaSet, OrtRelease
from ortimg.core.versions import at_least

# glibc's dlopen refuses libraries that ask for an executable stack from 2.41 on
# (https://sourceware.org/pipermail/libc-announce/2025/000046.html).
NO_EXECUTABLE_STACK = "2.41"
PYTHON_MODULE = "onnxruntime_pybind11_state"  # the extension module of the wheel


def too_old(release: OrtRelease, cuda_set: CudaSet, base: Base) -> str | None:
    """Why the base is too old for the libraries, or None."""
    return _too_old(release, cuda_set, base.title, base.glibc, base.glibcxx)


def host_too_old(release: OrtRelease, cuda_set: CudaSet, glibc: str) -> str | None:
    """Why a host with this glibc cannot load the libraries unpacked on itself, or None.

    Its libstdc++ is not judged: that is not told.
    """
    return _too_old(release, cuda_set, "the host", glibc, None)


def _too_old(
    release: OrtRelease, cuda_set: CudaSet, where: str, glibc: str | None, glibcxx: str | None
) -> str | None:
    ort, cuda = f"ONNX Runtime {release.version}", f"the CUDA {cuda_set.cuda} set"
    for who, name, need, have in (
        (ort, "glibc", release.glibc, glibc),
        (ort, "GLIBCXX", release.glibcxx, glibcxx),
        (cuda, "glibc", cuda_set.glibc, glibc),
        (cuda, "GLIBCXX", cuda_set.glibcxx, glibcxx),
    ):
        if need is not None and have is not None and not at_least(have, need):
            return f"{who} needs {name} {need}, {where} has {have}"
    return None


def stack_warning(release: OrtRelease, glibc: str | None, where: str) -> str | None:
    """That a library may be refused for its executable stack, or None."""
    if not release.executable_stack or glibc is None or not at_least(glibc, NO_EXECUTABLE_STACK):
        return None
    python_only = all(name.startswith(PYTHON_MODULE) for name in release.executable_stack)
    rest = "; the C libraries ask for none" if python_only else ""
    return (
        f"{', '.join(release.executable_stack)} of ONNX Runtime {release.version} is reported to ask for an "
        f"executable stack, which glibc {NO_EXECUTABLE_STACK} and later refuse; {where} has {glibc}{rest}"
    )
