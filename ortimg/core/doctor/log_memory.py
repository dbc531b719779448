"""How ONNX Runtime's memory arena grew, told from its log (severity 1, "info", or lower)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ortimg.core.doctor.findings import Found, ok, warn
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.options import size_words

# Texts of onnxruntime/core/framework/bfc_arena.cc
_MADE = re.compile(
    r"Creating (?:and using )?BFCArena for (?P<name>\S+) with following configs:"
    r".*?memory limit: (?P<limit>\d{1,20})"
    r".*?arena_extend_strategy: (?P<strategy>-?\d{1,20})"
)
_ASKED = re.compile(r"Extending (?:arena|BFCArena) for (?P<name>\S+?)\.? ")
_TOTAL = re.compile(r"Total allocated bytes: (?P<total>\d{1,20})")
_MARK = re.compile(r"Arena for|arena for|Total allocated bytes")
_UNLIMITED = 1 << 63


@dataclass
class Arena:
    """One arena of the log."""

    limit: int | None = None
    strategy: int | None = None
    totals: list[int] = field(default_factory=list)


class ArenaStory:
    """Reads a log piece by piece. The arenas of the GPU are told, that of the CPU is not."""

    def __init__(self) -> None:
        self._arenas: dict[str, Arena] = {}
        self._latest = ""

    def read(self, text: str) -> None:
        """A piece of the log, of whole lines."""
        if "Arena" not in text and "arena" not in text:
            return
        for mark in _MARK.finditer(text):
            start = text.rfind("\n", 0, mark.start()) + 1
            end = text.find("\n", mark.end())
            self._line(text[start : end if end >= 0 else len(text)])

    def _line(self, line: str) -> None:
        if made := _MADE.search(line):
            arena = self._arenas.setdefault(made["name"], Arena())
            arena.limit, arena.strategy = int(made["limit"]), int(made["strategy"])
        elif asked := _ASKED.search(line):
            self._latest = asked["name"]
        elif (total := _TOTAL.search(line)) and self._latest:
            self._arenas.setdefault(self._latest, Arena()).totals.append(int(total["total"]))

    def findings(self) -> list[Found]:
        return [
            _told(name, arena)
            for name, arena in self._arenas.items()
            if "Cuda" in name and len(arena.totals) > 0
        ]


def _told(name: str, arena: Arena) -> Found:
    steps = [
        later - before
        for before, later in zip([0, *arena.totals], arena.totals, strict=False)
        if later > before
    ]
    strategy = {
        0: "kNextPowerOfTwo, which doubles",
        -1: "kNextPowerOfTwo, which doubles",
        1: "kSameAsRequested",
    }
    how = strategy.get(
        arena.strategy if arena.strategy is not None else 9, "a strategy that the log does not tell"
    )
    limit = (
        "its limit is not told"
        if arena.limit is None
        else "no gpu_mem_limit"
        if arena.limit >= _UNLIMITED
        else f"gpu_mem_limit {size_words(arena.limit)}"
    )
    largest = size_words(max(steps)) if steps else "nothing"
    words = (
        f"the arena of {name} grew {len(arena.totals)} times to {size_words(max(arena.totals))}, the "
        "largest step was "
        f"{largest}; arena_extend_strategy is {how}; {limit}; an arena gives nothing back while its "
        "session lives"
    )
    if len(steps) < 3 and arena.strategy == 1:
        return ok(Check.MEMORY_GROWTH, words)
    return warn(Check.MEMORY_GROWTH, words)
