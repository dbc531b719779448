"""Seconds of a part, and who else used the machine meanwhile.

Everything that a run starts is in one control group, containers too, so that its processor time can be told
from that of others. The disk is not watched: somebody else's writing is seen only in the load average.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

GROUP = "ortimg-bench"
_CGROUP = Path("/sys/fs/cgroup")
_NOISY = 0.10  # of all processors' time, used by others


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a part took, and how quiet the machine was. Shares are of all processors' time."""

    began: str  # UTC
    seconds: float
    load_before: float  # the load average of one minute
    load_after: float
    own_cpu: float | None  # None: no control group could be made
    foreign_cpu: float | None

    @property
    def noisy(self) -> bool:
        """Others used so much that the seconds say little; unknown counts as noisy."""
        return self.foreign_cpu is None or self.foreign_cpu > _NOISY


class Stopwatch:
    """`with Stopwatch() as watch: …`, then `watch.timing`."""

    timing: Timing

    def __enter__(self) -> Stopwatch:
        self._began = datetime.now(UTC)
        self._load = os.getloadavg()[0]
        self._own, self._busy = own_seconds(), busy_seconds()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        own, busy = own_seconds(), busy_seconds()
        whole = max(seconds * (os.cpu_count() or 1), 1e-9)
        mine = None if own is None or self._own is None else own - self._own
        self.timing = Timing(
            began=self._began.strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=round(seconds, 3),
            load_before=round(self._load, 2),
            load_after=round(os.getloadavg()[0], 2),
            own_cpu=None if mine is None else round(mine / whole, 3),
            foreign_cpu=None if mine is None else round(max(busy - self._busy - mine, 0.0) / whole, 3),
        )


def join_group() -> None:
    """Put this process, and so all that it starts, into the control group. Nothing where that cannot be."""
    # Version 2 wants processes in leaves only, and containers get groups of their own beside this one.
    folder = _group() if _is_first_version() else _group() / "bench"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return


def end_leftovers() -> None:
    """End what a run that was killed has left: the processes of the control group, by their numbers."""
    for file in _group().rglob("cgroup.procs"):
        with suppress(OSError):
            for pid in map(int, file.read_text().split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def own_seconds() -> float | None:
    """Processor time of the control group so far."""
    try:
        if _is_first_version():
            return int((_group() / "cpuacct.usage").read_text()) / 1e9
        lines = (_group() / "cpu.stat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith("usage_usec")), None)


def _is_first_version() -> bool:
    return (_CGROUP / "cpuacct").is_dir()


def _group() -> Path:
    return _CGROUP / "cpuacct" / GROUP if _is_first_version() else _CGROUP / GROUP


def busy_seconds() -> float:
    """Processor time of everybody since the machine started: all but idle and waiting for the disk."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _wait, interrupt, soft, _stolen = fields
    return (user + nice + system + interrupt + soft) / os.sysconf("SC_CLK_TCK")
