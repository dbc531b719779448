"""Measurements of a report: bars for `ortimg bench` and `make bench`, rows for reports of tier run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ortimg.core.report_facts import BenchFact, FactoryFact, RatioFact, RunFact
from ortimg.core.report_words import amount, milliseconds
from ortimg.verify.bench_report import BenchPoint, BenchReport

WIDTH = 1000.0  # of a bar's picture, in its own units


class BarRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run the model. `bars`: widths of P99, P95 and P50, drawn over one another in this order."""

    name: str
    kind: str  # "cpu", "cuda"
    bars: tuple[float, float, float]
    p50: str
    p95: str
    p99: str
    first: str
    per_second: str
    idle: str


class BarGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Ways to run one shape with one number of threads: what may be held against each other."""

    title: str
    rows: tuple[BarRow, ...]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement."""

    title: str
    source: str
    facts: tuple[str, ...]
    groups: tuple[BarGroup, ...]
    judgement: tuple[str, ...]


class RatioRow(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio of the factory. Widths are of a picture `WIDTH` wide; what it is held against takes `full`."""

    title: str
    ours: str
    against: str
    ratio: str
    goal: str
    kind: str  # "met", "missed", "plain"
    bar: float
    full: float
    mark: float | None  # where the goal is
    noisy: bool


class FactoryPlot(msgspec.Struct, frozen=True, kw_only=True):
    """The newest run of `make bench`."""

    source: str
    facts: tuple[str, ...]
    rows: tuple[RatioRow, ...]
    earlier: tuple[str, ...]


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One report of tier run whose model was timed."""

    target: str
    source: str
    verdict: str
    model: str
    gpu: str
    driver: str
    date: str
    nodes: str
    session: str
    first: str
    median: str


def plot(fact: BenchFact) -> Plot:
    """Bars of one group have one scale, from 0 on; groups have their own."""
    report = fact.report
    groups: dict[tuple[str, int], list[BenchPoint]] = {}
    for point in report.points:
        groups.setdefault((point.shape, point.concurrency), []).append(point)
    return Plot(
        title=f"{report.model} in {fact.target}",
        source=fact.source,
        facts=tuple(_facts(report)),
        groups=tuple(_group(shape, threads, points) for (shape, threads), points in groups.items()),
        judgement=fact.judgement,
    )


def _facts(report: BenchReport) -> Iterator[str]:
    yield f"ONNX Runtime {report.ort or 'unknown'}, {report.date or 'no date'}"
    if report.machine is not None:
        yield f"CPU: {report.machine.cpu or 'unknown'}, {report.machine.threads or 'unknown'} threads"
    if report.device is not None:
        yield f"GPU: {report.device.name or 'unknown'}, driver {report.device.driver or 'unknown'}"
    yield f"{report.runs:,} runs a thread after {report.warmup:,} warm-up runs"
    if report.options:
        yield "options: " + ", ".join(f"{key}={value}" for key, value in sorted(report.options.items()))
    if report.cuda_not_measured:
        yield f"CUDA not measured: {report.cuda_not_measured}"


def _group(shape: str, threads: int, points: Sequence[BenchPoint]) -> BarGroup:
    largest = max(point.p99_ms for point in points)
    scale = WIDTH / largest if largest > 0 else 0.0

    def width(value: float) -> float:
        return round(value * scale, 1)

    return BarGroup(
        title=f"{shape}, {threads} thread{'s' if threads > 1 else ''}",
        rows=tuple(
            BarRow(
                name=_name(point),
                kind="cpu" if point.provider == "cpu" else "cuda",
                bars=(width(point.p99_ms), width(point.p95_ms), width(point.p50_ms)),
                p50=milliseconds(point.p50_ms),
                p95=milliseconds(point.p95_ms),
                p99=milliseconds(point.p99_ms),
                first="-" if point.first_ms is None else milliseconds(point.first_ms),
                per_second=f"{point.per_second:,.0f}",
                idle="-" if point.idle_share is None else f"{100 * point.idle_share:.0f} %",
            )
            for point in points
        ),
    )


def _name(point: BenchPoint) -> str:
    if point.provider == "cpu":
        return "CPU"
    tf32 = ", TF32" if point.tf32 else ""
    return f"CUDA{tf32}, {'on the GPU' if point.binding else 'copied'}"


def factory_plot(fact: FactoryFact) -> FactoryPlot:
    """Every bar has a scale of its own: it shows a share of what it is held against."""
    count = len(fact.cells)
    return FactoryPlot(
        source=fact.source,
        facts=(fact.date[:10], f"{count} cell{'s' if count != 1 else ''}", fact.machine),
        rows=tuple(_ratio(row) for row in fact.ratios if row.against > 0),
        earlier=fact.earlier,
    )


def _ratio(row: RatioFact) -> RatioRow:
    times = row.of == "against / ours"
    share = row.ours / row.against
    full = WIDTH / max(share, 1.0)
    sign, unit = ("≥", " times") if times else ("≤", "")
    mark = None if not row.goal else full * (1 / row.goal if times else row.goal)
    return RatioRow(
        title=row.title,
        ours=_quantity(row.ours, row.unit),
        against=_quantity(row.against, row.unit),
        ratio=f"{row.value:.1f} times"
        if times
        else f"{row.value:.2g}"
        if row.value < 0.1
        else f"{row.value:.2f}",
        goal="-" if row.goal is None else f"{sign} {row.goal:g}{unit}",
        kind="plain" if row.met is None else "met" if row.met else "missed",
        bar=round(full * share, 1),
        full=round(full, 1),
        mark=None if mark is None else round(min(mark, WIDTH - 4), 1),
        noisy=row.noisy,
    )


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return amount(round(value))
    return f"{value:,.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 2 else f"{value:.3f} s"


def run_rows(runs: Sequence[RunFact]) -> tuple[RunRow, ...]:
    """Reports without timed runs have nothing to show here."""
    rows = []
    for fact in runs:
        run = fact.run
        if run.runs is None:
            continue
        device, seconds, nodes = run.device, run.seconds, run.nodes
        rows.append(
            RunRow(
                target=fact.target,
                source=fact.source,
                verdict=fact.verdict,
                model=run.model,
                gpu=(device.name if device else None) or "not told",
                driver=(device.driver if device else None) or "not told",
                date=run.date or "not told",
                nodes=f"{nodes.cuda} of {nodes.total}" if nodes else "not told",
                session=_seconds(seconds.session if seconds else None),
                first=_seconds(seconds.first_run if seconds else None),
                median=f"{milliseconds(run.runs.median_ms)} ms",
            )
        )
    return tuple(rows)


def _seconds(value: float | None) -> str:
    return "not told" if value is None else f"{value:.2f} s"
