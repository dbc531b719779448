"""This machine: its GPUs and driver, libcuda, glibc. The only part of `ortimg fit` that looks around."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess

from ortimg.core.drivers import Driver, is_driver
from ortimg.core.fit_rules import Host
from ortimg.core.gpu import read_capability
from ortimg.core.gpu_names import Gpu, GpuNames
from ortimg.errors import ConfigError, EnvironmentFault

SECONDS = 20  # nvidia-smi takes seconds where the driver is not loaded yet
_ARM = ("aarch64", "arm64")


def read_host(names: GpuNames) -> Host:
    """This machine. Raises EnvironmentFault where it has no NVIDIA driver, with what was found instead."""
    arm64 = platform.machine().lower() in _ARM
    cuda, why_no_cuda = _libcuda()
    rows, why_no_smi = _nvidia_smi()
    if not rows and cuda is None:
        raise EnvironmentFault(
            f"no NVIDIA driver answers on this machine: {why_no_smi}; {why_no_cuda}",
            "On a machine without a GPU, ask about another one: ortimg fit --driver 535.104.05 --gpu T4.",
        )
    gpus = tuple(_gpu(names, name, capability, arm64) for name, _, capability in rows)
    version = next((driver for _, driver, _ in rows if is_driver(driver)), None)
    return Host(driver=Driver(version, cuda), gpus=tuple(dict.fromkeys(gpus)), glibc=_glibc(), arm64=arm64)


def _gpu(names: GpuNames, name: str, capability: str, arm64: bool) -> Gpu:
    try:
        return names.named(name, read_capability(capability), arm64)
    except ConfigError as error:
        raise EnvironmentFault(
            f"the compute capability of {name} is not known, its driver does not tell it: {error.message}",
            "Give it by hand: ortimg fit --driver VERSION --gpu CAPABILITY.",
        ) from None


def _nvidia_smi() -> tuple[list[tuple[str, str, str]], str]:
    """Name, driver, compute capability of each GPU ("" where the driver is too old to tell); or why not."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], "nvidia-smi is not installed"
    fields = "name,driver_version"
    try:
        first = _query(program, fields)
        if first.returncode != 0:
            said = (first.stdout + first.stderr).strip().splitlines()
            return [], f"nvidia-smi fails: {said[0] if said else f'exit {first.returncode}'}"
        second = _query(program, "compute_cap")  # drivers before 510 do not know this field
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi does not answer ({type(error).__name__})"
    rows = [line.rsplit(",", 1) for line in first.stdout.splitlines() if "," in line]
    told = second.stdout.split() if second.returncode == 0 else []
    capabilities = told if len(told) == len(rows) else [""] * len(rows)
    found = [
        (name.strip(), driver.strip(), capability)
        for (name, driver), capability in zip(rows, capabilities, strict=True)
    ]
    return found, "" if found else "nvidia-smi names no GPU"


def _query(program: str, fields: str) -> subprocess.CompletedProcess[str]:
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def _libcuda() -> tuple[str | None, str]:
    """The newest CUDA that the driver's own library says it runs ("12.2"), or why it cannot be asked."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, "libcuda.so.1 is not found"
    version = ctypes.c_int(0)
    if (status := library.cuDriverGetVersion(ctypes.byref(version))) != 0 or version.value <= 0:
        return None, f"libcuda.so.1 answers with error {status}"
    return f"{version.value // 1000}.{version.value % 1000 // 10}", ""


def _glibc() -> str | None:
    """`2.36`; None: no glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return None
    return version if name == "glibc" and version else None
