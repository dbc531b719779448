"""Tier run on a real GPU: that it passes, and that it fails where it must."""

from __future__ import annotations

import time
from pathlib import Path

import gpu_models
import pytest
from conftest import Run, Target

from ortimg.verify.report import Finding, Report, RunReport, Verdict

pytestmark = pytest.mark.gpu


def said(report: Report, check: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.check == check]
    return finding


def numbers(report: Report) -> RunReport:
    assert isinstance(report.run, RunReport)
    return report.run


def test_the_model_of_ort_verify_runs_on_the_gpu(run: Run) -> None:
    report = run(warmup=3, runs=20)
    assert report.verdict is Verdict.PASS, report.failures
    seen = numbers(report)
    assert seen.nodes is not None
    assert seen.nodes.total == seen.nodes.cuda > 9
    assert (seen.tf32, seen.cpu_fallback) == (False, False)
    assert seen.device is not None
    assert seen.device.compute
    assert seen.device.driver
    assert seen.device.runtime_cuda
    assert seen.seconds is not None
    assert seen.runs is not None
    assert seen.seconds.first_run is not None
    assert seen.seconds.first_run * 1000 > seen.runs.median_ms > 0


def test_nothing_is_left_in_a_root(run: Run, target: Target) -> None:
    if target.root is None:
        pytest.skip("an image cannot be written to")
    before = sorted(target.root.rglob("*"))
    assert run(runs=1).verdict is Verdict.PASS
    assert sorted(target.root.rglob("*")) == before


def test_a_model_of_the_user(run: Run, tmp_path: Path) -> None:
    report = run(model=gpu_models.embedding(tmp_path), shapes=("ids=3x7", "mask=3x7"))
    assert report.verdict is Verdict.PASS, report.failures
    assert [(one.type, one.shape) for one in numbers(report).inputs] == [("int64", "3x7"), ("bool", "3x7")]
    assert numbers(report).outputs[0].shape == "3x8"


def test_nodes_that_cuda_lacks_fail(run: Run, tmp_path: Path) -> None:
    report = run(model=gpu_models.cuda_lacks(tmp_path))
    assert [failure.check for failure in report.failures] == ["run.nodes"]
    assert "2 of 5 nodes ran on CUDA (40 %)" in report.failures[0].evidence
    assert {node.op for node in numbers(report).nodes.not_on_cuda} == {"Atan", "Asin", "Det"}  # type: ignore[union-attr]


def test_nodes_that_may_run_on_the_cpu_pass(run: Run, tmp_path: Path) -> None:
    report = run(model=gpu_models.cuda_lacks(tmp_path), allow_cpu=("Atan", "Asin", "Det"))
    assert report.verdict is Verdict.PASS, report.failures


def test_a_hang_is_stopped(run: Run, tmp_path: Path) -> None:
    start = time.monotonic()
    report = run(20, model=gpu_models.endless(tmp_path))
    assert "hang: it did not end within 20 s" in report.failures[0].evidence
    assert time.monotonic() - start < 60


def test_a_memory_limit_that_is_too_small_is_named(run: Run) -> None:
    report = run(options=("gpu_mem_limit=4096",))
    assert "gpu_mem_limit of 4 KiB is too small" in report.failures[0].evidence
    assert "that is 4 KiB" in said(report, "run.options").evidence


def test_a_memory_limit_with_room(run: Run) -> None:
    assert run(options=("gpu_mem_limit=1G",), runs=1).verdict is Verdict.PASS


@pytest.mark.parametrize("visible", ["-1", "99", "GPU-abc"])
def test_no_visible_device_is_the_machines_fault(
    run: Run, monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    report = run()
    assert report.verdict is Verdict.ENVIRONMENT
    assert f'CUDA_VISIBLE_DEVICES is "{visible}"' in said(report, "run.device").evidence


def test_a_device_that_is_not_there_is_the_machines_fault(run: Run) -> None:
    report = run(options=("device_id=77",))
    assert report.verdict is Verdict.ENVIRONMENT
    assert "device_id is 77" in said(report, "run.device").evidence


def test_tf32_shows_only_where_it_is_asked_for(run: Run, target: Target, tmp_path: Path) -> None:
    model, shapes = gpu_models.chain(tmp_path), ("x=64x256",)
    assert run(model=model, shapes=shapes).verdict is Verdict.PASS
    if target.ort < (1, 18):
        pytest.skip("no use_tf32 before ONNX Runtime 1.18")
    assert "TF32 on" in said(run(model=model, shapes=shapes, options=("use_tf32=1",)), "run.outputs").evidence


def test_a_missing_part_of_cudnn_fails(run: Run, target: Target) -> None:
    if target.root is None:
        pytest.skip("tests/docker does it to images")
    (part,) = [*target.root.glob("usr/local/cuda-*/lib64/libcudnn_cnn.so.9")] or [
        *target.root.glob("usr/local/cuda-*/lib64/libcudnn_cnn_infer.so.8")
    ]
    away = part.rename(part.with_name("away"))
    try:
        assert part.name in run().failures[0].evidence
    finally:
        away.rename(part)
