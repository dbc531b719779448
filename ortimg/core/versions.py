"""Versions compared as numbers: as text, 2.4 would be newer than 2.36."""

from __future__ import annotations

import re
from functools import lru_cache

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")


@lru_cache(maxsize=10_000)
def number(version: str) -> tuple[int, ...]:
    """`2.36` as (2, 36). Raises ValueError for anything but numbers and dots."""
    return tuple(int(part) for part in version.split("."))


def is_version(text: str) -> bool:
    """Whether `text` is numbers with dots between them."""
    return _VERSION.fullmatch(text) is not None


def at_least(have: str, need: str) -> bool:
    """Whether `have` is `need` or newer; a part that is left out counts as 0 (580 is 580.0.0)."""
    a, b = number(have), number(need)
    length = max(len(a), len(b))
    return a + (0,) * (length - len(a)) >= b + (0,) * (length - len(b))
