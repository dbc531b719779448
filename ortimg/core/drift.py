"""Generated files against what lies on the disk: stale, missing, orphan, as one unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import msgspec


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that differ from what would be generated."""

    stale: tuple[str, ...]  # there, with another text
    missing: tuple[str, ...]  # not there
    orphan: tuple[str, ...]  # there, but nothing generates it

    def __bool__(self) -> bool:
        return bool(self.stale or self.missing or self.orphan)


def find_drift(wanted: Mapping[str, str], present: Mapping[str, str]) -> Drift:
    """Compare path → text of what is wanted and of what is present."""
    return Drift(
        stale=tuple(sorted(p for p in wanted.keys() & present.keys() if wanted[p] != present[p])),
        missing=tuple(sorted(wanted.keys() - present.keys())),
        orphan=tuple(sorted(present.keys() - wanted.keys())),
    )


def unified_diff(drift: Drift, wanted: Mapping[str, str], present: Mapping[str, str]) -> str:
    """The change that `ortimg render` would make, as a patch."""
    parts: list[str] = []
    for path in sorted((*drift.stale, *drift.missing, *drift.orphan)):
        parts.extend(
            difflib.unified_diff(
                present.get(path, "").splitlines(keepends=True),
                wanted.get(path, "").splitlines(keepends=True),
                f"a/{path}" if path in present else "/dev/null",
                f"b/{path}" if path in wanted else "/dev/null",
            )
        )
    return "".join(parts)
