"""What a report is made of: facts that were gathered, none of them made up. `None` means not known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from ortimg.core.host_facts import HostFacts
from ortimg.core.lock import Lock
from ortimg.core.model import Cell, Exclusion, Tier
from ortimg.verify.bench_report import BenchReport
from ortimg.verify.run_report import RunReport


class LayerFact(msgspec.Struct, frozen=True, kw_only=True):
    """One layer of an image."""

    diff_id: str
    size: int  # bytes, unpacked
    unit: str | None = None  # the unit or base whose own layer it is: "cuda 11.8-cudnn8"


class ImageFact(msgspec.Struct, frozen=True, kw_only=True):
    """An image that the engine holds under a cell's name."""

    digest: str | None
    tier: Tier | None  # by its label, or by a record of this very digest
    created: datetime | None
    origins: Mapping[str, str] = {}  # its label: {"ort": "maven", …}
    layers: tuple[LayerFact, ...] = ()  # lowest first


class BuildFact(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `build --json`: for images that are not in this engine."""

    source: str  # file
    result: str
    tier: Tier | None = None
    digest: str | None = None
    bytes_total: int | None = None
    bytes_own: int | None = None
    origins: Mapping[str, str] = {}


class VerdictFact(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded verdict of tier run."""

    identifier: str | None
    digest: str | None
    passed: bool
    proves_run: bool  # with ort-verify's own model, every node on CUDA
    gpu: str | None
    compute: str | None  # "9.0"
    driver: str | None
    date: str


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an input in the cache."""

    origin: str
    size: int  # bytes
    since: datetime | None  # when it was put there


class InputFact(msgspec.Struct, frozen=True, kw_only=True):
    """One input of the build."""

    kind: str  # "ONNX Runtime", "CUDA and cuDNN", "base", …
    name: str
    pins: tuple[str, ...] = ()  # origins that the lock has a hash for
    files: int = 1
    held: tuple[Held, ...] = ()
    upstream: datetime | None = None  # when upstream last changed it, as upstream says
    cells: tuple[str, ...] = ()  # identifiers
    part: str | None = None  # its word in the label of origins: "ort"


class BenchFact(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of `ortimg bench --json`, and what it is judged to be."""

    source: str
    target: str
    report: BenchReport
    judgement: tuple[str, ...] = ()


class RunFact(msgspec.Struct, frozen=True, kw_only=True):
    """A kept report of tier run."""

    source: str
    target: str
    verdict: str
    run: RunReport


class NumbersFact(msgspec.Struct, frozen=True, kw_only=True):
    """A file of results in another shape: its values as they stand."""

    source: str
    rows: tuple[tuple[str, str], ...]


class RatioFact(msgspec.Struct, frozen=True, kw_only=True):
    """Two numbers of one run of `make bench`, as its file holds them."""

    title: str
    ours: float
    against: float
    unit: str  # "s", "bytes"
    value: float
    of: str  # what the value is: "ours / against", "against / ours"
    goal: float | None = None
    met: bool | None = None
    noisy: bool = False  # others used the machine meanwhile


class FactoryFact(msgspec.Struct, frozen=True, kw_only=True):
    """A run of `make bench`."""

    source: str
    date: str
    cells: tuple[str, ...]
    machine: str
    ratios: tuple[RatioFact, ...]
    earlier: tuple[str, ...] = ()  # files of earlier runs


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a page is made of."""

    repository: str
    registry: bool  # the repository names one
    cells: tuple[Cell, ...]
    excluded: tuple[Exclusion, ...]
    hosts: HostFacts
    lock: Lock
    now: datetime  # ages are told by it
    version: str  # of ortimg
    engine: str | None = None  # why no engine was asked; None: it answered
    images: Mapping[str, ImageFact] = {}  # by identifier
    builds: Mapping[str, BuildFact] = {}  # by identifier
    verdicts: tuple[VerdictFact, ...] = ()
    inputs: tuple[InputFact, ...] = ()
    benches: tuple[BenchFact, ...] = ()
    runs: tuple[RunFact, ...] = ()
    factory: FactoryFact | None = None  # the newest run
    numbers: tuple[NumbersFact, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be read, or is worth a warning
