"""One model run by both sides on the same inputs: outputs and latency, next to each other."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ortimg.core.compare_model import Finding, fail, ok, skipped, warning

LIMIT = 1e-3  # largest relative error between the outputs of both sides
SLOWER = 1.25  # from this ratio of the medians on, NEW is said to be slower,
LEAST_MS = 0.1  # if it is by this much, in milliseconds: less is noise


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """How a model ran on one side. None: not reached."""

    provider: str  # "CUDA", "CPU"
    why: str | None = None  # why there: "for want of a GPU here"
    fault: str | None = None  # why it did not run
    cure: str | None = None
    median_ms: float | None = None
    p95_ms: float | None = None
    first_ms: float | None = None  # the first run, apart
    worst: float | None = None  # largest relative error against the other side
    at: str | None = None  # the output with it


def run_findings(old: Run, new: Run, model: str) -> Iterator[Finding]:
    """Whether both ran, gave the same, and how fast."""
    check = "model.run"
    if old.fault and new.fault:
        cure = new.cure or "see what `ortimg verify --tier run` says of both"
        yield skipped(check, f"{model} runs on neither side ({new.provider}): {new.fault}", cure)
        return
    if new.fault:
        yield fail(
            check,
            f"{model} runs on OLD and not on NEW ({new.provider}): {new.fault}",
            new.cure or "see what `ortimg verify --tier run` says of NEW",
        )
        return
    if old.fault:
        yield warning(check, f"{model} runs on NEW and not on OLD ({old.provider}): {old.fault}", old.cure)
        return
    on = f"on {new.provider}" + (f", {new.why}" if new.why else "")
    if new.worst is None:
        yield skipped("model.outputs", f"the outputs of {model} {on} were not compared")
    elif new.worst <= LIMIT:
        yield ok("model.outputs", f"{model} {on}: largest relative error {new.worst:.1e}, limit {LIMIT:.0e}")
    else:
        place = f" at {new.at}" if new.at else ""
        yield fail(
            "model.outputs",
            f"{model} {on}: relative error {new.worst:.1e}{place}, limit {LIMIT:.0e}",
            "find the operator that differs before you switch; NVIDIA_TF32_OVERRIDE=0 tells rounding apart",
        )
    yield _latency(old, new, model, on)


def _latency(old: Run, new: Run, model: str, on: str) -> Finding:
    if not old.median_ms or not new.median_ms:
        return skipped("model.latency", f"{model} was not timed on both sides")
    text = f"{model} {on}: median {old.median_ms:.3g} → {new.median_ms:.3g} ms"
    if old.p95_ms is not None and new.p95_ms is not None:
        text += f", P95 {old.p95_ms:.3g} → {new.p95_ms:.3g} ms"
    if old.first_ms is not None and new.first_ms is not None:
        text += f", first run {old.first_ms:.3g} → {new.first_ms:.3g} ms"
    if new.median_ms > max(SLOWER * old.median_ms, old.median_ms + LEAST_MS):
        return warning(
            "model.latency", f"{text}: slower", "measure it with `ortimg bench` on a quiet machine"
        )
    return ok("model.latency", text)
