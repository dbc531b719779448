"""A warm-up against a host: is there anything to gain on its GPU, and does a baked cache fit it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ortimg.core.catalogue import Index
from ortimg.core.fit_rules import Host
from ortimg.core.gpu import Capability, Match, match
from ortimg.core.model import Confidence, GpuArchitectures
from ortimg.core.warm import LABEL, unit_of
from ortimg.errors import ConfigError

_SURE = (Confidence.MEASURED, Confidence.ONE_SOURCE)


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What the catalogue says of one ONNX Runtime and CUDA set on some GPUs."""

    native: bool  # for sure: every library has machine code for each GPU
    words: str


def expect(index: Index, identifier: str, capabilities: Sequence[Capability]) -> Expectation:
    """Whether a warm-up of a cell can gain anything on these GPUs."""
    parts = unit_of(identifier).split("-")
    known = None
    if len(parts) == 3 and parts[1].startswith("cuda") and parts[2].startswith("cudnn"):
        cuda, cudnn = parts[1].removeprefix("cuda"), parts[2].removeprefix("cudnn")
        release = index.release(parts[0], int(cuda.partition(".")[0] or 0))
        cuda_set = index.sets.get((cuda, cudnn))
        known = (release, cuda_set) if release and cuda_set and cuda_set.gpu else None
    if known is None or not capabilities:
        return Expectation(native=False, words="the catalogue does not tell what this GPU needs: measured")
    release, cuda_set = known
    codes: list[tuple[str, GpuArchitectures]] = [("ONNX Runtime", release.gpu)]
    codes += [(code.library, code) for code in cuda_set.gpu]
    if release.wheel and release.wheel.gpu:  # an image may be made of either
        codes.append(("ONNX Runtime's wheel", release.wheel.gpu))
    told = ", ".join(str(capability) for capability in capabilities)
    for name, code in codes:
        if code.confidence not in _SURE:
            return Expectation(native=False, words=f"the GPU code of {name} is not known for sure: measured")
        if any(match(code, capability) is not Match.NATIVE for capability in capabilities):
            return Expectation(
                native=False, words=f"{name} has no machine code for compute capability {told}: compiled"
            )
    return Expectation(
        native=True, words=f"every library has machine code for compute capability {told}: nothing is gained"
    )


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check of a warmed image on a host."""

    check: str
    verdict: str  # ok, fail
    evidence: str
    cure: str | None = None


def check_labels(reference: str, labels: Mapping[str, str]) -> None:
    """Raises ConfigError for an image that is not warmed."""
    if not labels.get(f"{LABEL}compute") or not labels.get(f"{LABEL}driver"):
        raise ConfigError(
            f"{reference} has no labels {LABEL}*: it holds no cache",
            hint="`ortimg warm IMAGE` makes an image that does.",
        )


def check_host(labels: Mapping[str, str], host: Host) -> tuple[Finding, ...]:
    """Whether the cache that the labels of a warmed image tell of is of use on `host`."""
    return tuple(_against(labels[f"{LABEL}compute"], labels[f"{LABEL}driver"], host))


def _against(compute: str, driver: str, host: Host) -> Iterator[Finding]:
    cure = "run `ortimg warm` on this host; until then each start compiles, and works"
    have = sorted({str(gpu.capability) for gpu in host.gpus})
    if compute in have:
        yield Finding(
            check="warm.gpu", verdict="ok", evidence=f"made for compute capability {compute}, as here"
        )
    else:
        here = ", ".join(have) or "a GPU that tells no compute capability"
        words = f"made for compute capability {compute}, here is {here}"
        yield Finding(check="warm.gpu", verdict="fail", evidence=words, cure=cure)
    if driver == host.driver.version:
        yield Finding(check="warm.driver", verdict="ok", evidence=f"made by driver {driver}, as here")
    else:
        words = f"made by driver {driver}, here is {host.driver}: its cache is of no use"
        yield Finding(check="warm.driver", verdict="fail", evidence=words, cure=cure)
