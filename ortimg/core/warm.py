"""The warmed image: its name, its labels, its Dockerfile, and which record fits which image."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import msgspec

from ortimg.core.tags import tag_problem
from ortimg.core.warm_record import AGAIN, PROVIDER, Use, Warmth
from ortimg.errors import CheckFailed, ConfigError

FOLDER = "usr/share/ortimg/warm"  # in the image
CACHE_PATH = f"/{FOLDER}/cache"
SUMMARY_PATH = f"/{FOLDER}/warm.json"
SEED_PATH = "/usr/local/bin/ortimg-seed"
LIBRARIES = "/opt/onnxruntime/current/lib"
LABEL = "ortimg.warm."
IDENTIFIER_LABEL = "ortimg.identifier"

# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars: CUDA_CACHE_MAXSIZE is 1 GiB by default and
# 4 GiB at the most; of a cache that is larger, kernels are thrown out.
DEFAULT_LIMIT = 1 << 30
HIGHEST_LIMIT = 4 << 30
_ROOM = 4  # a seeded cache can grow to so many times its size before anything is thrown out

_SIZE = re.compile(r"([0-9]{1,12})([KMG]?)(?:i?B)?", re.IGNORECASE)
_UNIT = re.compile(r"^(?P<unit>.+?-cuda[0-9.]+-cudnn[0-9]+)-")


class Baked(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a cache."""

    files: int
    bytes: int


class Original(msgspec.Struct, frozen=True, kw_only=True):
    """The image that gets the cache."""

    reference: str  # by which the Dockerfile names it: name:tag
    id: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]


class Warmed(msgspec.Struct, frozen=True, kw_only=True):
    """A warmed image that was made."""

    reference: str
    dockerfile: str  # path
    baked: Baked
    limit: int  # CUDA_CACHE_MAXSIZE, bytes
    caution: str | None
    seeded: bool = False  # with the entrypoint
    proven: bool = False  # it ran itself, and the driver could compile nothing


def read_size(text: str) -> int:
    """Bytes of `1073741824`, `512M` or `2G`. Raises ConfigError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"--max-size {text!r} is no size", hint="Write bytes, or 512M, or 2G.")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]


def cache_limit(baked: Baked, wish: int | None) -> int:
    """Value of CUDA_CACHE_MAXSIZE for a cache. Raises ConfigError for a wish that would throw kernels out."""
    if baked.bytes > HIGHEST_LIMIT:
        raise CheckFailed(
            f"the cache has {baked.bytes} bytes, and CUDA reads {HIGHEST_LIMIT} at the most: "
            "kernels would be thrown out at each start",
            "Warm fewer models in one image.",
        )
    if wish is None:
        return min(max(DEFAULT_LIMIT, _ROOM * baked.bytes), HIGHEST_LIMIT)
    if wish < baked.bytes:
        raise ConfigError(
            f"--max-size is {wish} bytes and the cache has {baked.bytes}: kernels would be thrown out, "
            "and compiled anew at each start",
            hint="Give it more, or leave --max-size out.",
        )
    if wish > HIGHEST_LIMIT:
        raise ConfigError(f"--max-size is {wish} bytes, and CUDA reads {HIGHEST_LIMIT} at the most")
    return wish


def wants_seed(warmth: Warmth, wish: bool | None) -> bool:
    """Whether the image gets the entrypoint. `wish`: None leaves it to the record.

    Raises CheckFailed where the wish is to have none and the driver was not shown to use a cache that the
    program cannot write to: the image would then compile at each start.
    """
    needed = warmth.use is not Use.READ_ONLY and not warmth.native
    if needed and wish is False:
        raise CheckFailed(
            f"the record does not show that driver {warmth.gpu.driver} uses a cache which a program cannot "
            "write to: without the entrypoint the image would compile at each start",
            "Leave --no-seed out.",
        )
    return needed if wish is None else wish


def check_original(reference: str, labels: Mapping[str, str]) -> None:
    """Raises ConfigError for an image that cannot be warmed, whatever the record."""
    if not labels.get(IDENTIFIER_LABEL):
        raise ConfigError(
            f"{reference} has no label {IDENTIFIER_LABEL}: ortimg did not build it, nor what it stands on",
            hint="Name an image of `ortimg build`, or one that stands on such an image.",
        )
    if made_from := labels.get(f"{LABEL}from"):
        raise ConfigError(
            f"{reference} is warmed already, for {labels.get(LABEL + 'compute')} and driver "
            f"{labels.get(LABEL + 'driver')}",
            hint=f"Name the image that it was made from: {made_from}.",
        )
    if "-python" in labels[IDENTIFIER_LABEL]:
        raise ConfigError(
            f"{reference} has ONNX Runtime as a Python wheel, and the warm-up needs libonnxruntime.so",
            hint="Name the image of the same cell without Python.",
        )


def check_cell(warmth: Warmth, reference: str, identifier: str) -> str | None:
    """A word of caution, or None, where a record is of the cell of an image. Raises CheckFailed if it is not.

    The cache holds kernels by their code, so the base does not matter: one warm-up serves every base of the
    same ONNX Runtime and CUDA libraries.
    """
    if unit_of(identifier) != unit_of(warmth.identifier):
        raise CheckFailed(
            f"the record is of {warmth.identifier}, and {reference} is {identifier}, which has other kernels",
            f"Warm a root of {identifier}.",
        )
    if identifier == warmth.identifier:
        return None
    return f"warmed on {warmth.identifier}: the same ONNX Runtime and CUDA on another base"


def check_build(warmth: Warmth, reference: str, sha256: str | None) -> None:
    """Raises CheckFailed where the image's CUDA provider is another file than the one that was warmed."""
    if sha256 != warmth.ort_sha256:
        raise CheckFailed(
            f"{PROVIDER} in {reference} is another build than the one that was warmed: "
            f"sha256 {_short(sha256)}, in the record {_short(warmth.ort_sha256)}",
            AGAIN,
        )


