"""Reports for tests: one of everything, with hostile words wherever words may come from elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from installed import ROOT

from ortimg.core.model import Exclusion, Tier
from ortimg.core.report import report_page
from ortimg.core.report_facts import (
    BenchFact,
    BuildFact,
    FactoryFact,
    Held,
    ImageFact,
    InputFact,
    LayerFact,
    NumbersFact,
    RatioFact,
    ReportFacts,
    RunFact,
    VerdictFact,
)
from ortimg.data import read_host_facts
from ortimg.inputs.lockfile import read_lock
from ortimg.project import load_project
from ortimg.reporting.html import as_html
from ortimg.verify.bench_report import BenchMachine, BenchPoint, BenchReport
from ortimg.verify.report import parse_report
from ortimg.verify.run_report import RunDevice, RunReport

NOW = datetime(2026, 12, 13, 12, 0, tzinfo=UTC)
MADE = datetime(2026, 12, 1, 23, 0, tzinfo=UTC)
HOSTILE = (
    """"'></title></style></script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}"""
)
DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
ONE, TWO, THIRD = (
    "1.16.2-cuda11.8-cudnn8-debian12",
    "1.16.2-cuda11.8-cudnn8-debian13",
    "1.23.2-cuda12.6-cudnn9-debian12",
)


def plain_facts() -> ReportFacts:
    """This repository, where no engine answers and nothing was measured."""
    plan = load_project(ROOT).plan
    return ReportFacts(
        repository="registry.example.com/team/onnxruntime-gpu",
        registry=True,
        cells=plan.cells,
        excluded=plan.excluded,
        hosts=read_host_facts(),
        lock=read_lock(ROOT),
        now=NOW,
        version="1.2.3",
        engine="no engine answers",
    )


def layer(name: str, size: int, unit: str | None = None) -> LayerFact:
    return LayerFact(diff_id=f"sha256:{name}", size=size, unit=unit)


def image(*layers: LayerFact, digest: str | None = None, origins: str = "maven") -> ImageFact:
    return ImageFact(
        digest=digest,
        tier=Tier.LOAD,
        created=MADE,
        origins={"ort": origins, "cuda": "wheel", "base": "bootstrap"},
        layers=layers,
    )


CUDA, ORT = layer("c", 1_900_000_000, "cuda 11.8-cudnn8"), layer("o", 400_000_000, "ort 1.16.2")
IMAGES = {
    ONE: image(CUDA, ORT, layer("d12", 94_000_000, "base debian12"), layer("g1", 20_000), digest=DIGEST),
    TWO: image(CUDA, ORT, layer("d13", 90_000_000), layer("g2", 30_000), origins=HOSTILE),
}


def verdict(**more: object) -> VerdictFact:
    told: dict[str, object] = {
        "identifier": ONE,
        "digest": DIGEST,
        "passed": True,
        "proves_run": True,
        "gpu": "NVIDIA H200",
        "compute": "9.0",
        "driver": "580.159.04",
        "date": "2026-12-01T09:36:46Z",
    }
    return msgspec.convert(told | more, VerdictFact)


def point(provider: str, p50: float, **more: object) -> BenchPoint:
    told: dict[str, object] = {
        "provider": provider,
        "shape": "x=1x8",
        "binding": False,
        "concurrency": 1,
        "p50_ms": p50,
        "p95_ms": p50 * 1.5,
        "p99_ms": p50 * 2,
        "mean_ms": p50,
        "min_ms": p50,
        "max_ms": p50 * 2,
        "per_second": 1000 / p50,
    }
    return msgspec.convert(told | more, BenchPoint)


def bench() -> BenchReport:
    return BenchReport(
        model=f"net{HOSTILE}.onnx",
        warmup=20,
        runs=200,
        ort="1.16.2",
        machine=BenchMachine(cpu="a processor", threads=8),
        device=RunDevice(name="NVIDIA H200", driver="580.159.04"),
        points=(
            point("cpu", 10.0),
            point("cuda", 2.0, tf32=False, first_ms=1250.0, idle_share=0.42),
            point("cuda", 1.5, tf32=False, binding=True),
            point("cpu", 40.0, shape="x=8x8"),
        ),
    )


def run_report() -> RunReport:
    """One that a real GPU gave."""
    run = parse_report((ROOT / "docs" / "gpu-runs" / ONE / "run.json").read_bytes()).run
    assert isinstance(run, RunReport)
    return run


def full_facts() -> ReportFacts:
    """One of everything."""
    refused = Exclusion(
        ort="1.0", cuda="11.8", cudnn="8", base="x", flavour="runtime", reason=HOSTILE, nearest=None
    )
    facts = plain_facts()
    return msgspec.structs.replace(
        facts,
        repository="onnxruntime-gpu",
        registry=False,
        engine=None,
        excluded=(*facts.excluded, refused),
        images=IMAGES,
        builds={
            THIRD: BuildFact(
                source=f"build{HOSTILE}.json", result="built", bytes_total=2_400_000_000, bytes_own=7
            )
        },
        verdicts=(verdict(), verdict(digest=OTHER, passed=False, gpu=HOSTILE, date="2026-11-30")),
        inputs=(
            InputFact(
                kind="ONNX Runtime",
                name="1.16.2-cuda11",
                pins=("upstream", "maven"),
                held=(Held(origin="maven", size=152_714_542, since=MADE),),
                upstream=datetime(2023, 11, 8, tzinfo=UTC),
                cells=(ONE, TWO),
                part="ort",
            ),
            InputFact(kind="base", name=f"debian12 {HOSTILE}", cells=(ONE,)),
        ),
        benches=(
            BenchFact(
                source=f"{HOSTILE}.json", target=HOSTILE, report=bench(), judgement=(f"slow {HOSTILE}",)
            ),
        ),
        factory=FactoryFact(
            source=f"{HOSTILE}.json",
            date="2026-12-01T16:00:00Z",
            cells=(ONE, TWO),
            machine=f"2 cores {HOSTILE}",
            ratios=(
                RatioFact(
                    title=f"build {HOSTILE}",
                    ours=100.0,
                    against=500.0,
                    unit="s",
                    value=5.0,
                    of="against / ours",
                    goal=4.0,
                    met=True,
                ),
                RatioFact(
                    title="limit",
                    ours=90.0,
                    against=60.0,
                    unit="s",
                    value=1.5,
                    of="ours / against",
                    goal=1.3,
                    met=False,
                    noisy=True,
                ),
            ),
            earlier=(f"old {HOSTILE}",),
        ),
        runs=(RunFact(source="run.json", target=ONE, verdict="pass", run=run_report()),),
        numbers=(NumbersFact(source=f"2026{HOSTILE}", rows=((f"ratio {HOSTILE}", "4.2"),)),),
        notes=(f"ignored: {HOSTILE}",),
    )


def page(facts: ReportFacts) -> str:
    return as_html(report_page(facts))
