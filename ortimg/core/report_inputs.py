"""Where each input came from and how old it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from ortimg.core.report_facts import Held, InputFact
from ortimg.core.report_words import aged, amount, counted


class InputRow(msgspec.Struct, frozen=True, kw_only=True):
    """One input."""

    kind: str
    name: str
    pinned: str  # origins that the lock has a hash for
    used: str  # origins in the images that are there
    cached: str  # origin, size and age in the cache
    upstream: str  # when upstream last changed it
    cells: str


def input_row(fact: InputFact, origins: Mapping[str, Mapping[str, str]], now: datetime) -> InputRow:
    """`origins`: of the images that are there, by identifier."""
    used = sorted(
        {
            origins[identifier][fact.part]
            for identifier in fact.cells
            if fact.part is not None and fact.part in origins.get(identifier, {})
        }
    )
    return InputRow(
        kind=fact.kind,
        name=fact.name,
        pinned=", ".join(fact.pins) or "unresolved",
        used=", ".join(used) or "not built here",
        cached=_cached(fact, now),
        upstream=aged(fact.upstream, now) if fact.upstream else "not known",
        cells=counted(len(fact.cells), "cell"),
    )


def _cached(fact: InputFact, now: datetime) -> str:
    if not fact.held:
        return "not in the cache"
    if fact.files > 1:
        return f"{len(fact.held)} of {fact.files} files, {_together(fact.held, now)}"
    return "; ".join(f"{held.origin}, {_together([held], now)}" for held in fact.held)


def _together(held: Sequence[Held], now: datetime) -> str:
    size = amount(sum(row.size for row in held))
    times = [row.since for row in held if row.since is not None]
    return f"{size}, since {aged(min(times), now)}" if times else size
