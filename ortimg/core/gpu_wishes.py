"""GPUs that images.yaml names: cells that do not run on one of them as they should are warned of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ortimg.core.config import Wish
from ortimg.core.drivers import Drivers
from ortimg.core.fit import loaded
from ortimg.core.fit_rules import Host, Verdict, findings
from ortimg.core.gpu_names import Gpu, GpuNames
from ortimg.core.model import Cell
from ortimg.core.problems import Problem
from ortimg.errors import ConfigError

_WORDS = {
    Verdict.REFUSED: "does not run",
    Verdict.UNKNOWN: "may not run",
    Verdict.JIT: "starts slowly the first time",
}


def read_gpus(wishes: Iterable[Wish], names: GpuNames) -> tuple[tuple[Gpu, ...], list[Problem]]:
    """The GPUs that are meant, and what nobody knows."""
    gpus: list[Gpu] = []
    problems: list[Problem] = []
    for wish in wishes:
        try:
            gpus.append(names.find(wish.value))
        except ConfigError as error:
            text = f'{error.message}; a compute capability such as "8.9" does as well'
            problems.append(Problem(wish.line, wish.path, text))
    return tuple(gpus), problems


def gpu_warnings(cells: Sequence[Cell], gpus: Sequence[Gpu], drivers: Drivers) -> dict[str, tuple[str, ...]]:
    """Warnings, each with the identifiers of the cells that it is about."""
    found: dict[str, tuple[str, ...]] = {}
    known: dict[tuple[str, str, bool, Gpu], tuple[str, ...]] = {}
    for cell in cells:
        for gpu in gpus:
            key = (cell.release.key, cell.cuda_set.key, cell.flavour.python is not None, gpu)
            if key not in known:
                known[key] = _warnings(cell, gpu, drivers)
            for text in known[key]:
                found[text] = (*found.get(text, ()), cell.identifier)
    return found


def _warnings(cell: Cell, gpu: Gpu, drivers: Drivers) -> tuple[str, ...]:
    told = findings(loaded(cell), cell.cuda_set, Host(gpus=(gpu,)), drivers)
    worst = next((verdict for verdict in _WORDS if any(row.verdict is verdict for row in told)), None)
    if worst is None:
        return ()
    return tuple(f"{_WORDS[worst]} on {gpu}: {row.text}" for row in told if row.verdict is worst)
