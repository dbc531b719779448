"""Tier run of ort-verify in a stub world with a GPU. Needs no engine and no GPU."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from run_world import DRIVER, make_run_world, profile, put_driver
from stub_world import NEEDS_ROOT, World, compile_library

import ortimg.verify
from ortimg.core.model import Tier
from ortimg.errors import ConfigError
from ortimg.verify.binary import Verifier
from ortimg.verify.report import Finding, FindingVerdict, Report, RunReport, Verdict
from ortimg.verify.root import verify_root
from ortimg.verify.wish import RunWish

MODEL = Path(ortimg.verify.__file__).parent / "model" / "verify.onnx"

PROFILES = Path(__file__).parent / "profiles"


pytestmark = NEEDS_ROOT


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_run_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


def run(world: World, verifier: Verifier, seconds: int | None = None, **wish: object) -> Report:
    return verify_root(world.root, Tier.RUN, verifier, seconds, RunWish(**wish))  # type: ignore[arg-type]


def said(report: Report, check: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.check == check]
    return finding


def numbers(report: Report) -> RunReport:
    assert isinstance(report.run, RunReport)
    return report.run


def test_the_sound_world_passes(sound: World, verifier: Verifier) -> None:
    report = run(sound, verifier, warmup=2, runs=7)
    assert report.verdict is Verdict.PASS, report.failures
    assert "Stub GPU, compute 9.0, 8 GiB" in said(report, "run.device").evidence
    assert "CUDA 13.0" in said(report, "run.device").evidence
    assert said(report, "run.nodes").evidence == "2 of 2 nodes ran on CUDA (100 %)"
    assert "largest relative error 0.0e+00" in said(report, "run.outputs").evidence
    seen = numbers(report)
    assert seen.runs is not None
    assert (seen.runs.warmup, seen.runs.count) == (2, 7)
    assert seen.options == {
        "device_id": "0",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        "use_tf32": "0",
    }
    assert (seen.tf32, seen.cpu_fallback) == (False, False)
    assert [(one.name, one.type, one.shape) for one in seen.inputs] == [("image", "float", "1x3x1x8")]


def test_nothing_is_left_in_the_root(sound: World, verifier: Verifier) -> None:
    before = sorted(sound.root.rglob("*"))
    run(sound, verifier)
    assert sorted(sound.root.rglob("*")) == before


def test_three_of_five_nodes_on_the_cpu_fail(world: World, verifier: Verifier) -> None:
    """CUDA is among the available providers, and the session came up."""
    nodes = [("a", "Conv", "CUDA"), ("b", "Det", "CPU"), ("c", "Relu", "CUDA")]
    nodes += [("d", "Det", "CPU"), ("e", "Atan", "CPU")]
    world.write("/etc/fake/profile.json", profile(*nodes))
    report = run(world, verifier)
    (failure,) = report.failures
    assert failure.check == "run.nodes"
    assert failure.evidence == "2 of 5 nodes ran on CUDA (40 %); on the CPU: b (Det), d (Det), e (Atan)"
    seen = numbers(report).nodes
    assert seen is not None
    assert (seen.total, seen.cuda, seen.cpu, seen.share_cuda) == (5, 2, 3, 0.4)
    assert [node.op for node in seen.not_on_cuda] == ["Det", "Det", "Atan"]


def test_profiles_of_a_real_gpu(world: World, verifier: Verifier) -> None:
    """Written by ONNX Runtime 1.16.2 on a GPU: events of an older kind, and copies to and from the GPU."""
    world.write("/etc/fake/profile.json", (PROFILES / "1.16.2-three-of-five-on-the-cpu.json").read_text())
    report = run(world, verifier)
    words = "2 of 5 nodes ran on CUDA (40 %); on the CPU: angle (Atan), arc (Asin), det (Det)"
    assert [failure.evidence for failure in report.failures] == [words]
    seen = numbers(report).nodes
    assert seen is not None
    assert seen.copies == 4
    world.write("/etc/fake/profile.json", (PROFILES / "1.16.2-all-on-cuda.json").read_text())
    assert said(run(world, verifier), "run.nodes").evidence == "13 of 13 nodes ran on CUDA (100 %)"


def test_a_session_that_fell_back_to_the_cpu_fails(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/profile.json", profile(("a", "Conv", "CPU")))
    report = run(world, verifier, allow_cpu=("Conv",))
    assert "0 of 1 nodes ran on CUDA (0 %)" in said(report, "run.nodes").evidence
    assert report.verdict is Verdict.FAIL


def test_operators_that_may_run_on_the_cpu(world: World, verifier: Verifier) -> None:
    nodes = profile(("a", "Conv", "CUDA"), ("b", "Det", "CPU"), ("c", "Atan", "CPU"))
    world.write("/etc/fake/profile.json", nodes)
    assert "c (Atan)" in said(run(world, verifier, allow_cpu=("Det",)), "run.nodes").evidence
    report = run(world, verifier, allow_cpu=("Det", "Atan"))
    assert report.verdict is Verdict.PASS
    assert "as allowed: b (Det), c (Atan)" in said(report, "run.nodes").evidence
    assert numbers(report).cpu_fallback is True


def test_a_model_that_cuda_refuses_is_told_by_its_nodes(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/refuse", "")
    world.write("/etc/fake/profile.json", profile(("a", "Conv", "CUDA"), ("b", "Det", "CPU")))
    report = run(world, verifier)
    assert [failure.check for failure in report.failures] == ["run.nodes"]
    assert "1 of 2 nodes ran on CUDA (50 %); on the CPU: b (Det)" in report.failures[0].evidence


def test_a_refusal_is_a_failure_whatever_the_profile_says(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/refuse", "")
    assert "not reached" in run(world, verifier).failures[0].evidence


def test_copies_are_no_nodes_of_the_model(world: World, verifier: Verifier) -> None:
    nodes = [
        ("a", "Conv", "CUDA"),
        ("a", "Conv", "CUDA"),
        ("m", "MemcpyToHost", "CUDA"),
    ]
    world.write("/etc/fake/profile.json", profile(*nodes))
    seen = numbers(run(world, verifier)).nodes
    assert seen is not None
    assert (seen.total, seen.cuda, seen.copies) == (1, 1, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        (profile(("a", "Conv", "CUDA"))[:-9], "cut"),
        ("[]", "names no node"),
    ],
)
def test_a_profile_that_cannot_be_read_is_a_failure(
    world: World, verifier: Verifier, content: str, words: str
) -> None:
    world.write("/etc/fake/profile.json", content)
    assert words in run(world, verifier).failures[0].evidence


@pytest.mark.parametrize(
    ("output", "good"),
    [
        ("0.5004", True),
        ("0.5006", False),
        ("-0.5", False),
        ("nan", False),
        ("inf", False),
    ],
)
def test_outputs_are_compared_with_the_cpu(world: World, verifier: Verifier, output: str, good: bool) -> None:
    world.write("/etc/fake/cuda-output", output)
    report = run(world, verifier)
    assert (report.verdict is Verdict.PASS) is good
    assert (said(report, "run.outputs").verdict is FindingVerdict.OK) is good
    assert "TF32 off" in said(report, "run.outputs").evidence


def test_tf32_is_told(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/cuda-output", "0.51")
    report = run(world, verifier, options=("use_tf32=1",))
    assert "TF32 on" in report.failures[0].evidence
    assert "use_tf32=0" in str(report.failures[0].cure)


def test_a_hang_is_stopped_and_leaves_no_process(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/hang", "")
    start = time.monotonic()
    report = run(world, verifier, seconds=1)
    assert 'hang: it did not end within 1 s and was stopped at "run for the first time"' in (
        report.failures[0].evidence
    )
    assert time.monotonic() - start < 30
    time.sleep(0.1)
    library = str(world.cuda("libcurand.so.10"))
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if _maps(pid, library)]


def test_a_crash_is_a_failure_with_its_last_words(world: World, verifier: Verifier) -> None:
    world.write("/etc/fake/crash", "")
    (failure,) = run(world, verifier).failures
    assert "exit 134" in failure.evidence
    assert "the last words" in failure.evidence


@pytest.mark.parametrize(
    ("text", "options", "verdict", "words"),
    [
        ("Available memory of 4096 is smaller than requested bytes of 8192", ("gpu_mem_limit=1M",),
         Verdict.FAIL, "gpu_mem_limit of 1 MiB is too small"),
        ("Available memory of 4096 is smaller than requested bytes of 8192", (),
         Verdict.ENVIRONMENT, "the GPU's memory (8 GiB) is too small or in use"),
        ("CUDA failure 209: no kernel image is available for execution on the device", (),
         Verdict.FAIL, "no code for this GPU, compute 9.0"),
        ("CUDA failure 803: system has unsupported display driver / cuda driver combination", (),
         Verdict.ENVIRONMENT, "803"),
        ("CUDA failure 719: unspecified launch failure", (), Verdict.FAIL, "719"),
        ("CUDA failure 700: an illegal memory access was encountered", (), Verdict.FAIL, "700"),
        # Texts as ONNX Runtime writes them; no machine of ours has shown one of these.
        ("CUDA failure 214: uncorrectable ECC error encountered ; GPU=0", (), Verdict.ENVIRONMENT, "ECC"),
        ("CUDA failure 46: all CUDA-capable devices are busy or unavailable ; GPU=0", (),
         Verdict.ENVIRONMENT, "busy"),
        ("CUDA failure 222: the provided PTX was compiled with an unsupported toolchain.", (),
         Verdict.ENVIRONMENT, "222"),
        ("CUDA failure 802: system not yet initialized ; GPU=0", (), Verdict.ENVIRONMENT, "802"),
        ("CUDA failure 2: out of memory ; GPU=0", (), Verdict.ENVIRONMENT, "too small or in use"),
        ("CUDA failure 2: out of memory ; GPU=0", ("gpu_mem_limit=1G",), Verdict.FAIL, "1 GiB is too small"),
        ("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0", (), Verdict.ENVIRONMENT,
         "too small or in use"),
        ("CUDNN failure 2: CUDNN_STATUS_ALLOC_FAILED ; GPU=0", (), Verdict.ENVIRONMENT,
         "too small or in use"),
    ],
)  # fmt: skip
def test_an_error_is_told_by_its_cause(
    world: World,
    verifier: Verifier,
    text: str,
    options: tuple[str, ...],
    verdict: Verdict,
    words: str,
) -> None:
    world.write("/etc/fake/error", text)
    report = run(world, verifier, options=options)
    assert report.verdict is verdict
    assert any(words in finding.evidence for finding in report.findings)
    assert not any(finding.cure is None for finding in report.failures)


def test_without_a_driver_this_machine_cannot_tell(world: World, verifier: Verifier) -> None:
    world.path("/usr/lib/libcuda.so.1").unlink()
    world.ldconfig()
    report = run(world, verifier)
    assert report.verdict is Verdict.ENVIRONMENT
    assert "no NVIDIA driver" in said(report, "run.device").evidence
    assert "--gpus all" in str(said(report, "run.device").cure)


@pytest.mark.parametrize(
    ("driver", "visible", "options", "words"),
    [
        (
            ["-DINIT=100"],
            "-1",
            (),
            ["CUDA failure 100", 'CUDA_VISIBLE_DEVICES is "-1"'],
        ),
        (
            ["-DCOUNT=0"],
            None,
            (),
            ["CUDA failure 100", "CUDA_VISIBLE_DEVICES is not set"],
        ),
        ([], None, ("device_id=7",), ["device_id is 7", "sees 1 device"]),
        (
            ["-DVERSION=11080"],
            None,
            (),
            ["driver is for CUDA 11.8", "libraries are CUDA 12.2"],
        ),
        (["-DINIT=803"], None, (), ["CUDA failure 803"]),
        (["-DINIT=999"], None, (), ["CUDA failure 999"]),
        (["-DINIT=304"], None, (), ["CUDA failure 304"]),
        (["-DINIT=46"], None, (), ["CUDA failure 46"]),
        (
            ["-DINIT=100"],
            "MIG-0929581a-2be6-5dec-bf34-0954c6c529a6",
            (),
            ["CUDA failure 100", "MIG-0929581a"],
        ),
    ],
)
def test_a_fault_of_the_machine_is_not_the_images(
    world: World,
    verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
    driver: list[str],
    visible: str | None,
    options: tuple[str, ...],
    words: list[str],
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    put_driver(world, *driver)
    world.replace(world.cuda("libcudart.so.12"), _CUDART)
    report = run(world, verifier, options=options)
    assert report.verdict is Verdict.ENVIRONMENT
    evidence = said(report, "run.device").evidence
    assert not [word for word in words if word not in evidence], evidence


# The stub's cudart finds the stub driver in tier load and ours in tier run, and has a version.
_CUDART = r"""
#include <dlfcn.h>
int cudaRuntimeGetVersion(int *version) { *version = 12020; return 0; }
int cudaSetDevice(int device) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
}
"""


def test_the_driver_of_this_machine_is_shown_inside(
    world: World, verifier: Verifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a container gets it: the root itself has none."""
    world.path("/usr/lib/libcuda.so.1").unlink()
    world.ldconfig()
    for folder in ("dev", "proc", "sys"):
        world.path(f"/{folder}").mkdir()
    (tmp_path / "driver").mkdir()
    compile_library(tmp_path / "driver" / "libcuda.so.1", DRIVER)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "driver"))
    before = sorted(world.root.rglob("*"))
    report = run(world, verifier)
    assert report.verdict is Verdict.PASS, report.findings
    assert "/driver/libcuda.so.1" in said(report, "loader.driver").evidence
    assert sorted(world.root.rglob("*")) == before


