"""ort-verify --bench in a stub world with a GPU. Needs no engine and no GPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from run_world import NVML, make_run_world, profile, put_driver
from stub_world import NEEDS_ROOT, World, compile_library

from ortimg.core.model import Tier
from ortimg.errors import ConfigError
from ortimg.verify.bench_report import BenchReport
from ortimg.verify.binary import Verifier
from ortimg.verify.report import Report, Verdict
from ortimg.verify.root import verify_root
from ortimg.verify.wish import BenchWish, Provider, RunWish

pytestmark = NEEDS_ROOT


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_run_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


def measure(
    world: World,
    verifier: Verifier,
    steps: BenchWish | None = None,
    seconds: int | None = None,
    **wish: object,
) -> Report:
    words = {"warmup": 1, "runs": 5, "bench": steps or BenchWish()} | wish
    return verify_root(world.root, Tier.LOAD, verifier, seconds, RunWish(**words))  # type: ignore[arg-type]


def numbers(report: Report) -> BenchReport:
    assert isinstance(report.bench, BenchReport)
    return report.bench


def test_both_providers_are_measured(sound: World, verifier: Verifier) -> None:
    """With copies and without, with TF32 and without; the first run of a shape is told once for a session."""
    report = measure(sound, verifier)
    assert (report.verdict, report.tier) == (Verdict.PASS, Tier.LOAD), report.findings
    assert report.run is msgspec.UNSET
    seen = numbers(report)
    kinds = [(one.provider, one.tf32, one.binding, one.first_ms is not None) for one in seen.points]
    assert kinds == [
        ("cpu", None, False, True),
        ("cuda", False, False, True),
        ("cuda", False, True, False),
        ("cuda", True, False, True),
        ("cuda", True, True, False),
    ]
    assert [(one.provider, one.tf32) for one in seen.sessions] == [
        ("cpu", None), ("cuda", False), ("cuda", True),
    ]  # fmt: skip
    assert (seen.warmup, seen.runs, seen.ort) == (1, 5, "1.22.0")
    assert seen.nodes is not None
    assert (seen.nodes.total, seen.nodes.cuda, seen.nodes.cpu) == (2, 2, 0)
    for one in seen.points:
        assert 0 <= one.min_ms <= one.p50_ms <= one.p95_ms <= one.p99_ms <= one.max_ms


def test_the_machine_is_told(sound: World, verifier: Verifier) -> None:
    seen = numbers(measure(sound, verifier, BenchWish(threads=3)))
    assert seen.machine is not None
    assert seen.machine.threads == 3
    assert seen.machine.processors == len(os.sched_getaffinity(0))
    assert seen.machine.cpu
    assert seen.machine.kernel == os.uname().release
    assert seen.device is not None
    assert (seen.device.name, seen.device.compute) == ("Stub GPU", "9.0")


def test_several_shapes_of_one_input_have_a_first_run_each(sound: World, verifier: Verifier) -> None:
    report = measure(sound, verifier, shapes=("image=1x3x4x8", "image=2x3x8x8"))
    firsts = [(one.provider, one.shape) for one in numbers(report).points if one.first_ms is not None]
    shapes = ["image=1x3x4x8", "image=2x3x8x8"]
    assert firsts == [(name, shape) for name in ("cpu", "cuda", "cuda") for shape in shapes]


def test_batches_are_sizes_of_the_open_first_dimension(sound: World, verifier: Verifier) -> None:
    report = measure(
        sound, verifier, BenchWish(batch=(1, 8)), shapes=("image=5x3x4x8",), provider=Provider.CPU
    )
    points = [(one.batch, one.shape) for one in numbers(report).points]
    assert points == [(1, "image=1x3x4x8"), (8, "image=8x3x4x8")]


def test_several_threads_call_one_session(sound: World, verifier: Verifier) -> None:
    seen = numbers(measure(sound, verifier, BenchWish(concurrency=(1, 4))))
    kinds = [(one.provider, one.tf32, one.binding, one.concurrency) for one in seen.points]
    assert kinds == [
        ("cpu", None, False, 1),
        ("cpu", None, False, 4),
        ("cuda", False, False, 1),
        ("cuda", False, False, 4),
        ("cuda", False, True, 1),
        ("cuda", False, True, 4),
        ("cuda", True, False, 1),
        ("cuda", True, True, 1),
    ]


def test_without_a_driver_the_cpu_is_measured_alone(world: World, verifier: Verifier) -> None:
    world.path("/usr/lib/libcuda.so.1").unlink()
    world.ldconfig()
    report = measure(world, verifier)
    assert report.verdict is Verdict.ENVIRONMENT
    assert [one.provider for one in numbers(report).points] == ["cpu"]
    assert "no GPU here" in str(numbers(report).cuda_not_measured)
    assert any("CUDA not measured: no GPU here" in finding.evidence for finding in report.findings)
    alone = measure(world, verifier, provider=Provider.CPU)
    assert alone.verdict is Verdict.PASS
    assert numbers(alone).cuda_not_measured is None


def test_the_gpus_idle_share_comes_from_nvml(world: World, verifier: Verifier) -> None:
    compile_library(world.path("/usr/lib/libnvidia-ml.so.1"), NVML)
    world.ldconfig()
    seen = numbers(measure(world, verifier, options=("use_tf32=0",)))
    assert [one.idle_share for one in seen.points] == [None, 0.6, 0.6]
    assert "NVML's utilisation" in str(seen.idle)


def test_an_idle_share_that_cannot_be_known_is_said(sound: World, verifier: Verifier) -> None:
    seen = numbers(measure(sound, verifier))
    assert seen.idle == "not measured: no libnvidia-ml.so.1"
    assert {one.idle_share for one in seen.points} == {None}


def test_nodes_on_the_cpu_are_evidence_and_no_failure(world: World, verifier: Verifier) -> None:
    nodes = [("a", "Conv", "CUDA"), ("b", "Det", "CPU"), ("m", "MemcpyToHost", "CUDA")]
    world.write("/etc/fake/profile.json", profile(*nodes))
    report = measure(world, verifier)
    assert report.verdict is Verdict.PASS
    seen = numbers(report).nodes
    assert seen is not None
    assert (seen.total, seen.cuda, seen.cpu, seen.copies) == (2, 1, 1, 1)
    assert seen.cpu_operators == ("Det",)


def test_a_gpu_without_tf32_is_measured_without(world: World, verifier: Verifier) -> None:
    put_driver(world, "-DMAJOR=7")
    seen = numbers(measure(world, verifier))
    assert [one.tf32 for one in seen.points] == [None, False, False]
    assert "compute 8.0" in str(seen.tf32_not_measured)


@pytest.mark.parametrize("on", [True, False])
def test_who_says_tf32_gets_that_alone(sound: World, verifier: Verifier, on: bool) -> None:
    seen = numbers(measure(sound, verifier, options=(f"use_tf32={int(on)}",)))
    assert [one.tf32 for one in seen.points] == [None, on, on]
    assert seen.options["use_tf32"] == str(int(on))


def test_a_crash_on_cuda_leaves_the_cpus_numbers(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/crash", "")
    report = measure(world, verifier)
    (failure,) = report.failures
    assert "exit 134" in failure.evidence
    assert "the last words" in failure.evidence
    assert [one.provider for one in numbers(report).points] == ["cpu"]


def test_a_failing_run_is_named_with_its_shape(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/bound-error", "CUDA failure 719: unspecified launch failure")
    (failure,) = measure(world, verifier).failures
    assert "measure image=1x3x1x8 with 1 thread, tensors on the GPU" in failure.evidence
    assert "719" in failure.evidence


def test_a_hang_is_stopped(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/hang", "")
    (failure,) = measure(world, verifier, seconds=1).failures
    assert "hang: it did not end within 1 s" in failure.evidence


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"shapes": ("image=1x3x4x8", "image=2x3x4x8", "b=1", "b=2", "b=3")}, "the same number of them"),
        ({"shapes": ("imag=1x3x4x8",)}, "no such input; it has image"),
        ({"allow_cpu": ("Det",)}, "goes without"),
        ({"steps": BenchWish(concurrency=(4, 4))}, "twice"),
        ({"steps": BenchWish(concurrency=(9999,))}, "1 to 256"),
        ({"options": ("nope=1",)}, "no such option"),
    ],
)
def test_a_wrong_wish_is_named(sound: World, verifier: Verifier, wish: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        measure(sound, verifier, **wish)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_a_bench_has_no_tier(sound: World, verifier: Verifier) -> None:
    command = [verifier.program, "--root", sound.root, "--bench", "--tier", "load"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--bench goes without --tier" in done.stderr
