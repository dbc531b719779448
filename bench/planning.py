"""What planning costs: starting the command, 10,000 combinations, rendering 1,000 cells.

Times on shared machines move a lot: the fastest of several runs counts, and the two sides take turns.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import msgspec

from bench import ROOT
from bench.noise import Stopwatch, Timing
from ortimg.core.catalogue import Index
from ortimg.core.cells import try_plan
from ortimg.core.config import Config, read_config
from ortimg.core.drivers import Driver, Drivers
from ortimg.core.fit import fit
from ortimg.core.fit_cells import every_cell
from ortimg.core.fit_rules import Host
from ortimg.core.gpu_names import GpuNames
from ortimg.core.render import render
from ortimg.core.rules import Rules
from ortimg.data import read_catalogue, read_host_facts
from ortimg.errors import ConfigError
from ortimg.project import load_project
from ortimg.sources import read_sources

COMBINATIONS = 10_000
CELLS = 1_000  # rendered


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, each the fastest of several runs."""

    bare: float  # python -c pass
    help: float  # ortimg --help
    list: float  # ortimg list
    facts: float  # reading the catalogue
    plan: float  # COMBINATIONS
    fit: float  # COMBINATIONS
    render: float  # CELLS
    repeats: int
    timing: Timing  # of the whole part


def run(repeats: int = 10) -> Planning:
    """Nothing but Python: no engine, no network."""
    with Stopwatch() as whole:
        with tempfile.TemporaryDirectory() as cache:
            runs = [
                _process(cache, *words)
                for words in (("-c", "pass"), ("-m", "ortimg", "--help"), ("-m", "ortimg", "list"))
            ]
            for one in runs:
                one()  # writes the byte code
            turns = [[_seconds(one) for one in runs] for _ in range(repeats)]
        bare, helped, listed = (min(column) for column in zip(*turns, strict=True))
        facts = _fastest(read_catalogue.__wrapped__, repeats)  # kept after the first time
        plan = _planning(repeats)
        fitted = _fitting(repeats)
        rendered = _rendering(max(repeats // 2, 1))
    return Planning(
        bare=round(bare, 4),
        help=round(helped, 4),
        list=round(listed, 4),
        facts=round(facts, 4),
        plan=round(plan, 4),
        fit=round(fitted, 4),
        render=round(rendered, 4),
        repeats=repeats,
        timing=whole.timing,
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _fastest(work: Callable[[], object], repeats: int) -> float:
    return min(_seconds(work) for _ in range(repeats))


def _process(cache: str, *arguments: str) -> Callable[[], object]:
    """A run of the interpreter with byte code written, as in an installed package."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    return lambda: subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)


def large_config(count: int) -> Config:
    """images.yaml with about `count` combinations, which exist only in part. Raises ConfigError."""
    catalogue = read_catalogue()
    versions = sorted({row.version for row in catalogue.releases if row.needed and row.cudnn_major == 8})
    bases = [row.name for row in catalogue.bases if row.glibc]
    # CUDA versions that nobody has: each of their combinations is refused, with the nearest cell.
    more = count // (len(versions) * len(bases)) - 2
    cudas = ["11.8", "12.2", *(f"12.{minor}" for minor in range(100, 100 + more))]
    ort, cuda, base = (", ".join(f'"{value}"' for value in values) for values in (versions, cudas, bases))
    text = f"repository: x\nmatrix:\n  ort: [{ort}]\n  cuda: [{cuda}]\n  cudnn: ['8']\n  base: [{base}]\n"
    config, problems = read_config(text, "images.yaml")
    if config is None or problems:
        raise ConfigError(f"the large images.yaml is not accepted: {problems}", hint="Correct the bench.")
    return config


def _planning(repeats: int) -> float:
    catalogue, config = read_catalogue(), large_config(COMBINATIONS)
    return _fastest(lambda: try_plan(config, catalogue), repeats)


def _fitting(repeats: int) -> float:
    catalogue, facts = read_catalogue(), read_host_facts()
    drivers, gpu = Drivers(facts.drivers), GpuNames(facts).find("RTX 4090")
    host = Host(driver=Driver("470.82.01"), gpus=(gpu,))
    index = Index(catalogue)
    cells = list(itertools.islice(itertools.cycle(every_cell(index, Rules(index))), COMBINATIONS))
    return _fastest(lambda: fit(cells, host, drivers), repeats)


def _rendering(repeats: int) -> float:
    project, sources = load_project(ROOT), read_sources()
    seeds = itertools.islice(itertools.cycle(project.plan.cells), CELLS)
    cells = [
        msgspec.structs.replace(
            cell, base=msgspec.structs.replace(cell.base, name=f"{cell.base.name}x{number}")
        )
        for number, cell in enumerate(seeds)
    ]
    render("warm-up", cells[:1], sources)
    return _fastest(lambda: render("onnxruntime-gpu", cells, sources), repeats)