def test_a_model_of_the_user_and_its_shapes(world: World, verifier: Verifier, tmp_path: Path) -> None:
    shutil.copy(MODEL, tmp_path / "net.onnx")  # the stub library does not look at it
    report = run(world, verifier, model=tmp_path / "net.onnx", shapes=("image=2x3x4x8",))
    assert report.verdict is Verdict.PASS, report.failures
    assert numbers(report).model == "net.onnx"
    assert numbers(report).inputs[0].shape == "2x3x4x8"


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"shapes": ("image=2x4x4x8",)}, "the model wants ?x3x?x8"),
        ({"shapes": ("image=3x8",)}, "the model wants ?x3x?x8"),
        ({"shapes": ("imag=1x3x4x8",)}, "no such input; it has image"),
        ({"shapes": ("image=1x3",) * 2}, "twice"),
        ({"shapes": ("image=1xx3",)}, "no size"),
        (
            {"options": ("gpu_mem_limt=4G",)},
            'no such option; did you mean "gpu_mem_limit"?',
        ),
        ({"options": ("gpu_mem_limit=lots",)}, "4294967296 or 4G"),
        ({"options": ("gpu_mem_limit=99999999999G",)}, "4294967296 or 4G"),
        (
            {"options": ("cudnn_conv_algo_search=FAST",)},
            "EXHAUSTIVE, HEURISTIC, DEFAULT",
        ),
        ({"options": ("use_tf32=maybe",)}, "0 or 1"),
        ({"options": ("device_id=-1",)}, "whole number from 0"),
        ({"options": ("user_compute_stream=1",)}, "only that program can set it"),
        ({"options": ("enable_cudnn=1",)}, "since 1.28, this is 1.22.0"),
    ],
)
def test_a_wrong_wish_is_named(
    sound: World, verifier: Verifier, wish: dict[str, tuple[str, ...]], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(sound, verifier, **wish)
    assert words in str(caught.value)


def test_an_option_that_this_version_lacks_is_named_without_a_manifest(
    world: World, verifier: Verifier
) -> None:
    world.path("/usr/share/ortimg/manifest.json").unlink()
    with pytest.raises(ConfigError, match=r"since 1\.28, this is 1\.22\.0"):
        run(world, verifier, options=("enable_cudnn=1",))


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("gpu_mem_limit=8192", "8192", "that is 8 KiB"),
        ("gpu_mem_limit=4096", "4096", '"4096M" would be 4 GiB'),
        ("gpu_mem_limit=4G", "4294967296", None),
        ("gpu_mem_limit=512MiB", "536870912", None),
        ("gpu_mem_limit=9G", "9663676416", "more than the GPU has (8 GiB)"),
        ("do_copy_in_default_stream=0", "0", "DO NOT SHIP"),
        ("do_copy_in_default_stream=false", "0", "may race"),
        ("do_copy_in_default_stream=1", "1", None),
        ("arena_extend_strategy=1", "kSameAsRequested", None),
    ],
)
def test_options_are_put_into_the_providers_words(
    sound: World, verifier: Verifier, option: str, value: str, words: str | None
) -> None:
    report = run(sound, verifier, options=(option,))
    assert report.verdict is Verdict.PASS
    assert numbers(report).options[option.partition("=")[0]] == value
    warnings = [finding.evidence for finding in report.findings if finding.check == "run.options"]
    assert (words is None and not warnings) or words in warnings[0]


def test_options_of_tier_run_go_with_no_other(sound: World, verifier: Verifier) -> None:
    command = [
        verifier.program,
        "--root",
        sound.root,
        "--tier",
        "load",
        "--warmup",
        "3",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--warmup goes with --tier run" in done.stderr


def test_a_failure_of_tier_load_comes_first(world: World, verifier: Verifier) -> None:
    world.cuda("libcudnn_cnn.so.9").unlink()
    world.ldconfig()
    report = run(world, verifier)
    assert "libcudnn_cnn.so.9" in report.failures[0].evidence
    assert report.run is msgspec.UNSET


def _maps(process: Path, library: str) -> bool:
    try:
        return library in (process / "maps").read_text()
    except OSError:
        return False
