"""This machine's driver and GPUs, by nvidia-smi and /proc. No library of the driver is loaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ortimg.core.doctor.facts import GpuSeen, Machine, Place
from ortimg.core.drivers import Driver, is_driver

_SECONDS = 20  # nvidia-smi takes seconds where the driver is not loaded yet
_MIB = 1 << 20
_MODULE = re.compile(r"Kernel Module[^\n]*?\s([0-9]{3,4}(?:\.[0-9]+){1,2})\s")
_MIG = re.compile(r"\bMIG\b[^\n]*\(UUID: (MIG-[^)]+)\)")
_GPU = re.compile(r"^GPU \d+: [^\n]*\(UUID: (GPU-[^)]+)\)")


def read_machine(driver: str | None = None) -> Machine:
    """`driver`: a version that the user named, which counts instead of this machine's."""
    module = _module()
    gpus, version, why = _nvidia_smi()
    told = driver or version or module
    return Machine(
        driver=Driver(told if told and is_driver(told) else None),
        gpus=None if why else gpus,
        smi=why,
        module=module,
        toolkit=shutil.which("nvidia-ctk") is not None or shutil.which("nvidia-container-cli") is not None,
    )


def place_of_this_process() -> Place:
    """Whether this is a container."""
    marks = (Path("/.dockerenv"), Path("/run/.containerenv"))
    named = os.environ.get("container")  # noqa: SIM112  # podman and systemd write it so
    if any(mark.exists() for mark in marks) or named in ("podman", "docker", "oci"):
        return Place.CONTAINER
    try:
        groups = Path("/proc/1/cgroup").read_text(errors="replace")
    except OSError:
        return Place.HOST
    inside = any(word in groups for word in ("/docker/", "/kubepods", "/containerd/", "/lxc/"))
    return Place.CONTAINER if inside else Place.HOST


def _module() -> str | None:
    try:
        match = _MODULE.search(Path("/proc/driver/nvidia/version").read_text(errors="replace"))
    except OSError:
        return None
    return match[1] if match else None


def _nvidia_smi() -> tuple[tuple[GpuSeen, ...], str | None, str]:
    """GPUs, driver version, and why there are none ("" where nvidia-smi answers)."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), None, "nvidia-smi is not installed"
    fields = "--query-gpu=name,uuid,memory.total,driver_version"
    try:
        listed = _ask(program, fields, "--format=csv,noheader,nounits")
        if listed.returncode != 0:
            said = (listed.stdout + listed.stderr).strip().splitlines()
            return (), None, f"nvidia-smi fails: {said[0] if said else f'exit {listed.returncode}'}"
        parts = _parts(_ask(program, "-L").stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), None, f"nvidia-smi does not answer ({type(error).__name__})"
    return (*read_gpus(listed.stdout, parts), "")


def read_gpus(table: str, parts: dict[str, tuple[str, ...]]) -> tuple[tuple[GpuSeen, ...], str | None]:
    """Rows of name, UUID, MiB, driver; `parts` are the MIG devices of each GPU's UUID."""
    gpus, version = [], None
    for line in table.splitlines():
        row = [field.strip() for field in line.rsplit(",", 3)]
        if len(row) != 4:
            continue
        name, uuid, memory, version = row
        size = int(memory) * _MIB if memory.isdecimal() else 0
        gpus.append(GpuSeen(name, uuid, size, parts.get(uuid, ())))
    return tuple(gpus), version


def _parts(listing: str) -> dict[str, tuple[str, ...]]:
    """MIG devices by the UUID of their GPU, from `nvidia-smi -L`."""
    found: dict[str, tuple[str, ...]] = {}
    gpu = ""
    for line in listing.splitlines():
        if match := _GPU.search(line.strip()):
            gpu = match[1]
        elif match := _MIG.search(line):
            found[gpu] = (*found.get(gpu, ()), match[1])
    return found


def _ask(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *words], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
    )
