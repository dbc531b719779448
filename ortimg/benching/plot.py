"""A measurement as a picture: P50, P95 and P99 of every way to run the model."""

from __future__ import annotations

from pathlib import Path

from ortimg.benching.words import name_of
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.verify.bench_report import BenchPoint, BenchReport

FORMATS = (".svg", ".png")


def check_plot(path: Path) -> None:
    """Can it be written at all? To be asked before hours are spent on measuring.

    Raises ConfigError for another kind of file or an absent folder, EnvironmentFault without matplotlib.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"{path}: a plot is an .svg or a .png file", hint="Give --plot such a name.")
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="Make it, or give --plot another place.")
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise EnvironmentFault("--plot needs matplotlib", "run `pip install matplotlib`")


def write_plot(report: BenchReport, path: Path) -> None:
    """Write `path`. The same report gives the same bytes of an SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "ortimg"
    points = report.points
    figure = Figure(figsize=(9, 1.2 + 0.42 * max(len(points), 1)), layout="constrained")
    axes = figure.subplots()
    rows = range(len(points))
    for percentile, colour in (("p99_ms", "#c6dbef"), ("p95_ms", "#6baed6"), ("p50_ms", "#08519c")):
        values = [getattr(point, percentile) for point in points]
        axes.barh(rows, values, color=colour, label=percentile[:3].upper())
    axes.set_yticks(rows, [_label(point) for point in points])
    axes.invert_yaxis()
    times = [time for point in points for time in (point.p50_ms, point.p99_ms) if time > 0]
    if times and max(times) > 20 * min(times):
        axes.set_xscale("log")
    axes.set_xlabel("ms of one run")
    axes.set_title(f"{report.model}, ONNX Runtime {report.ort or 'unknown'}, {_where(report)}", fontsize=10)
    axes.legend()
    is_svg = path.suffix.lower() == ".svg"
    figure.savefig(path, dpi=120, metadata={"Date": None} if is_svg else None)


def _label(point: BenchPoint) -> str:
    tensors = "" if point.provider == "cpu" else ", on the GPU" if point.binding else ", copied"
    threads = f", {point.concurrency} threads" if point.concurrency > 1 else ""
    return f"{point.shape}: {name_of(point)}{tensors}{threads}"


def _where(report: BenchReport) -> str:
    if report.device is not None and report.device.name:
        return report.device.name
    return (report.machine.cpu if report.machine else None) or "unknown machine"
