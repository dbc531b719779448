"""What one ONNX Runtime with one CUDA set is to one host: findings, each with its reason.

The base does not matter here: driver and GPU meet the libraries, not the distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from ortimg.core.abi import host_too_old, stack_warning
from ortimg.core.cudnn import without_cudnn
from ortimg.core.drivers import Driver, Drivers, Runs
from ortimg.core.gpu import Capability, Match, architecture, match
from ortimg.core.gpu_names import Gpu
from ortimg.core.model import Confidence, CudaSet, GpuArchitectures, OrtRelease
from ortimg.core.toolkits import older_set
from ortimg.core.versions import number


class Verdict(StrEnum):
    """What becomes of a cell on a host, best first."""

    NATIVE = "native"  # machine code for the GPU in every library
    JIT = "jit"  # the driver compiles kernels at the first start
    UNKNOWN = "unknown"
    REFUSED = "refused"


RANK = {verdict: number for number, verdict in enumerate(Verdict)}


class Finding(NamedTuple):
    """One thing about a cell on a host. A note says nothing against it: its verdict is `native`."""

    verdict: Verdict
    text: str


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a machine; None and empty: not told."""

    driver: Driver = Driver(None)
    gpus: tuple[Gpu, ...] = ()
    glibc: str | None = None
    unpacked: bool = False  # the libraries are to be unpacked on the host itself: its glibc counts
    arm64: bool = False


def findings(release: OrtRelease, cuda_set: CudaSet, host: Host, drivers: Drivers) -> tuple[Finding, ...]:
    """Everything that speaks against the pair on this host, and what is worth knowing."""
    if arm := [*_processor(host)]:
        return tuple(arm)
    found = [*_driver(cuda_set, host, drivers)]
    if text := without_cudnn(cuda_set):
        found.append(Finding(Verdict.NATIVE, text))
    if text := older_set(release, cuda_set):
        found.append(Finding(Verdict.UNKNOWN, text))
    for gpu in host.gpus:
        found += _gpu(release, cuda_set, gpu, host.driver, drivers)
    found += [*_no_gpu(release, host), *_libc(release, cuda_set, host)]
    return tuple(dict.fromkeys(found))


def _processor(host: Host) -> Iterator[Finding]:
    none = "there is no ONNX Runtime GPU archive for Linux on arm64 (aarch64)"
    if host.arm64:
        yield Finding(Verdict.REFUSED, f"this machine has an Arm processor, and {none}")
        return
    for gpu in host.gpus:
        if gpu.arm64:
            yield Finding(Verdict.REFUSED, f"{gpu} comes with an Arm processor only, and {none}")


def _driver(cuda_set: CudaSet, host: Host, drivers: Drivers) -> Iterator[Finding]:
    cuda, driver = cuda_set.cuda, host.driver
    lowest, own = drivers.lowest(cuda), drivers.own(cuda)
    if not driver.told:
        need = f"{lowest} or newer" if lowest else "not known"
        yield Finding(Verdict.NATIVE, f"the driver is not told; CUDA {cuda} needs driver {need}")
        return
    runs = drivers.runs(driver, cuda)
    if runs is Runs.UNKNOWN:
        yield Finding(Verdict.UNKNOWN, f"which driver CUDA {cuda} needs is not known")
    elif runs is Runs.NOT:
        yield Finding(
            Verdict.REFUSED, f"CUDA {cuda} needs driver {lowest} or newer, the host has {_has(driver)}"
        )
    elif runs is Runs.BY_MINOR_VERSION:
        older = f"older than its own ({own})" if driver.version else "of an older minor version"
        major = cuda.partition(".")[0]
        yield Finding(
            Verdict.NATIVE,
            f"runs by minor-version compatibility: {driver} is {older}, "
            f"and CUDA {major} runs from {lowest} on",
        )


def _has(driver: Driver) -> str:
    return driver.version or f"one for CUDA {driver.cuda}"


def _gpu(
    release: OrtRelease, cuda_set: CudaSet, gpu: Gpu, driver: Driver, drivers: Drivers
) -> Iterator[Finding]:
    capability = gpu.capability
    if driver.told and (need := drivers.too_old_for(driver, capability)):
        yield Finding(Verdict.REFUSED, f"{gpu} needs driver {need} or newer, the host has {_has(driver)}")
    if (branch := drivers.too_new_for(driver, capability)) is not None:
        row = drivers.architecture(capability)
        kind = row.name if row else f"compute capability {capability}"
        reason = f"{driver} no longer knows {gpu}: the last branch for {kind} is {branch}"
        yield Finding(Verdict.REFUSED, reason)
    yield from _ort_code(release, capability, driver, drivers)
    yield from _set_code(cuda_set, capability, driver, drivers)


