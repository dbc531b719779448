"""A second repository of a registry that has every layer already: `ortimg push` against `docker push`."""

from __future__ import annotations

import msgspec

from bench.noise import Stopwatch, Timing
from bench.ours import REPOSITORY, Place


class Second(msgspec.Struct, frozen=True, kw_only=True):
    """Whole commands, one cell each."""

    ortimg: Timing
    docker: Timing


def run(own: Place, cell: str) -> Second:
    """The engine's image after the first push, as it is."""
    with Stopwatch() as ours:
        own.push("second", [cell])
    target = f"{own.registry.host}/third/{REPOSITORY}:{cell}"
    own.engine.docker("tag", f"{REPOSITORY}:{cell}", target)
    with Stopwatch() as theirs:
        own.engine.docker("push", "--quiet", target)
    return Second(ortimg=ours.timing, docker=theirs.timing)
