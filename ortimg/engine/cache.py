"""The builder's cache: what it holds, and giving back what is ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ortimg.engine.client import Engine


@dataclass(frozen=True)
class CacheRecord:
    """One record of the builder's cache."""

    id: str
    kind: str  # regular, source.local, exec.cachemount, …
    description: str  # the step that made it, "[ort 1/1] COPY …", or "local source for <context>"
    size: int  # bytes, the packed form included
    in_use: bool
    shared: bool  # an image holds it too


def cache_records(engine: Engine) -> tuple[CacheRecord, ...]:
    """All records of the builder's cache, whoever made them."""
    return tuple(
        CacheRecord(
            id=row["ID"],
            kind=row.get("Type") or "",
            description=row.get("Description") or "",
            size=int(row.get("Size") or 0),
            in_use=bool(row.get("InUse")),
            shared=bool(row.get("Shared")),
        )
        for row in engine.build_cache()
    )


def prune_cache(engine: Engine, ours: Callable[[CacheRecord], bool]) -> int:
    """Removes the records that `ours` picks and that nothing needs; gives the bytes freed.

    The engine keeps a record while another stands on it, so it is asked until a round frees nothing.
    """
    freed = 0
    while True:
        removed = 0
        for record in cache_records(engine):
            if ours(record) and not record.in_use:
                count, size = engine.prune_record(record.id)
                removed += count
                freed += size
        if not removed:
            return freed
