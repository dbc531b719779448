"""What rendering costs: 1,000 cells, as a ratio to writing the same text to memory once.

python bench/rendering.py [repeats]
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import msgspec

from ortimg.core.render import render
from ortimg.project import load_project
from ortimg.sources import read_sources

CELLS = 1_000
LIMIT = 0.5  # seconds


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    project = load_project(Path(__file__).parent.parent)
    sources = read_sources()
    seeds = itertools.cycle(project.plan.cells)
    cells = [
        msgspec.structs.replace(
            cell, base=msgspec.structs.replace(cell.base, name=f"{cell.base.name}x{number}")
        )
        for number, cell in zip(range(CELLS), seeds, strict=False)
    ]
    render("warm-up", cells[:1], sources)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        files = render("onnxruntime-gpu", cells, sources)
        times.append(time.perf_counter() - began)
    best = min(times)
    size = sum(len(text) for text in files.values())
    print(f"rendering {CELLS} cells: {best:.3f} s, {best / LIMIT:.2f} of the {LIMIT} s asked for")
    print(f"  {len(files)} files, {size / 1e6:.1f} MB of text; fastest of {repeats} runs")


if __name__ == "__main__":
    main()
