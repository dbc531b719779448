"""What a driver can run: facts of drivers.yaml, looked up.

A driver runs every CUDA that is older than itself. Within one CUDA major it also runs newer ones, from a
lowest driver on ("minor-version compatibility"), as long as it need not compile PTX: that takes a driver as
new as the toolkit that made the PTX.
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from ortimg.core.gpu import Capability
from ortimg.core.host_facts import ArchitectureRow, DriverFacts
from ortimg.core.model import GpuArchitectures
from ortimg.core.versions import at_least, number

_DRIVER = re.compile(r"[0-9]{3,4}(?:\.[0-9]+){0,2}")
_CUDA = re.compile(r"[1-9][0-9]?(?:\.[0-9]{1,2}){0,2}")


class Runs(StrEnum):
    """How a driver stands to a CUDA version."""

    FULLY = "fully"
    BY_MINOR_VERSION = "minor-version"  # by minor-version compatibility: no PTX of that CUDA
    NOT = "not"
    UNKNOWN = "unknown"


class Driver(NamedTuple):
    """What is known of a host's driver: its own version, or only the newest CUDA that it says it runs."""

    version: str | None  # "470.82.01"
    cuda: str | None = None  # of cuDriverGetVersion: "11.4"

    @property
    def told(self) -> bool:
        return self.version is not None or self.cuda is not None

    def __str__(self) -> str:
        return f"driver {self.version}" if self.version else f"a driver for CUDA {self.cuda}"


def is_driver(text: str) -> bool:
    """Whether `text` is written like a Linux driver: `535`, `535.54`, `535.104.05`."""
    return _DRIVER.fullmatch(text) is not None


def looks_like_cuda(text: str) -> bool:
    """Whether `text` is rather the CUDA version that nvidia-smi prints beside the driver: `12.4`."""
    return _CUDA.fullmatch(text) is not None


class Drivers:
    """Look-ups in drivers.yaml."""

    def __init__(self, facts: DriverFacts) -> None:
        self._facts = facts
        self._architectures = {text: row for row in facts.architectures for text in row.capabilities}

    def lowest(self, cuda: str) -> str | None:
        """Lowest driver for a CUDA version, minor-version compatibility included; None: not known."""
        return self._facts.minor_version_compatibility.get(cuda.partition(".")[0])

    def own(self, cuda: str) -> str | None:
        """The driver that came with a CUDA version (point releases count as their minor); None: not known."""
        return self._facts.toolkits.get(minor_of(cuda))

    def runs(self, driver: Driver, cuda: str) -> Runs:
        """Whether the driver runs programs of this CUDA version."""
        if driver.version is None:
            if driver.cuda is None:
                return Runs.UNKNOWN
            return _by_cuda(driver.cuda, minor_of(cuda))
        lowest, own = self.lowest(cuda), self.own(cuda)
        if own is not None and at_least(driver.version, own):
            return Runs.FULLY
        if lowest is None:
            return Runs.UNKNOWN
        if not at_least(driver.version, lowest):
            return Runs.NOT
        return Runs.BY_MINOR_VERSION

    def ptx_cuda(self, code: GpuArchitectures, made_with: str | None) -> str | None:
        """CUDA version whose driver can compile the PTX in `code`: by its language, else by its toolkit."""
        if code.ptx_isa is not None and code.ptx_isa in self._facts.ptx_isa:
            return self._facts.ptx_isa[code.ptx_isa]
        return made_with

    def compiles(self, driver: Driver, cuda: str) -> bool | None:
        """Whether the driver compiles PTX of this CUDA version; None: not known."""
        if driver.version is None:
            return None if driver.cuda is None else at_least(driver.cuda, minor_of(cuda))
        own = self.own(cuda)
        return None if own is None else at_least(driver.version, own)

    def architecture(self, capability: Capability) -> ArchitectureRow | None:
        """What GPUs of this capability ask of a driver."""
        return self._architectures.get(str(capability))

    def too_old_for(self, driver: Driver, capability: Capability) -> str | None:
        """The driver that GPUs of this capability need at least, if this one is older."""
        row = self.architecture(capability)
        if row is None or row.first_cuda is None:
            return None
        own = self.own(row.first_cuda)
        if driver.version is None:
            old = driver.cuda is not None and not at_least(driver.cuda, row.first_cuda)
        else:
            old = own is not None and not at_least(driver.version, own)
        return (own or f"of CUDA {row.first_cuda}") if old else None

    def too_new_for(self, driver: Driver, capability: Capability) -> int | None:
        """The last driver branch for GPUs of this capability, if this driver is of a later one."""
        row = self.architecture(capability)
        if row is None or row.last_branch is None or driver.version is None:
            return None
        return row.last_branch if number(driver.version)[0] > row.last_branch else None


def minor_of(cuda: str) -> str:
    """`12.2.2` as `12.2`."""
    return ".".join(cuda.split(".")[:2])


def _by_cuda(have: str, need: str) -> Runs:
    if at_least(have, need):
        return Runs.FULLY
    same_major = have.partition(".")[0] == need.partition(".")[0]
    return Runs.BY_MINOR_VERSION if same_major else Runs.NOT
