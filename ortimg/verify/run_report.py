"""The numbers of tier run, as `ort-verify` writes them under `run`. What was not reached is absent."""

from __future__ import annotations

import msgspec


class RunDevice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The GPU and its driver."""

    id: int | None = None
    name: str | None = None
    compute: str | None = None  # "9.0"
    memory_bytes: int | None = None
    driver: str | None = None  # "580.159.04"
    driver_cuda: str | None = None  # newest CUDA that the driver knows, "13.0"
    runtime_cuda: str | None = None  # of the image, "11.8"


class RunInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One input of the model."""

    name: str
    type: str
    shape: str  # "1x3x224x224", "scalar"


class RunOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output on CUDA against the same on the CPU, at the number that is farthest off."""

    name: str
    type: str | None = None
    shape: str | None = None
    relative_error: float | None = None  # None: endless, or not compared
    at: int | None = None
    cuda: float | None = None
    cpu: float | None = None
    skipped: str | None = None


class RunSeconds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Each step by itself."""

    device: float | None = None  # driver and context
    session: float | None = None
    first_run: float | None = None  # compiles kernels where the GPU is newer than they, tries algorithms
    cpu_run: float | None = None


class RunTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Timed runs, from host memory to host memory."""

    warmup: int
    count: int
    median_ms: float
    p95_ms: float
    max_ms: float


class RunMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Free memory of the GPU, before the session and with it."""

    free_before_bytes: int
    free_after_bytes: int


class RunNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node of the model after ONNX Runtime's own fusions."""

    name: str
    op: str
    provider: str


class RunNodes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the nodes ran, from ONNX Runtime's own profile."""

    total: int
    cuda: int
    cpu: int
    share_cuda: float  # 0 … 1
    copies: int  # between host and GPU, put in by ONNX Runtime
    not_on_cuda: tuple[RunNode, ...] = ()


class ReferenceOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output against the same of another run, at the number that is farthest off."""

    name: str
    type: str | None = None
    shape: str | None = None
    relative_error: float | None = None  # None: endless, or not compared
    at: int | None = None
    got: float | None = None
    wanted: float | None = None
    skipped: str | None = None
    fault: str | None = None  # why both cannot be held against each other


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The other run, of another ONNX Runtime or on another GPU."""

    ort: str | None = None
    provider: str | None = None
    tf32: bool | None = None
    other_inputs: str | None = None  # it had other ones: nothing was compared
    outputs: tuple[ReferenceOutput, ...] = ()
    limit: float | None = None
    largest_relative_error: float | None = None  # None: endless, or nothing was compared


class RunReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a model."""

    model: str
    provider: str | None = None  # "cuda", "cpu"; reports before it had the key were on CUDA
    date: str | None = None
    ort: str | None = None
    device: RunDevice | None = None
    options: dict[str, str] = {}
    tf32: bool | None = None
    cpu_fallback: bool | None = None  # could nodes run on the CPU at all?
    inputs: tuple[RunInput, ...] = ()
    outputs: tuple[RunOutput, ...] = ()
    seconds: RunSeconds | None = None
    runs: RunTimes | None = None
    memory: RunMemory | None = None
    nodes: RunNodes | None = None
    reference: Reference | None = None
