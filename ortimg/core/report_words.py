"""Sizes, times and ages in words."""

from __future__ import annotations

from datetime import datetime

_UNITS = ("B", "kB", "MB", "GB", "TB")


def amount(size: int) -> str:
    """Bytes for people, in powers of 1000 with three digits: `1.92 GB`, `94.0 MB`, `0 B`."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{size} B"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def day(when: datetime) -> str:
    """`2026-12-01`."""
    return when.strftime("%Y-%m-%d")


def age(when: datetime, now: datetime) -> str:
    """Whole days between: `today`, `1 day`, `12 days`; a time that is yet to come is told as such."""
    days = (now.date() - when.date()).days
    if days < 0:
        return "dated in the future"
    return "today" if days == 0 else "1 day" if days == 1 else f"{days} days"


def aged(when: datetime, now: datetime) -> str:
    """`2026-12-01 (12 days)`."""
    return f"{day(when)} ({age(when, now)})"


def milliseconds(value: float) -> str:
    """`0.166`, `12.3`, `1,250`."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 image`, `12 images`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
