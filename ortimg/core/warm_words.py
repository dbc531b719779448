"""What `ortimg warm` tells: words for people, data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec

from ortimg.core.warm import Warmed, invalidated_by
from ortimg.core.warm_host import Expectation, Finding
from ortimg.core.warm_record import Use, Warmth

SCHEMA = 1  # of the JSON; more keys may come, none goes
SLOW = 1.3  # a first run with the baked cache against one of a second start: above, something is odd


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a warm-up came to."""

    target: str
    expected: Expectation | None = None  # the catalogue's word, where nothing was run
    warmth: Warmth | None = None
    record: str | None = None  # folder
    made: Warmed | None = None

    @property
    def gained(self) -> bool:
        """Is there anything to gain on this GPU?"""
        if self.warmth is None:
            return not (self.expected and self.expected.native)
        return not self.warmth.native


def as_data(outcome: Outcome) -> dict[str, Any]:
    """The JSON of `ortimg warm`."""
    data: dict[str, Any] = {"schema": SCHEMA, "target": outcome.target, "gained": outcome.gained}
    data["reason"] = None if outcome.gained else _why_nothing(outcome)
    warmth, made = outcome.warmth, outcome.made
    if warmth is not None:
        data |= {
            "identifier": warmth.identifier,
            "gpu": msgspec.to_builtins(warmth.gpu),
            "ort_sha256": warmth.ort_sha256,
            "model": warmth.model,
            "date": warmth.date,
            "first_run_seconds": {
                "cold": [*warmth.cold],
                "second": [*warmth.second],
                "baked": [*warmth.baked],
                "copied": [*warmth.copied],
                "read_only": [*warmth.read_only],
            },
            "use": warmth.use.value,
            "unwritable": dict(warmth.unwritable),
            "ratio": warmth.ratio,
            "invalidated_by": [*invalidated_by(warmth)],
        }
    data["record"] = outcome.record
    data["image"] = None
    if made is not None:
        data["image"] = made.reference
        data["dockerfile"] = made.dockerfile
        data["cache"] = {**msgspec.to_builtins(made.baked), "limit": made.limit}
        data["seeded"] = made.seeded
        data["proven_in_image"] = made.proven
        data["caution"] = made.caution
    return data


def as_text(outcome: Outcome) -> str:
    """The same in lines."""
    warmth, made = outcome.warmth, outcome.made
    lines = [outcome.target]
    if warmth is not None:
        lines.append(f"  {warmth.gpu}")
    if not outcome.gained:
        lines.append(f"  nothing is gained: {_why_nothing(outcome)}")
        if made is None:
            lines.append("  no image was made; --force goes on all the same")
    if warmth is not None and warmth.baked:
        lines += [
            f"  first run, {warmth.model}:",
            f"    cold start      {_times(warmth.cold)}",
            f"    second start    {_times(warmth.second)}",
            f"    baked cache     {_times(warmth.baked)}   {warmth.ratio:.2f} of a second start's",
        ]
        if warmth.ratio is not None and warmth.ratio > SLOW:
            lines.append(f"  ODD: more than {SLOW} of a second start's; see the record, and try again")
        if not warmth.native:
            lines.append(
                "  proof: CUDA_DISABLE_PTX_JIT=1 fails without the cache, and runs with a copy of it"
            )
            lines.append(f"  {use_words(warmth)}")
    if warmth is not None and outcome.gained:
        lines.append(f"  of no use with {'; '.join(invalidated_by(warmth))}")
    if made is not None:
        size = f"{made.baked.bytes / 1e6:.1f} MB, {made.baked.files} files"
        lines.append(f"  image  {made.reference} ({size}; CUDA_CACHE_MAXSIZE {made.limit})")
        lines.append(f"         {made.dockerfile}")
        if made.caution:
            lines.append(f"         {made.caution}")
        if made.seeded:
            lines.append(f"         entrypoint ortimg-seed: {_seed_words(warmth, made)}")
        if made.proven:
            lines.append("         ran itself with CUDA_DISABLE_PTX_JIT=1")
        elif outcome.gained:
            lines.append("         not run here: it comes from a record of another machine")
    elif outcome.record and outcome.gained:
        lines.append(f"  record {outcome.record}; the image, where the engine is:")
        lines.append(f"         ortimg warm IMAGE --from {outcome.record}")
    return "\n".join(lines) + "\n"


def check_data(target: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """The JSON of `ortimg warm --check`, as that of `ortimg doctor`."""
    fits = all(finding.verdict == "ok" for finding in findings)
    rows = [msgspec.to_builtins(finding) for finding in findings]
    return {"schema": SCHEMA, "target": target, "verdict": "pass" if fits else "fail", "findings": rows}


def check_text(target: str, findings: Sequence[Finding]) -> str:
    """The same in lines."""
    lines = [target]
    lines += [f"  {finding.verdict:8}{finding.check:14} {finding.evidence}" for finding in findings]
    cures = dict.fromkeys(finding.cure for finding in findings if finding.cure)
    lines += [f"  cure: {cure}" for cure in cures]
    return "\n".join(lines) + "\n"


def use_words(warmth: Warmth) -> str:
    """Whether a program that cannot write to the cache gains by it, and how that was seen."""
    used = [kind for kind, yes in warmth.unwritable if yes]
    not_used = [kind for kind, yes in warmth.unwritable if not yes]
    told = [f"used: {', '.join(used)}"] if used else []
    told += [f"not used: {', '.join(not_used)}"] if not_used else []
    tried = f" ({'; '.join(told)})" if told else ", not tried"
    if warmth.use is Use.READ_ONLY:
        return f"read-only use: works{tried}"
    if not_used and not used:
        return f"read-only use: driver {warmth.gpu.driver} does not{tried}"
    return f"read-only use: not shown{tried}"


def _seed_words(warmth: Warmth | None, made: Warmed) -> str:
    copies = f"a container's first start copies {made.baked.bytes / 1e6:.1f} MB to where it can write"
    if warmth is None or warmth.use is Use.READ_ONLY or warmth.native:
        return f"{copies}, so that the cache can grow"
    tried = dict(warmth.unwritable)
    does_not = "does not use" if tried and not any(tried.values()) else "was not shown to use"
    return f"{copies}, since driver {warmth.gpu.driver} {does_not} a cache that it cannot write to"


def _why_nothing(outcome: Outcome) -> str:
    if outcome.warmth is not None:
        return "the model ran while the driver could compile nothing (CUDA_DISABLE_PTX_JIT=1)"
    return outcome.expected.words if outcome.expected else ""


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "-"
    several = f" (median of {len(seconds)}, {min(seconds):.3f} to {max(seconds):.3f})"
    return f"{median(seconds):8.3f} s{several if len(seconds) > 1 else ''}"
