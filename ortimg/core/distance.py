"""How far apart two versions are, to name the nearest one that works."""

from __future__ import annotations

from functools import lru_cache

from packaging.version import InvalidVersion, Version


@lru_cache(maxsize=10_000)
def version_distance(wished: str, version: str) -> tuple[int, ...]:
    """How far apart two versions are: major, minor, patch; among as many minors apart, newer is nearer.

    Of another minor, the last patch is nearest: it has what was repaired. Of another major, the minor that is
    next to it.
    """
    try:
        a, b = Version(wished), Version(version)
    except InvalidVersion:
        return (0, 0, 0, 0)
    majors, minors = abs(a.major - b.major), abs(a.minor - b.minor)
    if majors:
        return (majors, -b.minor if b < a else b.minor, 0, -b.micro)
    if minors:
        return (0, minors, int(b < a), -b.micro)
    return (0, 0, int(b < a), abs(a.micro - b.micro))


def nearest_version(wished: str, versions: list[str]) -> str:
    """The version nearest to `wished`."""
    return min(versions, key=lambda version: version_distance(wished, version))