def _ort_code(
    release: OrtRelease, capability: Capability, driver: Driver, drivers: Drivers
) -> Iterator[Finding]:
    # no version: the row names it, and rows with one reason are told together
    name, code = "ONNX Runtime", release.gpu
    if code.confidence is Confidence.UNKNOWN:
        yield Finding(Verdict.UNKNOWN, f"which GPUs the archive of {name} has code for is not known")
        return
    found = match(code, capability)
    wheel = match(release.wheel.gpu, capability) if release.wheel and release.wheel.gpu else found
    if code.confidence is Confidence.INFERRED:
        words = {Match.NATIVE: "there", Match.JIT: "compiled by the driver", Match.NONE: "missing"}
        yield Finding(
            Verdict.UNKNOWN,
            f"the GPU code of {name} was inferred, not read; for compute capability {capability} "
            f"it is probably {words[found]}",
        )
    elif found is not wheel and Match.NONE in (found, wheel):
        lacking = "archive" if found is Match.NONE else "wheel"
        yield Finding(
            Verdict.UNKNOWN,
            f"the {lacking} of {name} has no code for compute capability {capability}, and its other source "
            "has; which one an image is made of depends on what can be reached",
        )
    elif found is Match.NONE:
        reason = f"{name} has no code for compute capability {capability}: {told(code)}"
        yield Finding(Verdict.REFUSED, reason)
    elif found is Match.JIT:
        yield from _jit([name], code, release.cuda_build, capability, driver, drivers)


def _set_code(
    cuda_set: CudaSet, capability: Capability, driver: Driver, drivers: Drivers
) -> Iterator[Finding]:
    name = f"the CUDA {cuda_set.cuda} set"
    if not cuda_set.gpu:
        yield Finding(Verdict.UNKNOWN, f"which GPUs {name} has code for was not measured")
        return
    if missing := [code for code in cuda_set.gpu if match(code, capability) is Match.NONE]:
        names = _few([code.library for code in missing])
        yield Finding(
            Verdict.REFUSED,
            f"{names} of {name} has no code for compute capability {capability}: {told(missing[0])}",
        )
    compiled = [code for code in cuda_set.gpu if match(code, capability) is Match.JIT]
    if not compiled:
        return
    if cuda_set.jit_fails:
        yield Finding(
            Verdict.REFUSED,
            f"{name} has no machine code for compute capability {capability}, and {cuda_set.jit_fails}",
        )
        return
    names = _few([code.library for code in compiled])
    yield Finding(
        Verdict.UNKNOWN,
        f"{name} has no machine code for compute capability {capability} in {names}; "
        "whether these work when the driver compiles them was never tried",
    )
    newest = max(compiled, key=lambda code: number(code.ptx_isa or "0"))
    for found in _jit([newest.library], newest, cuda_set.cuda, capability, driver, drivers):
        if found.verdict is Verdict.REFUSED:
            yield found


def _jit(
    names: list[str],
    code: GpuArchitectures,
    made_with: str | None,
    capability: Capability,
    driver: Driver,
    drivers: Drivers,
) -> Iterator[Finding]:
    """Code that the driver must compile: slow at the first start, and outside minor-version compatibility."""
    lacks = f"{_few(names)} has no machine code for compute capability {capability}"
    cuda = drivers.ptx_cuda(code, made_with)
    own = drivers.own(cuda) if cuda else None
    need = f"driver {own} or newer" if own else "a driver that is new enough"
    if cuda and driver.told and drivers.compiles(driver, cuda) is False:
        yield Finding(
            Verdict.REFUSED,
            f"{lacks}, and to compile its PTX of CUDA {cuda} takes {need}, which minor-version compatibility "
            f"does not replace; the host has {_has(driver)}",
        )
        return
    untold = "" if driver.told else f"; this takes {need}"
    yield Finding(
        Verdict.JIT,
        f"{lacks}: the driver compiles its kernels at the first start, which takes long; keep the compute "
        f"cache (CUDA_CACHE_PATH){untold}",
    )


def _few(names: Sequence[str]) -> str:
    """The first three, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def told(code: GpuArchitectures) -> str:
    """`there is machine code for 6.0, 7.0, portable code for 9.0`, for people."""
    sass, ptx = (", ".join(_dotted(name) for name in part) or "none" for part in (code.sass, code.ptx))
    return f"there is machine code for {sass}, portable code for {ptx}"


def _dotted(name: str) -> str:
    made = architecture(name)
    return f"{made.capability}{made.suffix}"


def _no_gpu(release: OrtRelease, host: Host) -> Iterator[Finding]:
    if host.gpus:
        return
    code = release.gpu
    known = "" if code.confidence is Confidence.UNKNOWN else f"; of ONNX Runtime, {told(code)}"
    yield Finding(Verdict.UNKNOWN, f"the GPU is not told{known}")


def _libc(release: OrtRelease, cuda_set: CudaSet, host: Host) -> Iterator[Finding]:
    if host.glibc is None:
        return
    if reason := host_too_old(release, cuda_set, host.glibc):
        if host.unpacked:
            yield Finding(Verdict.REFUSED, reason)
        else:
            yield Finding(Verdict.NATIVE, f"only in a container: unpacked on the host itself, {reason}")
    if host.unpacked and (warning := stack_warning(release, host.glibc, "the host")):
        yield Finding(Verdict.NATIVE, warning)
