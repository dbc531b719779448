"""The numbers of `ort-verify --bench`, as it writes them under `bench`. What was not measured is absent."""

from __future__ import annotations

import msgspec

from ortimg.verify.run_report import RunDevice


class BenchMachine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The processor, and this process's share of it."""

    cpu: str | None = None
    processors: int | None = None  # logical ones that the process may use
    threads: int | None = None  # of the CPU provider, for one operator
    quota: float | None = None  # processors at once, of `docker run --cpus`; None: no limit
    kernel: str | None = None
    glibc: str | None = None


class BenchSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session was made."""

    provider: str  # "cpu", "cuda"
    tf32: bool | None = None  # None on the CPU
    seconds: float
    memory_bytes: int | None = None  # of the GPU


class BenchPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to run the model, over and over. Times are of one run, in milliseconds."""

    provider: str  # "cpu", "cuda"
    tf32: bool | None = None  # None on the CPU
    shape: str  # "x=64x256, mask=64"
    batch: int | None = None  # None: the shape as it was given
    binding: bool  # the tensors are on the GPU already and stay there: no copies
    concurrency: int  # threads that call the session at once
    first_ms: float | None = None  # the shape's first run; told once, where the tensors are in host memory
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    min_ms: float
    max_ms: float
    per_second: float  # runs of all threads together
    idle_share: float | None = None  # of the GPU's time, 0 … 1; `BenchReport.idle` tells how it is known


class BenchNodes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the nodes ran, from ONNX Runtime's own profile of the session on CUDA."""

    total: int
    cuda: int
    cpu: int
    copies: int  # between host and GPU, put in by ONNX Runtime
    cpu_operators: tuple[str, ...] = ()


class BenchReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measurement."""

    model: str
    date: str | None = None
    warmup: int
    runs: int  # timed ones, of each thread
    ort: str | None = None
    machine: BenchMachine | None = None
    device: RunDevice | None = None
    options: dict[str, str] = {}
    sessions: tuple[BenchSession, ...] = ()
    points: tuple[BenchPoint, ...] = ()
    nodes: BenchNodes | None = None
    idle: str | None = None  # how the idle share was measured, or why not
    cuda_not_measured: str | None = None
    tf32_not_measured: str | None = None
