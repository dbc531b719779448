"""A result as a picture: every ratio as a bar with its goal, each on a scale of its own.

The same result gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from bench.result import Ratio, Result
from bench.words import amount, factor, goal

_GOOD, _BAD, _PLAIN, _AGAINST = "#2a7f4f", "#b3402a", "#4a6fa5", "#d7dbe2"


def write_plot(result: Result, path: Path) -> None:
    """Write an SVG. Raises ImportError without matplotlib (`pip install matplotlib`)."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "ortimg"
    matplotlib.rcParams["svg.fonttype"] = "path"
    rows = [row for row in result.ratios if row.against > 0]
    figure = Figure(figsize=(9, 1.4 + 0.62 * max(len(rows), 1)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        share = row.ours / row.against
        whole = 1 / max(share, 1.0)
        axes.barh(place, whole, height=0.62, color=_AGAINST)
        axes.barh(place, whole * share, height=0.36, color=_colour(row))
        if row.goal is not None:
            mark = whole * (1 / row.goal if row.of == "against / ours" else row.goal)
            axes.plot([mark, mark], [place - 0.34, place + 0.34], color="black", linewidth=1.4)
        axes.text(0.01, place - 0.36, _label(row), fontsize=7.5, va="bottom")
    axes.set_ylim(len(rows) - 0.4, -0.8)
    axes.set_xlim(0, 1.01)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("coloured: ortimg; grey: what it is held against; black line: the goal")
    machine = result.machine
    axes.set_title(
        f"make bench, {result.date[:10]}: {len(result.cells)} cells, {machine.cores} cores of {machine.cpu}",
        fontsize=9,
    )
    figure.savefig(path, metadata={"Date": None})


def _label(row: Ratio) -> str:
    both = f"{amount(row.ours, row.unit)} against {amount(row.against, row.unit)}"
    noise = ", others used the machine" if row.noisy else ""
    wanted = "" if row.goal is None else f", goal {goal(row)}"
    return f"{row.title.replace('`', '')}: {both}: {factor(row)}{wanted}{noise}"


def _colour(row: Ratio) -> str:
    return _PLAIN if row.met is None else _GOOD if row.met else _BAD
