"""Measurements on a real GPU, and runs held against others. Nothing here depends on how fast the GPU is."""

from __future__ import annotations

from pathlib import Path

import gpu_models
import pytest
from conftest import Run, Target

from ortimg.benching.judgement import judge
from ortimg.verify.bench_report import BenchReport
from ortimg.verify.report import Report, RunReport, Verdict
from ortimg.verify.wish import BenchWish, Provider

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _not_the_wheel(target: Target | None) -> None:
    if target is not None and "-python3" in target.name:
        pytest.skip("--bench needs libonnxruntime.so: the wheel of this cell has none")


def numbers(report: Report) -> BenchReport:
    assert report.verdict is Verdict.PASS, report.failures
    assert isinstance(report.bench, BenchReport)
    return report.bench


def test_a_chain_of_products_with_tf32_and_without(run: Run, tmp_path: Path) -> None:
    """Two shapes, each with its own first run; copies against tensors on the GPU."""
    shapes = ("x=1x256", "x=512x256")
    seen = numbers(run(model=gpu_models.chain(tmp_path), shapes=shapes, warmup=5, runs=20, bench=BenchWish()))
    assert seen.device is not None
    tf32 = [False, True] if float(str(seen.device.compute)) >= 8 else [False]
    kinds = {(one.shape, one.tf32, one.binding) for one in seen.points if one.provider == "cuda"}
    assert kinds == {(shape, on, bound) for shape in shapes for on in tf32 for bound in (False, True)}
    firsts = [one for one in seen.points if one.first_ms is not None]
    assert len(firsts) == len(shapes) * (1 + len(tf32))
    assert seen.nodes is not None
    assert (seen.nodes.cpu, seen.nodes.cuda) == (0, seen.nodes.total)
    assert [one.shape for one in judge(seen)] == list(shapes)
    assert seen.idle
    if not seen.idle.startswith("not measured"):
        idle = [one.idle_share for one in seen.points if one.provider == "cuda" and not one.tf32]
        assert all(share is not None and 0 <= share <= 1 for share in idle)


def test_batches_and_threads(run: Run, tmp_path: Path) -> None:
    steps = BenchWish(batch=(1, 8, 32), concurrency=(1, 4))
    seen = numbers(run(model=gpu_models.chain(tmp_path), warmup=2, runs=10, bench=steps))
    kinds = {(one.batch, one.binding, one.concurrency) for one in seen.points if one.tf32 is False}
    assert kinds == {(batch, bound, n) for batch in (1, 8, 32) for bound in (False, True) for n in (1, 4)}


def test_nodes_on_the_cpu_are_the_reason(run: Run, tmp_path: Path) -> None:
    seen = numbers(run(model=gpu_models.cuda_lacks(tmp_path), warmup=2, runs=10, bench=BenchWish()))
    assert seen.nodes is not None
    assert seen.nodes.cpu == 3
    (judgement,) = judge(seen)
    assert judgement.worth_it or any("run on the CPU" in reason for reason in judgement.reasons)


def test_a_run_is_held_against_another(run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert run(provider=Provider.CPU, save_outputs=saved).verdict is Verdict.PASS
    report = run(reference=saved)
    assert report.verdict is Verdict.PASS, report.failures
    assert isinstance(report.run, RunReport)
    assert report.run.provider == "cuda"
    assert report.run.reference is not None
    assert report.run.reference.provider == "cpu"
