"""Answers of the engine that come as a stream of JSON lines, with 200 at their head whatever comes after.

https://docs.docker.com/reference/api/engine/version/v1.45/#tag/Image/operation/ImageCreate
"""

from __future__ import annotations

import json

from ortimg.errors import EnvironmentFault


def require_success(text: str, what: str) -> None:
    """Raises EnvironmentFault where the stream holds an error, or ends in the middle of a line.

    `what`: the work that was asked for, for people: "import base.tar". Only the field `error` is an error: a
    status may well speak of one.
    """
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise EnvironmentFault(
                f"the engine broke off: {what}: {line[:100]!r}", "see its log, then run the same again"
            ) from None
        if not isinstance(row, dict):
            continue
        detail = row.get("errorDetail")
        words = detail.get("message") if isinstance(detail, dict) else None
        if words or row.get("error"):
            raise EnvironmentFault(f"the engine refused: {what}: {words or row['error']}", "see its log")
