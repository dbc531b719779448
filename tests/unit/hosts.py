"""What the tests of `ortimg fit` share: the real facts about hosts."""

from __future__ import annotations

from wishes import INDEX, RULES

from ortimg.core.drivers import Driver, Drivers
from ortimg.core.fit import Answer, fit
from ortimg.core.fit_cells import every_cell
from ortimg.core.fit_rules import Host
from ortimg.core.gpu_names import GpuNames
from ortimg.core.model import Cell
from ortimg.data import read_host_facts

FACTS = read_host_facts()
DRIVERS = Drivers(FACTS.drivers)
NAMES = GpuNames(FACTS)
CELLS = every_cell(INDEX, RULES)


def host(driver: str | None = None, *gpus: str, glibc: str | None = None) -> Host:
    found = tuple(NAMES.find(gpu) for gpu in gpus)
    return Host(driver=Driver(driver), gpus=found, glibc=glibc, unpacked=glibc is not None)


def cell(ort: str, cuda: str, base: str = "debian12") -> Cell:
    return next(
        row for row in CELLS if (row.release.version, row.cuda_set.cuda, row.base.name) == (ort, cuda, base)
    )


def answer(one: Cell, machine: Host) -> Answer:
    (found,) = fit([one], machine, DRIVERS)
    return found
