"""NVIDIA_REQUIRE_CUDA: what an image asks of the driver before NVIDIA's toolkit starts it.

Words are alternatives, commas within a word mean "and":
`cuda>=12.8 brand=tesla,driver>=470,driver<471`
https://github.com/NVIDIA/nvidia-container-runtime#nvidia_require_cuda
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator

from ortimg.core.doctor.facts import Snapshot
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.names import Check
from ortimg.core.drivers import Driver, Drivers
from ortimg.core.host_facts import DriverFacts
from ortimg.core.versions import at_least, is_version, number

_TERM = re.compile(r"(?P<what>[a-z]+)(?P<sign>>=|<=|!=|=|<|>)(?P<value>[A-Za-z0-9.]+)")
_SIGNS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def check_require(snapshot: Snapshot, drivers: Drivers, facts: DriverFacts) -> Iterator[Found]:
    """Each NVIDIA_REQUIRE_* of the environment against the driver that is known."""
    environment = snapshot.environment or {}
    off = environment.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true")
    driver = snapshot.machine.driver
    for name, value in environment.items():
        if not name.startswith("NVIDIA_REQUIRE_") or not value.strip():
            continue
        short = value if len(value) <= 120 else value[:117] + "..."
        if off:
            yield ok(Check.DRIVER_REQUIRE, f"{name}={short} is switched off by NVIDIA_DISABLE_REQUIRE")
            continue
        if not driver.told:
            yield ok(Check.DRIVER_REQUIRE, f"{name}={short}; no driver here to ask, name one with --driver")
            continue
        have = driver.cuda or newest_cuda(driver, facts)
        answers = [_alternative(word, driver, have) for word in value.split()]
        newest = f", which runs CUDA up to {have}" if have else ""
        if True in answers:
            yield ok(Check.DRIVER_REQUIRE, f"{driver}{newest} meets {name}={short}")
        elif None in answers:
            yield warn(
                Check.DRIVER_REQUIRE,
                f"whether {driver}{newest} meets {name}={short} depends on the GPU's brand",
            )
        else:
            yield fail(
                Check.DRIVER_REQUIRE,
                f"{driver}{newest} does not meet {name}={short}: the container is not started",
                _cure(value, driver, drivers),
                machine=True,
            )


def newest_cuda(driver: Driver, facts: DriverFacts) -> str | None:
    """The newest CUDA whose own driver is not newer than this one."""
    if driver.version is None:
        return driver.cuda
    known = [cuda for cuda, own in facts.toolkits.items() if at_least(driver.version, own)]
    return max(known, key=number, default=None)


def _alternative(word: str, driver: Driver, cuda: str | None) -> bool | None:
    """None: it depends on something that is not known here, such as the GPU's brand."""
    unknown = False
    for term in word.split(","):
        match = _TERM.fullmatch(term)
        have = {"cuda": cuda, "driver": driver.version}.get(match["what"]) if match else None
        if match is None or have is None or not is_version(match["value"]):
            unknown = True
            continue
        wanted = number(match["value"])
        length = len(wanted)
        if not _SIGNS[match["sign"]]((*number(have), 0, 0)[:length], wanted):
            return False
    return None if unknown else True


def _cure(value: str, driver: Driver, drivers: Drivers) -> str:
    match = re.search(r"cuda>=([0-9]+(?:\.[0-9]+)*)", value)
    cure = "update the driver, or take an image with an older CUDA"
    if match and driver.version:
        lowest = drivers.lowest(match[1])
        if lowest and number(driver.version) >= number(lowest):
            cure += (
                f"; within CUDA {match[1].partition('.')[0]} drivers from {lowest} on run all but PTX, so "
                "NVIDIA_DISABLE_REQUIRE=1 may do"
            )
    return cure
