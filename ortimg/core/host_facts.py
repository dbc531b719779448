"""Facts about the machines that images run on: GPUs, drivers, NVIDIA's images. Read by `ortimg fit` only."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import yaml

from ortimg.errors import ConfigError

_T = TypeVar("_T")


class GpuRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GPUs of one compute capability."""

    capability: str  # "7.5"
    names: tuple[str, ...] = ()
    more: tuple[str, ...] = ()  # names that are not in NVIDIA's lists
    arm64: tuple[str, ...] = ()  # GPUs that come with an Arm processor only


class ArchitectureRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What GPUs of some compute capabilities ask of the driver."""

    capabilities: tuple[str, ...]
    name: str  # "Turing"
    first_cuda: str | None = None  # the first CUDA version that knows them; None: older than all that matter
    last_branch: int | None = None  # last driver branch for them; None: drivers go on


class DriverFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NVIDIA's Linux drivers."""

    minor_version_compatibility: dict[str, str]  # CUDA major → lowest driver
    toolkits: dict[str, str]  # CUDA version → driver of its first release
    ptx_isa: dict[str, str]  # version of the PTX language → CUDA version that brought it
    architectures: tuple[ArchitectureRow, ...]


class NvidiaImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """nvidia/cuda with cuDNN, for one CUDA point release."""

    cuda: str  # "12.2.2"
    suffix: str  # of the tag: "cudnn8"
    cudnn: str  # full version
    distros: tuple[str, ...]  # empty: not known


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in gpus.yaml, drivers.yaml and nvidia-images.yaml."""

    gpus: tuple[GpuRow, ...]
    drivers: DriverFacts
    images: tuple[NvidiaImage, ...]


def parse_host_facts(gpus: bytes, drivers: bytes, images: bytes) -> HostFacts:
    """Raises ConfigError, with the file, where a row is not what this module describes."""
    return HostFacts(
        gpus=_convert(_load(gpus, "gpus.yaml").get("gpus"), tuple[GpuRow, ...], "gpus.yaml"),
        drivers=_convert(_load(drivers, "drivers.yaml"), DriverFacts, "drivers.yaml"),
        images=_convert(
            _load(images, "nvidia-images.yaml").get("images"), tuple[NvidiaImage, ...], "nvidia-images.yaml"
        ),
    )


def _load(raw: bytes, name: str) -> dict[str, Any]:
    try:
        data = yaml.load(raw, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"catalogue {name}: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"catalogue {name}: not a mapping")
    return data


def _convert(data: Any, kind: type[_T], name: str) -> _T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"catalogue {name}: {error}") from None
