"""How a container gets a GPU: which one, by which words, and what the refusals mean. Pure.

Docker has three ways: `--gpus`, a CDI device, and the nvidia runtime. Podman has CDI.
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import yaml

from ortimg.core.problems import quote
from ortimg.errors import ConfigError

INSTALL = (
    "install the NVIDIA Container Toolkit and run `sudo nvidia-ctk runtime configure --runtime=docker`,"
    " or run `ortimg verify DIR --tier run` on a GPU machine without Docker"
)
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBER = re.compile(r"[0-9]{1,3}")
_NAME = re.compile(rf"GPU-{_UUID}|MIG-{_UUID}|MIG-GPU-{_UUID}/[0-9]+/[0-9]+")
_DEVICE_NAME = re.compile(r"\sName:\s+(\S+)")  # annotations stand further in
_ALL = "all"


class Device(msgspec.Struct, frozen=True):
    """Which GPU: all of them, one by its number in `nvidia-smi`, or one (a part of one, too) by its UUID."""

    name: str = _ALL  # "all", "0", "GPU-…", "MIG-…"

    @classmethod
    def parse(cls, text: str) -> Device:
        """Raises ConfigError for anything else."""
        if text == _ALL or _NUMBER.fullmatch(text) or _NAME.fullmatch(text):
            return cls(text)
        raise ConfigError(
            f"--gpu-device {quote(text)} is no GPU",
            hint="Write all, a number (0), or a UUID of `nvidia-smi -L` (GPU-… or MIG-…).",
        )

    @property
    def every(self) -> bool:
        return self.name == _ALL

    @property
    def cdi(self) -> str:
        """Its name as a CDI device."""
        return f"nvidia.com/gpu={self.name}"

    @property
    def variables(self) -> dict[str, str]:
        """What makes a program without a container see this device only; numbers as in `nvidia-smi`."""
        if self.every:
            return {}
        return {"CUDA_VISIBLE_DEVICES": self.name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


EVERY = Device()


class Way(StrEnum):
    """How Docker is asked for a GPU."""

    GPUS = "--gpus"
    CDI = "--device"
    RUNTIME = "--runtime"


def ways(info: Mapping[str, Any]) -> tuple[Way, ...]:
    """The ways that an engine may know, by `docker info`: `--gpus` needs nothing that it shows."""
    found = [Way.GPUS]
    devices = [str(row.get("ID", "")) for row in info.get("DiscoveredDevices") or ()]  # since Engine 28.2
    if any(name.startswith("nvidia.com/gpu=") for name in devices) or info.get("CDISpecDirs"):
        found.append(Way.CDI)
    if "nvidia" in (info.get("Runtimes") or {}):
        found.append(Way.RUNTIME)
    return tuple(found)


def docker_options(way: Way, device: Device) -> dict[str, Any]:
    """What docker-py's `containers.create` takes; it makes a DeviceRequest of each mapping."""
    if way is Way.GPUS:
        which: dict[str, Any] = {"count": -1} if device.every else {"device_ids": [device.name]}
        return {"device_requests": [which | {"capabilities": [["gpu"]]}]}
    if way is Way.CDI:
        return {"device_requests": [{"driver": "cdi", "device_ids": [device.cdi]}]}
    return {"runtime": "nvidia", "environment": {"NVIDIA_VISIBLE_DEVICES": device.name}}


def podman_words(device: Device) -> list[str]:
    """What `podman run` takes. SELinux would keep a labelled container from the device files.

    https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
    """
    return ["--device", device.cdi, "--security-opt", "label=disable"]


def podman_command(reference: str, device: Device) -> str:
    """One line that runs a cell's own verifier under Podman."""
    words = ["podman", "run", "--rm", *podman_words(device), reference, "ort-verify", "--tier", "run"]
    return " ".join(words)


class Fault(StrEnum):
    """Whose fault a refusal is."""

    MACHINE = "machine"
    IMAGE = "image"


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of gpu-faults.yaml: what an engine's message means."""

    texts: tuple[str, ...]  # all in the message
    fault: Fault
    cause: str
    cure: str
    seen: str
    other_way: bool = False  # the engine may know another way of asking
    reached: bool = False  # the driver was found before


def parse_refusals(text: bytes) -> tuple[Refusal, ...]:
    """The rows, in the order in which they are looked at."""
    rows = msgspec.convert(yaml.safe_load(text)["engine"], tuple[Refusal, ...])
    return tuple(msgspec.structs.replace(row, cure=INSTALL) if row.cure == "install" else row for row in rows)


def refusal_in(message: str, rows: Sequence[Refusal]) -> Refusal | None:
    """What an engine's message says of GPUs; None: it speaks of something else."""
    return next((row for row in rows if all(text in message for text in row.texts)), None)


def builder_devices(shown: str) -> tuple[str, ...]:
    """CDI devices that `docker buildx inspect` shows (since buildx 0.22), "nvidia.com/gpu=all".

    https://github.com/docker/buildx/blob/master/commands/inspect.go
    """
    found: list[str] = []
    inside = False
    for line in shown.splitlines():
        if not line[:1].isspace():
            inside = line.startswith("Devices:")
        elif inside and (name := _DEVICE_NAME.match(line)):
            found.append(name[1])
    return tuple(dict.fromkeys(found))
