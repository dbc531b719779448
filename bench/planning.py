"""What planning costs, as ratios of one run: `ortimg list` against the bare interpreter, and a large matrix.

    python bench/planning.py [repeats]

Times on shared machines move a lot: the fastest of several runs counts, and the two sides take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ortimg.core.catalogue import Index
from ortimg.core.cells import try_plan
from ortimg.core.config import read_config
from ortimg.core.drivers import Driver, Drivers
from ortimg.core.fit import fit
from ortimg.core.fit_cells import every_cell
from ortimg.core.fit_rules import Host
from ortimg.core.gpu_names import GpuNames
from ortimg.core.rules import Rules
from ortimg.data import read_catalogue, read_host_facts

ROOT = Path(__file__).parent.parent
COMBINATIONS = 10_000
LIMIT = 0.25  # seconds that `ortimg list` may take beyond the interpreter's own start


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def process(cache: str, *arguments: str) -> Callable[[], object]:
    """A run of the interpreter with byte code written, as in an installed package."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)


def large_config(count: int) -> str:
    """images.yaml with about `count` combinations, which exist only in part."""
    catalogue = read_catalogue()
    versions = sorted({row.version for row in catalogue.releases if row.needed and row.cudnn_major == 8})
    bases = [row.name for row in catalogue.bases if row.glibc]
    # CUDA versions that nobody has: each of their combinations is refused, with the nearest cell.
    more = count // (len(versions) * len(bases)) - 2
    cudas = ["11.8", "12.2", *(f"12.{minor}" for minor in range(100, 100 + more))]
    ort, cuda, base = (", ".join(f'"{value}"' for value in values) for values in (versions, cudas, bases))
    return f"repository: x\nmatrix:\n  ort: [{ort}]\n  cuda: [{cuda}]\n  cudnn: ['8']\n  base: [{base}]\n"


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as cache:
        bare, listing = process(cache, "-c", "pass"), process(cache, "-m", "ortimg", "list")
        listing()  # writes the byte code
        pairs = [(seconds(bare), seconds(listing)) for _ in range(repeats)]
    fast_bare, fast_list = (min(column) for column in zip(*pairs, strict=True))
    catalogue = read_catalogue()
    config, problems = read_config(large_config(COMBINATIONS), "images.yaml")
    assert config is not None and not problems
    planned, _ = try_plan(config, catalogue)
    count = len(planned.cells) + len(planned.excluded)
    facts = read_host_facts()
    drivers, gpu = Drivers(facts.drivers), GpuNames(facts).find("RTX 4090")
    host = Host(driver=Driver("470.82.01"), gpus=(gpu,))
    every = every_cell(Index(catalogue), Rules(Index(catalogue)))
    cells = [*every, *(every * (COMBINATIONS // len(every) + 1))][:COMBINATIONS]
    fast_plan = min(seconds(lambda: try_plan(config, catalogue)) for _ in range(repeats))
    fast_fit = min(seconds(lambda: fit(cells, host, drivers)) for _ in range(repeats))
    fast_facts = min(seconds(read_catalogue) for _ in range(repeats))
    beyond = fast_list - fast_bare
    print(f"python -c pass     {fast_bare:.3f} s")
    print(
        f"ortimg list        {fast_list:.3f} s  {fast_list / fast_bare:.1f} x bare, {beyond:.3f} s beyond it"
    )
    print(f"reading the facts  {fast_facts:.3f} s  {fast_facts / fast_bare:.1f} x bare")
    print(f"planning {count:,}     {fast_plan:.3f} s  {fast_plan / fast_bare:.1f} x bare")
    print(f"fitting {len(cells):,}      {fast_fit:.3f} s  {fast_fit / fast_bare:.1f} x bare")
    print(f"list beyond bare: {beyond / LIMIT:.0%} of the {LIMIT} s asked for")


if __name__ == "__main__":
    main()
