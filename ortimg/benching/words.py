"""A measurement as a person reads it: facts of the machine, a table, the judgement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ortimg.benching.judgement import judge, words
from ortimg.verify.bench_report import BenchPoint, BenchReport

_HEAD = ("shape", "on", "tensors", "threads", "first", "P50", "P95", "P99", "runs/s", "GPU idle")


def tell(report: BenchReport) -> str:
    """The whole text; times in milliseconds."""
    lines = [*_facts(report), "", *_table([_HEAD, *(_row(point) for point in report.points)])]
    runs = f"{report.runs} runs a thread after {report.warmup} warm-up runs"
    lines += ["", f"first, P50, P95, P99: ms; of {runs}"]
    if report.idle is not None:
        lines.append(f"GPU idle: {report.idle}")
    if report.tf32_not_measured:
        lines.append(f"TF32 not measured: {report.tf32_not_measured}")
    lines += [line for judgement in judge(report) for line in words(judgement)]
    if report.cuda_not_measured:
        lines.append(f"CUDA not measured: {report.cuda_not_measured}")
    return "".join(f"{line}\n" for line in lines)


def name_of(point: BenchPoint) -> str:
    """`CPU`, `CUDA`, `CUDA, TF32`."""
    if point.provider == "cpu":
        return "CPU"
    return "CUDA, TF32" if point.tf32 else "CUDA"


def _facts(report: BenchReport) -> Iterator[str]:
    yield f"{report.model}, ONNX Runtime {report.ort or 'unknown'}, {report.date or 'no date'}"
    if (machine := report.machine) is not None:
        quota = f", at most {machine.quota:g} at once" if machine.quota else ""
        yield (
            f"CPU   {machine.cpu or 'unknown'}; {machine.processors} processors{quota}; "
            f"{machine.threads} thread{'s' if machine.threads != 1 else ''} of ONNX Runtime; "
            f"Linux {machine.kernel}, glibc {machine.glibc}"
        )
    if (device := report.device) is not None:
        yield (
            f"CUDA  {device.name}, compute {device.compute}; driver {device.driver} for CUDA "
            f"{device.driver_cuda}; CUDA run time {device.runtime_cuda}"
        )
    if report.options:
        yield f"      {', '.join(f'{key}={value}' for key, value in report.options.items())}"
    if (nodes := report.nodes) is not None:
        on_cpu = f" ({', '.join(nodes.cpu_operators)})" if nodes.cpu_operators else ""
        yield f"      {nodes.cuda} of {nodes.total} nodes on CUDA, {nodes.cpu} on the CPU{on_cpu}"
    for session in report.sessions:
        memory = f", {session.memory_bytes / 2**20:.0f} MiB of the GPU" if session.memory_bytes else ""
        where = "CPU" if session.provider == "cpu" else "CUDA, TF32" if session.tf32 else "CUDA"
        yield f"      session on {where}: {session.seconds:.2f} s{memory}"


def _row(point: BenchPoint) -> tuple[str, ...]:
    tensors = "" if point.provider == "cpu" else "on the GPU" if point.binding else "copied"
    return (
        point.shape,
        name_of(point),
        tensors,
        str(point.concurrency),
        f"{point.first_ms:.1f}" if point.first_ms is not None else "",
        f"{point.p50_ms:.3f}",
        f"{point.p95_ms:.3f}",
        f"{point.p99_ms:.3f}",
        f"{point.per_second:.0f}",
        f"{round(100 * point.idle_share)} %" if point.idle_share is not None else "",
    )


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Words to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
