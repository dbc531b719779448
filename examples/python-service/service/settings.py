"""What the service is told: each setting is a variable of the environment and a flag."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn


class Provider(StrEnum):
    """Where the model runs. The CPU must be asked for: the service never takes it by itself."""

    CUDA = "cuda"
    CPU = "cpu"

    @property
    def onnxruntime_name(self) -> str:
        """What ONNX Runtime calls it."""
        return {Provider.CUDA: "CUDAExecutionProvider", Provider.CPU: "CPUExecutionProvider"}[self]


@dataclass(frozen=True)
class Settings:
    """Checked values."""

    model: str  # path of the ONNX file
    provider: Provider
    device_id: int  # number of the GPU
    host: str
    port: int
    threads: int  # of one run on the CPU; 0: one for each core
    workers: int  # runs at a time
    queue: int  # requests that may wait for a worker; more are refused with 503
    max_body_mb: int  # MiB of a request's body
    receive_seconds: int  # that the whole of a body may take
    warmup_runs: int  # of each worker, before the service is ready
    warmup_shapes: dict[
        str, tuple[int, ...]
    ]  # of inputs; a dimension that the model leaves open is 1 otherwise


def read_settings(
    words: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[Settings, bool]:
    """The settings, and whether only the health of a running service is asked about.

    A flag beats the environment. Ends the process with 2 and a line on stderr where a value cannot be.
    """
    parser = _Parser(
        prog="service",
        description="Serve an ONNX model over HTTP. Options are variables too: --port is PORT.",
        allow_abbrev=False,
    )

    def add(flag: str, default: object, convert: object, text: str) -> None:
        value = environment.get(flag.strip("-").replace("-", "_").upper()) or default
        # argparse converts a default that is text as if it had been given.
        parser.add_argument(flag, default=value, type=convert, help=f"{text} [{default}]")  # type: ignore[arg-type]

    add("--model", "", str, "path of the ONNX file")
    add("--provider", "cuda", Provider, "cuda or cpu")
    add("--device-id", 0, _at_least(0), "number of the GPU")
    add("--host", "127.0.0.1", str, "address to listen on")
    add("--port", 8080, _at_least(1, 65535), "port to listen on")
    add("--threads", 0, _at_least(0), "threads of one run on the CPU, 0: one for each core")
    add("--workers", 2, _at_least(1), "runs at a time")
    add("--queue", 64, _at_least(0), "requests that may wait for a worker")
    add("--max-body-mb", 32, _at_least(1), "largest body of a request, in MiB")
    add("--receive-seconds", 30, _at_least(1), "longest time in which a body comes")
    add("--warmup-runs", 20, _at_least(0), "runs of each worker before the service is ready")
    add("--warmup-shapes", "", _shapes, "shapes of inputs in these runs, such as x=1x256,mask=1x16")
    parser.add_argument("--check-health", action="store_true", help="ask the running service, 0: ready")
    values = vars(parser.parse_args(words))
    check = bool(values.pop("check_health"))
    if not values["model"] and not check:
        parser.error("no model: set MODEL to the path of an ONNX file")
    if not check and not os.access(values["model"], os.R_OK):
        parser.error(f"the model {values['model']} is not there, or cannot be read")
    return Settings(**values), check


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line; argparse would put the whole usage above it."""
        self.exit(2, f"error: {message} (--help shows the settings)\n")


def _at_least(smallest: int, largest: int | None = None) -> object:
    def number(text: str) -> int:
        value = int(text)
        if value < smallest or (largest is not None and value > largest):
            raise ValueError
        return value

    end = "on" if largest is None else f"to {largest}"
    number.__name__ = f"whole number from {smallest} {end}"  # argparse names the type in its message
    return number


def _shapes(text: str) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for part in text.replace(",", " ").split():
        name, _, dimensions = part.rpartition("=")
        if not name:
            raise ValueError
        shapes[name] = tuple(int(size) for size in dimensions.split("x")) if dimensions else ()
        if min(shapes[name], default=1) < 1:
            raise ValueError
    return shapes


_shapes.__name__ = "list of shapes like x=1x256"
