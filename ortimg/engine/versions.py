"""What engine and buildx are asked for, and how their versions are read."""

from __future__ import annotations

import re

MIN_ENGINE = (25, 0)
MIN_BUILDX = (0, 13)
MIN_BUILDKIT = (0, 12)  # of a builder that is not the engine's own; Engine 25 has 0.12 inside
WHY = "heredocs, COPY --link, ADD --checksum and named contexts need it"

Version = tuple[int, ...]


def parse_version(text: str) -> Version | None:
    """The first version number in `text`: `v0.13.1+ds1` is (0, 13, 1). None where there is none."""
    match = re.search(r"(?<![\d.])v?(\d+(?:\.\d+)+)", text)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def at_least(text: str | None, minimum: Version) -> bool:
    """Whether `text` holds a version that is `minimum` or newer."""
    version = parse_version(text or "")
    return version is not None and version >= minimum


def dotted(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version)) if version[1:] != (0,) else str(version[0])
