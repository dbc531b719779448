"""What tier run should run, and how: `ort-verify`'s own options, in one place for roots and images."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from ortimg.core.model import Tier
from ortimg.core.problems import near, quote
from ortimg.errors import ConfigError

TENSORS = "tensors.json"  # names the tensors of a folder of --save-outputs; written last

_ORT_FORMAT = b"ORTM"  # https://onnxruntime.ai/docs/performance/model-optimizations/ort-format-models.html


class Provider(StrEnum):
    """Where the model runs. On the CPU nothing is proved about CUDA: the report then says tier load."""

    CUDA = "cuda"
    CPU = "cpu"


@dataclass(frozen=True)
class Places:
    """Where `ort-verify` sees the files and folders of a wish; None: the wish has none."""

    model: str | None = None
    save_outputs: str | None = None
    reference: str | None = None


@dataclass(frozen=True)
class BenchWish:
    """What to measure, instead of a run; empty and None mean `ort-verify`'s defaults."""

    batch: tuple[int, ...] = ()  # sizes of first dimensions that the model leaves open
    concurrency: tuple[int, ...] = ()  # threads that call one session at once
    threads: int | None = None  # of the CPU provider

    def words(self) -> list[str]:
        """The wish as `ort-verify` takes it."""
        words = [f"--batch={','.join(map(str, self.batch))}"] if self.batch else []
        words += [f"--concurrency={','.join(map(str, self.concurrency))}"] if self.concurrency else []
        return words + ([f"--threads={self.threads}"] if self.threads is not None else [])


@dataclass(frozen=True)
class RunWish:
    """`ort-verify` reads and checks these; None and empty mean its defaults."""

    model: Path | None = None  # None: the small network that ort-verify carries
    shapes: tuple[str, ...] = ()  # "image=1x3x224x224"
    options: tuple[str, ...] = ()  # of the CUDA provider, "gpu_mem_limit=4G"
    allow_cpu: tuple[str, ...] = ()  # operators that may run on the CPU
    warmup: int | None = None
    runs: int | None = None
    provider: Provider = Provider.CUDA
    save_outputs: Path | None = None  # folder for each input and output as a .npy file, and tensors.json
    reference: Path | None = None  # such a folder of another run, to hold the outputs against
    bench: BenchWish | None = None  # measure, instead of a run

    def needs_gpu(self, tier: Tier) -> bool:
        """Does a container need the GPU for this?"""
        return (tier is Tier.RUN or self.bench is not None) and self.provider is Provider.CUDA

    def goal(self, tier: Tier) -> list[str]:
        """How far `ort-verify` is to go."""
        return ["--bench", *self.bench.words()] if self.bench is not None else ["--tier", tier.value]

    def words(self, places: Places) -> list[str]:
        """The wish as `ort-verify` takes it, with its files at `places`.

        The folder `save_outputs` is made where it is not there. Raises ConfigError where the model's file is
        not there or no model, where the reference's folder is not there, and for options that no CUDA
        provider has: before a machine without a GPU could hide it.
        """
        if self.model is not None:
            _check_model(self.model)
        _check_options(self.options)
        if self.reference is not None and not (self.reference / TENSORS).is_file():
            raise ConfigError(
                f"{self.reference} holds no {TENSORS}", hint="Make it with --save-outputs of another run."
            )
        if self.save_outputs is not None:
            _make_place(self.save_outputs)
        words = [f"--model={places.model}"] if places.model else []
        words += [f"--shape={shape}" for shape in self.shapes]
        words += [f"--option={option}" for option in self.options]
        words += [f"--allow-cpu={operator}" for operator in self.allow_cpu]
        words += [f"--warmup={self.warmup}"] if self.warmup is not None else []
        words += [f"--runs={self.runs}"] if self.runs is not None else []
        words += [f"--provider={self.provider.value}"] if self.provider is not Provider.CUDA else []
        words += [f"--save-outputs={places.save_outputs}"] if places.save_outputs else []
        words += [f"--reference={places.reference}"] if places.reference else []
        return words


def _check_model(model: Path) -> None:
    from ortimg.measure.onnx_model import NotAModelError, read_stamp

    if not model.is_file():
        raise ConfigError(f"there is no file {model}", hint="Give --model an ONNX file.")
    try:
        with model.open("rb") as file:
            if file.read(8)[4:] == _ORT_FORMAT:
                return
        read_stamp(model)
    except NotAModelError as error:
        raise ConfigError(f"--model: {error}", hint="Give --model an ONNX file.") from None
    except OSError as error:
        raise ConfigError(
            f"{model} cannot be read: {error.strerror}", hint="Let this user read it."
        ) from None


def _check_options(words: Sequence[str]) -> None:
    """Names only: `ort-verify` knows the values and units that it takes, and the version in the image."""
    if not words:
        return
    from ortimg.core.doctor.options import parse_options, split_option

    known = parse_options((files("ortimg.data") / "cuda-options.yaml").read_bytes())
    for word in words:
        key, _ = split_option(word)
        if key not in known:
            raise ConfigError(
                f"--option {quote(key)}: the CUDA provider has no such option{near(key, known)}",
                hint=f"It has {', '.join(known)}.",
            )


def _make_place(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"{folder} is not a folder", hint="Give --save-outputs a folder.") from None


def time_limit(tier: Tier, seconds: int | None, wish: RunWish | None = None) -> int:
    """Seconds for one attempt: a first start may compile kernels for the GPU, so tier run has more."""
    if seconds is not None:
        return seconds
    if wish is not None and wish.bench is not None:
        return 3600
    return 600 if tier is Tier.RUN else 120


def cuda_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that mean inside a container what they mean here: which GPU, how much TF32."""
    return {
        key: value
        for key, value in environment.items()
        if key.startswith("CUDA_") or key == "NVIDIA_TF32_OVERRIDE"
    }


def refused(stderr: str, wish: RunWish) -> ConfigError:
    """What `ort-verify` says about a wrong command line (exit code 2)."""
    lines = [line for line in stderr.splitlines() if line.startswith("ort-verify: ")]
    verb = "verify" if wish.bench is None else "bench"
    return ConfigError(
        lines[0].removeprefix("ort-verify: ") if lines else stderr.strip() or "nothing",
        hint=f"`ortimg {verb} --help` shows the options.",
    )
