"""Runs one model on both sides, on the same inputs, through `ort-verify`."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from ortimg.core.compare_runs import Run
from ortimg.core.model import Tier
from ortimg.engine.client import Engine
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache
from ortimg.verify.binary import Verifier, get_verifier
from ortimg.verify.image import verify_image
from ortimg.verify.report import FindingVerdict, Report, Verdict
from ortimg.verify.root import verify_root
from ortimg.verify.wish import TENSORS, Provider, RunWish

_GPU = Path("/dev/nvidiactl")  # made by NVIDIA's driver


def choose_provider(wished: Provider | None) -> tuple[Provider, str | None]:
    """Where the model runs, and why: as wished, else on this machine's GPU, else on the CPU."""
    if wished is not None:
        return wished, None
    return (Provider.CUDA, None) if _GPU.exists() else (Provider.CPU, "for want of a GPU here")


def run_both(
    old: str | Path, new: str | Path, wish: RunWish, seconds: int | None, cache: Cache, why: str | None = None
) -> tuple[Run, Run]:
    """How the model ran on `old`, then on `new`, whose outputs are held against the first's.

    A side is a folder or an image reference. Raises ConfigError for a wish that cannot be, EnvironmentFault
    where this machine cannot run it.
    """
    verifier = get_verifier(cache.root)
    with tempfile.TemporaryDirectory(prefix="ortimg-compare-") as name:
        kept = Path(name, "old")
        first = _run(old, replace(wish, save_outputs=kept), seconds, verifier)
        there = (kept / TENSORS).is_file()
        second = _run(new, replace(wish, reference=kept if there else None), seconds, verifier)
    return _as_run(first, wish.provider, why), _as_run(second, wish.provider, why)


def _run(side: str | Path, wish: RunWish, seconds: int | None, verifier: Verifier) -> Report:
    if isinstance(side, Path):
        return verify_root(side, Tier.RUN, verifier, seconds, wish)
    return verify_image(Engine(), side, Tier.RUN, verifier, seconds, wish)


def _as_run(report: Report, provider: Provider, why: str | None) -> Run:
    name = provider.name  # CPU, CUDA
    run = report.run if report.run else None
    # A difference from the other side is no fault of the run: it is judged with its own words.
    faults = [one for one in report.failures if one.check != "run.reference"]
    if report.verdict is Verdict.ENVIRONMENT:
        skipped = next((one for one in report.findings if one.verdict is FindingVerdict.SKIPPED), None)
        raise EnvironmentFault(
            f"{report.target}: this machine cannot run the model: "
            f"{skipped.evidence if skipped else 'no reason given'}",
            (skipped.cure if skipped else None) or "Run it on a machine with a GPU, or with --provider cpu.",
        )
    if run is None or run.runs is None or faults:
        first = next(iter(faults), None)
        return Run(
            provider=name,
            why=why,
            fault=f"{first.check}: {first.evidence}" if first else "the model was not run",
            cure=first.cure if first else None,
        )
    other = run.reference
    far = max(other.outputs, key=lambda row: row.relative_error or 0.0, default=None) if other else None
    wrong = next((row for row in other.outputs if row.fault), None) if other else None
    endless = bool(other and other.outputs and other.largest_relative_error is None and _differs(report))
    return Run(
        provider=name,
        why=why,
        median_ms=run.runs.median_ms,
        p95_ms=run.runs.p95_ms,
        first_ms=run.seconds.first_run * 1e3 if run.seconds and run.seconds.first_run is not None else None,
        worst=float("inf") if wrong or endless else (other.largest_relative_error if other else None),
        at=f"{wrong.name} ({wrong.fault})" if wrong else (f"{far.name}[{far.at}]" if far else None),
    )


def _differs(report: Report) -> bool:
    return any(one.check == "run.reference" for one in report.failures)
