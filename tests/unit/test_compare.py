"""What is found between two sides, and what must be done: from descriptions, nothing is opened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sides import FUNCTIONS, GPU, between, finding, program, side

from ortimg.core.compare_api import SourceResult
from ortimg.core.compare_model import Function, Headers, Outcome, Side, Source
from ortimg.core.compare_report import as_data, as_text, verdict_line
from ortimg.core.compare_runs import Run
from ortimg.core.drivers import Driver
from ortimg.core.gpu import Capability
from ortimg.core.gpu_names import Gpu
from ortimg.core.model import Confidence, GpuArchitectures
from ortimg.core.onnx_support import Stamp
from ortimg.verify.report import FindingVerdict as Verdict

UNKNOWN: dict[str, Any] = {
    "ort": None, "cuda": None, "cudnn": None, "soname": None, "symbols": None, "needed": None, "lazy": None,
    "libraries": None, "gpu": None, "set_gpu": None, "exports": None, "headers": None, "size": None,
    "glibc": None, "packages": None,
}  # fmt: skip


def test_the_same_twice_is_a_drop_in_with_nothing_unknown() -> None:
    found = between(side(), side())
    assert {one.verdict for one in found.findings} == {Verdict.OK}
    assert verdict_line(found) == "drop-in: nothing to act on"
    assert as_data(found)["verdict"] == "drop-in"


def test_what_is_not_known_is_said_and_nothing_is_guessed() -> None:
    for old, new in (
        (side(**UNKNOWN), side()),
        (side(), side(**UNKNOWN)),
        (side(**UNKNOWN), side(**UNKNOWN)),
    ):
        found = between(old, new)
        unknown = {one.check for one in found.of(Verdict.SKIPPED)}
        assert unknown >= {"ort", "cuda", "cudnn", "libraries.needed", "libraries.lazy", "gpu", "soname"}
        assert unknown >= {"exports", "api.version", "api.functions", "options", "size"}
        assert found.outcome is Outcome.DROP_IN or {one.check for one in found.of(Verdict.FAIL)} == {"driver"}


# CUDA, cuDNN, driver


def test_another_cuda_major_is_an_action_only_for_who_brings_the_libraries_himself() -> None:
    old, new = side(cuda="11.8", cudnn="8.9.6"), side(cuda="12.2", cudnn="9.5.1")
    assert finding(between(old, new), "cuda").verdict is Verdict.WARNING
    bare = {"brings_cuda": False, "source": Source.CATALOGUE, "libraries": None}
    found = between(side(cuda="11", cudnn="8", **bare), side(cuda="12", cudnn="9", **bare))
    assert finding(found, "cuda").verdict is Verdict.FAIL
    assert (
        finding(found, "cuda").cure
        == "install CUDA 12 libraries beside it; those of 11 are not used any more"
    )
    assert finding(found, "cudnn").verdict is Verdict.FAIL


def test_within_a_major_cuda_may_move() -> None:
    assert finding(between(side(cuda="12.2"), side(cuda="12.6")), "cuda").verdict is Verdict.OK


def test_cudnn_for_another_cuda_is_another_cudnn() -> None:
    bare = {"brings_cuda": False, "cudnn": "9"}
    found = finding(between(side(cuda="12", **bare), side(cuda="13", **bare)), "cudnn")
    assert found.verdict is Verdict.FAIL
    assert "built for CUDA 13 instead of 12" in found.evidence


def test_a_library_that_is_opened_late_is_told_as_optional() -> None:
    new = side(needed=("libcudart.so.12",), lazy=("libcudnn.so.9", "libcuda.so.1"))
    found = between(side(), new)
    assert "now optional" in finding(found, "cudnn").evidence
    lazy = finding(found, "libraries.lazy")
    assert lazy.evidence.startswith("opened only when used: gained libcudnn.so.9; lost none")
    assert lazy.cure and "ldd" in lazy.cure
    assert found.outcome is Outcome.DROP_IN


def test_an_image_without_cudnn() -> None:
    gone = finding(between(side(), side(cudnn="none")), "cudnn")
    assert (gone.verdict, "Conv not available" in gone.evidence) == (Verdict.FAIL, True)
    assert finding(between(side(cudnn="none"), side()), "cudnn").verdict is Verdict.OK
    assert finding(between(side(cudnn="none"), side(cudnn="none")), "cudnn").verdict is Verdict.OK


def test_libraries_gained() -> None:
    more = ("libcudart.so.12", "libcudnn.so.9", "libnvrtc.so.12")
    held = between(side(), side(needed=more, libraries=more))
    assert finding(held, "libraries.needed").verdict is Verdict.WARNING
    assert held.outcome is Outcome.DROP_IN
    bare = between(side(brings_cuda=False), side(needed=more, libraries=None, brings_cuda=False))
    assert finding(bare, "libraries.needed").cure == "have these where the loader finds them: libnvrtc.so.12"
    lacking = finding(between(side(), side(needed=more)), "libraries.absent")
    assert (lacking.verdict, "libnvrtc.so.12" in lacking.evidence) == (Verdict.FAIL, True)


def test_the_drivers_own_library_is_never_missing_from_an_image() -> None:
    found = between(side(), side(needed=("libcudart.so.12", "libcudnn.so.9", "libcuda.so.1")))
    assert "does not load on a machine without one" in finding(found, "libraries.needed").evidence
    assert found.outcome is Outcome.DROP_IN


@pytest.mark.parametrize(
    ("driver", "verdict"), [(None, Verdict.FAIL), ("470.82.01", Verdict.FAIL), ("535.54.03", Verdict.OK)]
)
def test_the_lowest_driver(driver: str | None, verdict: Verdict) -> None:
    found = finding(between(side(cuda="11.8"), side(cuda="12.2"), driver=Driver(driver)), "driver")
    assert found.verdict is verdict
    assert "525.60.13 or newer" in found.evidence


def test_a_driver_that_was_enough_stays_enough() -> None:
    assert finding(between(side(cuda="12.2"), side(cuda="12.6")), "driver").verdict is Verdict.OK
    assert finding(between(side(cuda="12.2"), side(cuda="11.8")), "driver").verdict is Verdict.OK


def test_a_cpu_only_onnx_runtime() -> None:
    none = {"has_cuda": False, "needed": None, "lazy": None, "gpu": None, "cuda": None, "cudnn": None}
    lost = finding(between(side(), side(**none)), "provider")
    assert (lost.verdict, "everything runs on the CPU" in lost.evidence) == (Verdict.FAIL, True)
    assert finding(between(side(**none), side(**none)), "provider").verdict is Verdict.OK


# GPUs


def code(sass: str, ptx: str = "") -> GpuArchitectures:
    return GpuArchitectures(sass=tuple(sass.split()), ptx=tuple(ptx.split()), confidence=Confidence.MEASURED)


def test_gpus_lost_compiled_and_gained() -> None:
    old = side(gpu=code("60 70 75 90"), set_gpu=None)
    new = side(gpu=code("75 80", "80"), set_gpu=None)
    found = between(old, new)
    lost = finding(found, "gpu.lost")
    assert lost.evidence == "NEW has no code for Pascal 6.0, Pascal 6.1, Volta 7.0"
    assert lost.cure == "keep OLD for these GPUs: Pascal 6.0, Pascal 6.1, Volta 7.0"
    assert finding(found, "gpu.compiled").evidence.endswith("native before: Hopper 9.0")
    assert "Ampere 8.0, Ampere 8.6, Ada 8.9, Blackwell 10.0" in finding(found, "gpu.gained").evidence
    assert "dropped: SASS 60, SASS 70, SASS 90" in finding(found, "gpu.code").evidence


def test_the_cuda_libraries_count_as_much_as_onnx_runtimes_own_code() -> None:
    everywhere = code("60 70 75 80 90 100 120")
    old = side(gpu=everywhere, set_gpu=None)
    lacking = side(gpu=everywhere, set_gpu=(code("60 70 75 80"),))
    assert "Hopper 9.0" in finding(between(old, lacking), "gpu.lost").evidence
    compiled = {"gpu": everywhere, "set_gpu": (code("60 70 75 80", "80"),)}
    assert "Hopper 9.0" in finding(between(old, side(**compiled)), "gpu.unknown").evidence  # never tried
    assert "Hopper 9.0" in finding(between(old, side(**compiled, set_jit=False)), "gpu.lost").evidence


@pytest.mark.parametrize(
    ("capability", "verdict", "words"),
    [
        ((7, 5), Verdict.OK, "OLD runs natively, NEW runs natively"),
        ((6, 0), Verdict.FAIL, "NEW does not run"),
        ((9, 0), Verdict.WARNING, "compiled kernels at the first start"),
        ((5, 0), Verdict.FAIL, "OLD does not run"),
    ],
)
def test_only_the_gpus_that_were_asked_about_count(
    capability: tuple[int, int], verdict: Verdict, words: str
) -> None:
    gpu = Gpu(name=None, capability=Capability(*capability))
    old, new = side(gpu=code("60 70 75 90"), set_gpu=None), side(gpu=code("75 80", "80"), set_gpu=None)
    found = between(old, new, gpus=(gpu,))
    assert (finding(found, "gpu").verdict, words in finding(found, "gpu").evidence) == (verdict, True)
    assert not [one for one in found.findings if one.check == "gpu.lost"]


# linked programs


def test_a_program_of_another_soname_must_be_linked_again() -> None:
    """NEEDED libonnxruntime.so.1.17.3, and the image has 1.20.1."""
    old = side("1.17.3", soname="libonnxruntime.so.1.17.3")
    for new in (side(), side(programs=(program("libonnxruntime.so.1.17.3", "libc.so.6"),))):
        named = () if new.programs else (program("libonnxruntime.so.1.17.3", "libc.so.6"),)
        found = finding(between(old, new, programs=named), "program")
        assert found.verdict is Verdict.FAIL
        assert "/app/serve: it links to libonnxruntime.so.1.17.3" in found.evidence
        assert found.cure == "link it again with ONNX Runtime 1.20.1, or open the library with dlopen"


def test_one_soname_with_other_symbols_must_be_linked_again_all_the_same() -> None:
    one = program("libonnxruntime.so.1", wanted=("VERS_1.20.1",))
    assert finding(between(side(), side("1.23.2"), programs=(one,)), "program").verdict is Verdict.FAIL
    assert finding(between(side("1.23.2"), side(), programs=(one,)), "program").verdict is Verdict.OK


def test_a_program_that_uses_dlopen_is_free() -> None:
    found = between(
        side("1.17.3", soname="libonnxruntime.so.1.17.3"), side(), programs=(program("libc.so.6"),)
    )
    assert finding(found, "program").verdict is Verdict.OK
    assert found.outcome is Outcome.DROP_IN


def test_without_a_program_the_change_itself_is_to_be_acted_on() -> None:
    found = between(side("1.20.1"), side("1.20.2"))
    told = finding(found, "soname")
    assert (told.verdict, "VERS_1.20.1 → VERS_1.20.2" in told.evidence) == (Verdict.FAIL, True)
    assert told.cure and "--program" in told.cure


def test_programs_of_the_old_side_are_judged_where_the_new_one_has_none() -> None:
    one = program("libonnxruntime.so.1", wanted=("VERS_1.20.1",))
    assert finding(between(side(programs=(one,)), side("1.23.2")), "program").verdict is Verdict.FAIL


def test_python_packages_alone_have_no_soname_to_change() -> None:
    alone = {"has_library": False, "soname": None, "symbols": None, "exports": None}
    found = between(side("1.17.1", **alone), side("1.20.1", **alone))
    assert finding(found, "soname").verdict is Verdict.OK
    assert finding(between(side(), side(**alone)), "soname").verdict is Verdict.FAIL


def test_exported_symbols() -> None:
    old = side(exports=("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_Tensorrt"))
    lost = finding(between(old, side()), "exports")
    assert (lost.verdict, "lost OrtSessionOptions" in lost.evidence) == (Verdict.FAIL, True)
    base = {"wanted": ("VERS_1.20.1",)}
    free = program("libonnxruntime.so.1", imports=("OrtGetApiBase",), **base)  # type: ignore[arg-type]
    tied = program("libonnxruntime.so.1", imports=old.exports or (), **base)  # type: ignore[arg-type]
    assert finding(between(old, side(), programs=(free,)), "exports").verdict is Verdict.WARNING
    assert finding(between(old, side(), programs=(tied,)), "exports").verdict is Verdict.FAIL
    assert finding(between(side(), old), "exports").verdict is Verdict.OK


# C API


def with_functions(*names: str, version: int = 20) -> Headers:
    return Headers(version=version, functions=tuple(Function(name, f"({name})") for name in names))


def test_functions_of_the_c_api() -> None:
    names = [one.name for one in FUNCTIONS]
    more = side("1.21.0", headers=with_functions(*names, "More", version=21), symbols="VERS_1.20.1")
    found = between(side(), more)
    assert (
        finding(found, "api.functions").evidence == "struct OrtApi: 3 → 4 functions; gained More; lost none"
    )
    assert finding(found, "api.version").evidence == "ORT_API_VERSION 20 → 21"
    assert found.outcome is Outcome.DROP_IN
    back = between(more, side())
    assert "asks for 21, and NEW gives it nothing" in finding(back, "api.version").evidence
    assert finding(back, "api.functions").verdict is Verdict.FAIL
    moved = between(side(), side(headers=with_functions("GetErrorCode", "CreateStatus", "Run")))
    assert finding(moved, "api.order").verdict is Verdict.FAIL
    other = Headers(version=20, functions=(*FUNCTIONS[:-1], Function("Run", "(Run, more)")))
    assert (
        "declared otherwise: Run" in finding(between(side(), side(headers=other)), "api.functions").evidence
    )


def test_without_headers_their_place_is_told() -> None:
    found = finding(between(side(), side(headers=None)), "api.functions")
    assert (found.verdict, found.evidence) == (Verdict.SKIPPED, "there are no headers of NEW")
    assert found.cure and "flavour devel" in found.cure and "release archive" in found.cure


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        ((), (), Verdict.OK, "compiles with NEW's headers"),
        ((), ("a.c:3:1: error: x",), Verdict.FAIL, "a.c:3:1: error: x"),
        (None, ("a.c:3:1: error: x",), Verdict.FAIL, "OLD has no headers"),
        (
            ("a.c:1: error: y",),
            ("a.c:1: error: y",),
            Verdict.WARNING,
            "does not compile with OLD's headers either",
        ),
        (("a.c:1: error: y",), ("a.c:1: error: y", "b"), Verdict.FAIL, "app.c: b"),
        ((), None, Verdict.SKIPPED, "no compiler"),
    ],
)
def test_sources(
    old: tuple[str, ...] | None, new: tuple[str, ...] | None, verdict: Verdict, words: str
) -> None:
    result = SourceResult(path="app.c", old=old, new=new, why_not="no compiler")
    found = finding(between(side(), side(), sources=(result,)), "source")
    assert (found.verdict, words in found.evidence) == (verdict, True)


# options, Python, size, glibc


def test_options_of_the_provider() -> None:
    up = finding(between(side("1.18.0"), side("1.20.1")), "options")
    assert up.evidence == "options of the CUDA provider: gained sdpa_kernel, fuse_conv_bias; lost none"
    down = between(side("1.20.1"), side("1.18.0"))
    assert finding(down, "options").verdict is Verdict.FAIL
    used = between(side("1.20.1"), side("1.18.0"), options=("gpu_mem_limit",))
    assert finding(used, "options").verdict is Verdict.OK
    tied = finding(between(side("1.20.1"), side("1.18.0"), options=("sdpa_kernel",)), "options")
    assert (tied.verdict, tied.cure) == (Verdict.FAIL, "leave out sdpa_kernel")


def test_python_packages() -> None:
    """The CPU package over the GPU one, and the CPU package alone."""
    gpu = ("onnxruntime_gpu-1.20.1.dist-info", "numpy-1.26.4.dist-info")
    both = between(side(packages=gpu), side(packages=(*gpu, "onnxruntime-1.20.1.dist-info")))
    clash = next(one for one in both.of(Verdict.FAIL) if one.check == "python")
    assert "overwrite each other's module" in clash.evidence
    assert clash.cure and clash.cure.startswith("pip uninstall onnxruntime onnxruntime-gpu")
    cpu = between(side(packages=gpu), side(packages=("onnxruntime-1.20.1.dist-info",)))
    assert any("the CPU package" in one.evidence for one in cpu.of(Verdict.FAIL))
    up = between(
        side(packages=gpu), side(packages=("onnxruntime_gpu-1.20.1.dist-info", "numpy-2.1.0.dist-info"))
    )
    assert up.outcome is Outcome.DROP_IN
    assert any("numpy 1.26.4 → 2.1.0" in one.evidence for one in up.of(Verdict.WARNING))
    assert between(side(packages=gpu), side(packages=gpu)).outcome is Outcome.DROP_IN


def test_size_and_glibc() -> None:
    found = between(side(size=2_000_000_000), side(size=2_500_000_000, glibc="2.28"))
    assert finding(found, "size").evidence == "files: 2,000.0 MB → 2,500.0 MB (+25 %)"
    assert finding(found, "glibc").verdict is Verdict.WARNING
    bare = between(side(), side(glibc="2.28", source=Source.CATALOGUE, brings_cuda=False))
    assert finding(bare, "glibc").verdict is Verdict.FAIL
    assert finding(between(side(size_of="release archive"), side()), "size").verdict is Verdict.SKIPPED


def test_more_than_one_onnx_runtime_and_broken_files() -> None:
    found = between(side(), side(other_orts=("/usr/lib",), broken=("/x/libonnxruntime.so: cut",)))
    assert [one.verdict for one in found.findings if one.check == "files"] == [Verdict.FAIL, Verdict.FAIL]


# models


@pytest.mark.parametrize(
    ("ir", "opset", "old", "new"),
    [
        (8, 17, Verdict.OK, Verdict.OK),
        (99, 17, Verdict.WARNING, Verdict.FAIL),
        (8, 99, Verdict.WARNING, Verdict.FAIL),
        (10, 22, Verdict.WARNING, Verdict.SKIPPED),
    ],
)
def test_a_model_is_judged_for_both_without_running(ir: int, opset: int, old: Verdict, new: Verdict) -> None:
    stamp = Stamp(ir=ir, opsets={"": opset})
    found = between(side("1.16.2"), side("1.20.1"), model="m.onnx", stamp=stamp)
    assert (finding(found, "model.old").verdict, finding(found, "model.new").verdict) == (old, new)


def run(**more: Any) -> Run:
    return Run(**{"provider": "CPU", "median_ms": 2.0, "p95_ms": 3.0, "first_ms": 10.0, **more})


def test_a_model_that_was_run() -> None:
    def judged(old: Run, new: Run) -> list[tuple[str, Verdict]]:
        found = between(side(), side(), model="m", stamp=Stamp(ir=8, opsets={"": 17}), runs=(old, new))
        return [(one.check, one.verdict) for one in found.findings if one.check.startswith("model.")][2:]

    fast = ("model.latency", Verdict.OK)
    assert judged(run(), run(worst=1e-6)) == [("model.outputs", Verdict.OK), fast]
    assert judged(run(), run(worst=1e-3)) == [("model.outputs", Verdict.OK), fast]
    assert judged(run(), run(worst=2e-3, at="y[7]")) == [("model.outputs", Verdict.FAIL), fast]
    assert judged(run(), run(worst=float("inf"))) == [("model.outputs", Verdict.FAIL), fast]
    assert judged(run(), run()) == [("model.outputs", Verdict.SKIPPED), fast]
    assert judged(run(), run(worst=0.0, median_ms=3.0))[1] == ("model.latency", Verdict.WARNING)
    assert judged(run(median_ms=0.01), run(worst=0.0, median_ms=0.02))[1] == fast  # noise
    assert judged(run(), Run(provider="CPU", fault="x")) == [("model.run", Verdict.FAIL)]
    assert judged(Run(provider="CPU", fault="x"), run()) == [("model.run", Verdict.WARNING)]
    assert judged(Run(provider="CPU", fault="x"), Run(provider="CPU", fault="y")) == [
        ("model.run", Verdict.SKIPPED)
    ]


def test_a_run_on_the_cpu_for_want_of_a_gpu_says_so() -> None:
    stamp = Stamp(ir=8, opsets={"": 17})
    why = "for want of a GPU here"
    found = between(side(), side(), model="m", stamp=stamp, runs=(run(), run(worst=0.0, why=why)))
    assert "on CPU, for want of a GPU here" in finding(found, "model.outputs").evidence
    text = finding(found, "model.latency").evidence
    assert "median 2 → 2 ms, P95 3 → 3 ms, first run 10 → 10 ms" in text


# the whole


def test_text_and_json_say_the_same() -> None:
    found = between(side("1.17.3", soname="libonnxruntime.so.1.17.3"), side(cuda="13.0"))
    lines = as_text(found).splitlines()
    assert lines[0].startswith("OLD 1.17.3 (image): ONNX Runtime 1.17.3, CUDA 12.2, cuDNN 9.5.1")
    assert lines[-1].strip() == "ACTION NEEDED: driver, soname"
    assert [line for line in lines if line.startswith("  ACT  ")][-1].split()[1] == "soname"
    data = as_data(found)
    assert (data["schema"], data["verdict"], data["old"]["source"]) == (1, "action-needed", "image")
    assert {*data["findings"][0]} == {"check", "verdict", "evidence", "cure"}
    assert all(one["cure"] for one in data["findings"] if one["verdict"] == "fail")


any_side = st.builds(
    side,
    st.sampled_from(["1.14.0", "1.18.1", "1.20.1", "1.31.1"]),
    cuda=st.sampled_from([None, "11.8", "12", "13.0", "99"]),
    cudnn=st.sampled_from([None, "8", "9.5.1", "none"]),
    soname=st.sampled_from([None, "libonnxruntime.so.1", "libonnxruntime.so.1.18.1"]),
    needed=st.sampled_from([None, (), ("libcudnn.so.9",), ("libcuda.so.1",)]),
    lazy=st.sampled_from([None, (), ("libcudnn.so.9",)]),
    gpu=st.sampled_from([None, GPU, code("90a", "90a")]),
    exports=st.sampled_from([None, (), ("OrtGetApiBase",)]),
    headers=st.sampled_from([None, Headers(version=None, functions=None), with_functions("A")]),
    has_library=st.booleans(),
    has_cuda=st.booleans(),
    brings_cuda=st.booleans(),
    packages=st.sampled_from([None, (), ("onnxruntime-1.0.dist-info", "x")]),
)


@given(any_side, any_side)
def test_any_two_sides_are_compared_and_each_action_has_its_cure(old: Side, new: Side) -> None:
    found = between(old, new)
    assert all(one.cure for one in found.of(Verdict.FAIL))
    assert (found.outcome is Outcome.ACTION) == bool(found.of(Verdict.FAIL))
    assert as_text(found).endswith("\n")


@given(any_side)
def test_a_side_against_itself_asks_for_nothing_but_what_is_wrong_with_it(one: Side) -> None:
    acts = {finding.check for finding in between(one, one).of(Verdict.FAIL)}
    assert acts <= {"libraries.absent", "python", "driver"}


def test_nothing_that_was_read_steers_a_terminal() -> None:
    found = between(side(), side(other_orts=("/a\x1b[31m\n/\udcff",)))
    text = as_text(found)
    assert "\x1b" not in text and "\udcff" not in text
    assert text.encode()
