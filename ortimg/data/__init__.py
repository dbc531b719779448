"""Facts as data files, and the only code that reads them from disk."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ortimg.core.catalogue import parse_catalogue
from ortimg.core.model import Catalogue

if TYPE_CHECKING:
    from ortimg.core.gpu_access import Refusal
    from ortimg.core.host_facts import HostFacts
    from ortimg.core.onnx_support import OnnxRow


@cache
def read_catalogue() -> Catalogue:
    """The catalogue that comes with ortimg."""
    folder = files(__name__)
    names = ("ort.yaml", "cuda.yaml", "bases.yaml", "python.yaml")
    ort, cuda, bases, python = ((folder / name).read_bytes() for name in names)
    return parse_catalogue(ort, cuda, bases, python)


@cache
def read_host_facts() -> HostFacts:
    """Facts about GPUs, drivers and NVIDIA's images that come with ortimg."""
    from ortimg.core.host_facts import parse_host_facts  # not for every command

    folder = files(__name__)
    gpus, drivers, images = (
        (folder / name).read_bytes() for name in ("gpus.yaml", "drivers.yaml", "nvidia-images.yaml")
    )
    return parse_host_facts(gpus, drivers, images)


def read_onnx_rows() -> tuple[OnnxRow, ...]:
    """Which ONNX each measured version of ONNX Runtime knows."""
    from ortimg.core.onnx_support import parse_onnx  # not for every command

    return parse_onnx((files(__name__) / "onnx.yaml").read_bytes())


@cache
def read_refusals() -> tuple[Refusal, ...]:
    """What engines say where a container cannot have a GPU."""
    from ortimg.core.gpu_access import parse_refusals  # not for every command

    return parse_refusals((files(__name__) / "gpu-faults.yaml").read_bytes())


@cache
def images_schema() -> dict[str, Any]:
    """JSON Schema of images.yaml."""
    schema: dict[str, Any] = json.loads((files(__name__) / "images.schema.json").read_text("utf-8"))
    return schema
