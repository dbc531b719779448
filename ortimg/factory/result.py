"""What became of a cell, and of a whole build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from ortimg.errors import ExitCode

SCHEMA = 1


class Outcome(StrEnum):
    """What became of a cell."""

    BUILT = "built"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"  # an input cannot be reached, and that was allowed


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the summary and of `build --json`."""

    identifier: str
    result: Outcome
    image: str | None = None  # reference, where there is an image
    digest: str | None = None  # of its manifest; None: none, or the engine does not know it
    tier: str | None = None  # how far it was verified; "run" by a verdict that is kept of this digest
    seconds: float = 0.0  # of this cell's own build; units and inputs are shared
    verify_seconds: float | None = None  # part of it that the verifier took; None: nothing ran
    bytes_total: int | None = None  # unpacked
    bytes_own: int | None = None  # in layers that no other cell of this build has
    origins: Mapping[str, str] = {}
    cause: str | None = None
    environment: bool = False  # a failure of the machine, not of the image

    def as_data(self) -> dict[str, object]:
        """The stable JSON keys."""
        return {
            "identifier": self.identifier,
            "result": self.result.value,
            "tier": self.tier,
            "image": self.image,
            "digest": self.digest,
            "seconds": round(self.seconds, 2),
            "verify_seconds": None if self.verify_seconds is None else round(self.verify_seconds, 2),
            "bytes_total": self.bytes_total,
            "bytes_own": self.bytes_own,
            "origins": dict(self.origins) or {"ort": None, "cuda": None, "base": None},
            "cause": self.cause,
        }


def exit_code(results: Sequence[CellResult], interrupted: bool) -> ExitCode:
    """0 where nothing failed and at least one cell is there; an image's fault outranks the machine's."""
    if interrupted:
        return ExitCode.INTERRUPTED
    failed = [result for result in results if result.result is Outcome.FAILED]
    if any(not result.environment for result in failed):
        return ExitCode.FAILED
    if failed:
        return ExitCode.ENVIRONMENT
    if any(result.result in (Outcome.BUILT, Outcome.UNCHANGED) for result in results):
        return ExitCode.DONE
    return ExitCode.ENVIRONMENT