def unit_of(identifier: str) -> str:
    """`1.16.2-cuda11.8-cudnn8` of an identifier: all of it that kernels depend on."""
    found = _UNIT.match(identifier)
    return found["unit"] if found else identifier


def _short(sha256: str | None) -> str:
    return f"{sha256[:12]}…" if sha256 else "none"


def warmed_name(reference: str, warmth: Warmth) -> str:
    """`repository:tag-warm-sm90-580.159.04`: the image's own name and what the cache is keyed by.

    Raises ConfigError where that cannot be a name.
    """
    repository, _, tag = reference.rpartition(":")
    end = f"-warm-{warmth.gpu.architecture}-{warmth.gpu.driver}"
    if problem := tag_problem(tag + end):
        raise ConfigError(problem, hint="Give --tag NAME:TAG.")
    return f"{repository}:{tag}{end}"


def invalidated_by(warmth: Warmth) -> tuple[str, ...]:
    """What makes the driver compile again, for people."""
    gpu = warmth.gpu
    return (
        f"another driver than {gpu.driver}",
        f"a GPU of another compute capability than {gpu.compute}",
        f"another build of ONNX Runtime ({PROVIDER} {_short(warmth.ort_sha256)})",
    )


def labels(warmth: Warmth, made_from: str, baked: Baked, limit: int) -> dict[str, str]:
    """Labels of the warmed image, besides those that it inherits. `made_from`: id of the image below."""
    gpu = warmth.gpu
    return {
        f"{LABEL}from": made_from,
        f"{LABEL}gpu": gpu.name,
        f"{LABEL}compute": gpu.compute,
        f"{LABEL}driver": gpu.driver,
        f"{LABEL}ort": f"sha256:{warmth.ort_sha256}",
        f"{LABEL}cache": f"{baked.files} files, {baked.bytes} bytes, at most {limit}",
        f"{LABEL}use": warmth.use.value,
        f"{LABEL}invalidated-by": "another driver, compute capability or build of ONNX Runtime",
    }


def summary(warmth: Warmth, baked: Baked, limit: int) -> bytes:
    """The record as the image holds it, for programs inside."""
    data = {
        "schema": 1,
        "identifier": warmth.identifier,
        "ort_sha256": warmth.ort_sha256,
        "gpu": msgspec.to_builtins(warmth.gpu),
        "date": warmth.date,
        "use": warmth.use.value,
        "cache": {"path": CACHE_PATH, **msgspec.to_builtins(baked), "limit": limit},
        "first_run_seconds": {
            "cold": warmth.cold,
            "second": warmth.second,
            "baked": warmth.baked,
        },
    }
    return (json.dumps(data, indent=2) + "\n").encode()


def dockerfile(warmth: Warmth, original: Original, baked: Baked, limit: int, *, seed: bool) -> str:
    """The Dockerfile of the warmed image. Its context holds `rootfs/`, laid out as in the image."""
    lines = [
        "# Made by `ortimg warm`: an image of ONNX Runtime GPU, and what a GPU's driver compiled for it.",
        f"# Of use with {warmth.gpu}.",
        "# Elsewhere the image works as before, and compiles at each start.",
        f"FROM {original.reference}",
        "",
        "# CUDA's compute cache, owned by root and readable by anyone. It holds kernels by their code,",
        "# so it works at another path and with other times.",
        "# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#just-in-time-compilation",
        "COPY --link rootfs/ /",
        "",
        "# Of a cache that is larger than CUDA_CACHE_MAXSIZE, kernels are thrown out.",
        f"ENV CUDA_CACHE_PATH={CACHE_PATH} \\",
        f"    CUDA_CACHE_MAXSIZE={limit}",
        "",
    ]
    if seed:
        lines += [
            "# There is one CUDA_CACHE_PATH only: the entrypoint puts a copy where the program can",
            "# write, so that it can grow; and not every driver uses a cache that cannot be written to.",
            f"ENTRYPOINT {_words([SEED_PATH, *original.entrypoint])}",
            f"CMD {_words(original.command)}",  # a new ENTRYPOINT clears the base's CMD
            "",
        ]
    told = labels(warmth, original.id, baked, limit)
    lines += [
        "LABEL " + " \\\n      ".join(f"{key}={json.dumps(value)}" for key, value in told.items()),
        "",
    ]
    return "\n".join(lines)


def _words(words: Sequence[str]) -> str:
    return json.dumps([*words], ensure_ascii=True)
