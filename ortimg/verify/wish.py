"""What tier run should run, and how: `ort-verify`'s own options, in one place for roots and images."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ortimg.core.model import Tier
from ortimg.errors import ConfigError


@dataclass(frozen=True)
class RunWish:
    """`ort-verify` reads and checks these; None and empty mean its defaults."""

    model: Path | None = None  # None: the small network that ort-verify carries
    shapes: tuple[str, ...] = ()  # "image=1x3x224x224"
    options: tuple[str, ...] = ()  # of the CUDA provider, "gpu_mem_limit=4G"
    allow_cpu: tuple[str, ...] = ()  # operators that may run on the CPU
    warmup: int | None = None
    runs: int | None = None

    def words(self, model: str | None) -> list[str]:
        """The wish as `ort-verify` takes it; `model` is the path at which it sees the model.

        Raises ConfigError where the model's file is not there.
        """
        if self.model is not None and not self.model.is_file():
            raise ConfigError(f"there is no file {self.model}", hint="Give --model an ONNX file.")
        words = [f"--model={model}"] if model else []
        words += [f"--shape={shape}" for shape in self.shapes]
        words += [f"--option={option}" for option in self.options]
        words += [f"--allow-cpu={operator}" for operator in self.allow_cpu]
        words += [f"--warmup={self.warmup}"] if self.warmup is not None else []
        words += [f"--runs={self.runs}"] if self.runs is not None else []
        return words


def time_limit(tier: Tier, seconds: int | None) -> int:
    """Seconds for one attempt: a first start may compile kernels for the GPU, so tier run has more."""
    if seconds is not None:
        return seconds
    return 600 if tier is Tier.RUN else 120


def cuda_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that mean inside a container what they mean here: which GPU, how much TF32."""
    return {
        key: value
        for key, value in environment.items()
        if key.startswith("CUDA_") or key == "NVIDIA_TF32_OVERRIDE"
    }


def refusal(stderr: str) -> str:
    """What `ort-verify` says about a wrong command line (exit code 2)."""
    lines = [line for line in stderr.splitlines() if line.startswith("ort-verify: ")]
    return lines[0].removeprefix("ort-verify: ") if lines else stderr.strip() or "nothing"
