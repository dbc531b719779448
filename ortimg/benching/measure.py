"""Measures a model in an image or an unpacked root, through `ort-verify --bench` in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from ortimg.core.gpu_access import Device
from ortimg.core.model import Tier
from ortimg.errors import EnvironmentFault
from ortimg.verify.report import Finding, FindingVerdict, Report, Verdict
from ortimg.verify.wish import Provider, RunWish


def measure(target: str, wish: RunWish, seconds: int | None, device: Device) -> Report:
    """The report of `target`, an image's reference or a folder with a root.

    Where the engine gives no GPU, the CPU is measured alone and the verdict is `environment`. Raises what
    verify_image and verify_root do.
    """
    from ortimg.inputs.cache import Cache
    from ortimg.verify.binary import get_verifier
    from ortimg.verify.root import verify_root

    verifier = get_verifier(Cache.default().root)
    if Path(target).is_dir():
        return verify_root(Path(target), Tier.LOAD, verifier, seconds, wish, device)
    from ortimg.engine.client import Engine
    from ortimg.verify.image import verify_image

    engine = Engine()
    try:
        return verify_image(engine, target, Tier.LOAD, verifier, seconds, wish, device)
    except EnvironmentFault as fault:
        if wish.provider is Provider.CPU or engine.inspect(target) is None:
            raise
        alone = replace(wish, provider=Provider.CPU, options=())
        return _without_gpu(verify_image(engine, target, Tier.LOAD, verifier, seconds, alone, device), fault)


def _without_gpu(report: Report, fault: EnvironmentFault) -> Report:
    why = f"no GPU here: {fault.message}"
    finding = Finding(
        check="bench.cuda",
        verdict=FindingVerdict.SKIPPED,
        evidence=f"CUDA not measured: {why}",
        cure=fault.hint or "see `ortimg engine`",
    )
    bench = report.bench
    if isinstance(bench, msgspec.UnsetType):
        return report
    failed = report.verdict is Verdict.FAIL
    return msgspec.structs.replace(
        report,
        verdict=Verdict.FAIL if failed else Verdict.ENVIRONMENT,
        findings=(*report.findings, finding),
        bench=msgspec.structs.replace(bench, cuda_not_measured=why),
    )
