"""ort-verify in a stub world, an unpacked root: whatever is broken is told by its name. Needs no engine."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stub_world import (
    ABORTS,
    CORE,
    CUDA,
    CUDART,
    EMPTY,
    HANGS,
    HOSTILE,
    NEEDED,
    NEEDS_ROOT,
    PARTS,
    PREFIX,
    PROVIDER,
    SEGFAULTS,
    SONAME,
    VERSION,
    World,
    compile_library,
    make_world,
    manifest,
)

from ortimg.core.model import Tier
from ortimg.verify.binary import Verifier
from ortimg.verify.report import FindingVerdict, Report, Verdict
from ortimg.verify.root import verify_root

pytestmark = NEEDS_ROOT


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


Break = Callable[[World], None]


def failures(report: Report) -> str:
    return "\n".join(f"{finding.check}: {finding.evidence}" for finding in report.failures)


def test_the_sound_world_passes(sound: World, verifier: Verifier) -> None:
    report = verify_root(sound.root, Tier.LOAD, verifier)
    assert report.verdict is Verdict.PASS, failures(report)
    said = {finding.check: finding for finding in report.findings}
    assert "CUDA failure 100" in said["load.session"].evidence
    assert "cuDNN 9.5.1" in said["cudnn.version"].evidence
    assert all(part in said["load.libraries"].evidence for part in PARTS)
    assert not any(finding.verdict is FindingVerdict.WARNING for finding in report.findings)


def test_nothing_is_left_in_the_root(sound: World, verifier: Verifier) -> None:
    before = sorted(sound.root.rglob("*"))
    verify_root(sound.root, Tier.LOAD, verifier)
    assert sorted(sound.root.rglob("*")) == before


@pytest.mark.parametrize("name", [*NEEDED, *PARTS])
def test_a_missing_cuda_library_is_named(world: World, verifier: Verifier, name: str) -> None:
    world.cuda(name).unlink()
    world.ldconfig()
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert report.verdict is Verdict.FAIL
    assert name in report.failures[-1].evidence
    assert "not in this image" in report.failures[-1].evidence


@pytest.mark.parametrize("name", NEEDED)
def test_a_missing_library_is_named_without_a_manifest(world: World, verifier: Verifier, name: str) -> None:
    world.path("/usr/share/ortimg/manifest.json").unlink()
    world.cuda(name).unlink()
    world.ldconfig()
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert report.verdict is Verdict.FAIL
    assert name in report.failures[-1].evidence


@pytest.mark.parametrize("name", ["libz.so.1", "libstdc++.so.6"])
def test_a_missing_base_library_is_named(world: World, verifier: Verifier, name: str) -> None:
    world.path(f"/usr/lib/{name}").unlink()
    world.ldconfig()
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert name in report.failures[-1].evidence
    assert "install it in the base" in str(report.failures[-1].cure)


def test_zlib_is_wanted_even_where_nothing_is_linked_to_it(world: World, verifier: Verifier) -> None:
    """The real cuDNN is: cnn_infer of 8, graph of 9."""
    needed = ["-Wl,--no-as-needed", *(world.cuda(name) for name in NEEDED), "-Wl,--allow-shlib-undefined"]
    compile_library(world.ort("libonnxruntime_providers_cuda.so"), PROVIDER, *needed)
    assert verify_root(world.root, Tier.LOAD, verifier).verdict is Verdict.PASS
    world.path("/usr/lib/libz.so.1").unlink()
    world.ldconfig()
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert [finding.check for finding in report.failures] == ["base.libraries"]
    assert "libz.so.1" in report.failures[0].evidence


@pytest.mark.parametrize(
    "name",
    [
        "libonnxruntime.so",
        "libonnxruntime.so.1",
        "libonnxruntime_providers_shared.so",
        "libonnxruntime_providers_cuda.so",
    ],
)
def test_a_missing_file_of_onnx_runtime_is_named(world: World, verifier: Verifier, name: str) -> None:
    world.ort(name).unlink()  # no ldconfig: it would make the SONAME link again
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert name in failures(report)


def test_the_cpu_archive_is_called_by_its_name(world: World, verifier: Verifier) -> None:
    for provider in ("shared", "cuda"):
        world.ort(f"libonnxruntime_providers_{provider}.so").unlink()
    report = verify_root(world.root, Tier.STATIC, verifier)
    assert "CPU archive" in failures(report)


def swap_cublas(world: World) -> None:
    for name in ("libcublas", "libcublasLt"):
        world.cuda(f"{name}.so.12").rename(world.cuda(f"{name}.so.11"))
        world.replace(world.cuda(f"{name}.so.11"), EMPTY)
    world.ldconfig()


def swap_cublas_under_the_same_name(world: World) -> None:
    world.replace(world.cuda("libcublas.so.12"), EMPTY, soname="libcublas.so.11")


def forget_ldconfig(world: World) -> None:
    world.path("/etc/ld.so.cache").unlink()


def forget_the_cuda_line(world: World) -> None:
    world.path("/etc/ld.so.conf.d/cuda.conf").unlink()
    world.ldconfig()


def move_the_core_away(world: World) -> None:
    for path in world.ort("x").parent.glob("libonnxruntime.so*"):
        path.rename(world.path("/usr/lib") / path.name)
    world.ldconfig()


def copy_everything_into_usr_lib(world: World) -> None:
    for path in world.ort("x").parent.iterdir():
        copied = world.path("/usr/lib") / path.name
        copied.symlink_to(path.readlink()) if path.is_symlink() else copied.write_bytes(path.read_bytes())
    world.ldconfig()


def empty_a_library(world: World) -> None:
    world.cuda("libcufft.so.11").unlink()
    world.cuda("libcufft.so.11").touch()


def cut_a_library(world: World) -> None:
    content = world.cuda("libcufft.so.11").read_bytes()
    world.cuda("libcufft.so.11").unlink()
    world.cuda("libcufft.so.11").write_bytes(content[: len(content) // 3])


def search_the_current_directory(world: World) -> None:
    compile_library(world.ort("libonnxruntime_providers_shared.so"), EMPTY, "-Wl,-rpath,/usr/local/cuda/lib:")


def put_a_stub_driver_on_the_path(world: World) -> None:
    world.path("/usr/local/cuda-12.2/compat").mkdir()
    world.replace(world.path("/usr/local/cuda-12.2/compat/libcuda.so.1"), EMPTY)
    world.write("/etc/ld.so.conf.d/compat.conf", "/usr/local/cuda-12.2/compat\n")
    world.ldconfig()


def mix_two_cudnns(world: World) -> None:
    world.path("/opt/other").mkdir()
    world.cuda("libcudnn_cnn.so.9").rename(world.path("/opt/other/libcudnn_cnn.so.9"))
    world.write("/etc/ld.so.conf.d/other.conf", "/opt/other\n")
    world.ldconfig()


def another_version_of_onnx_runtime(world: World) -> None:
    world.write(
        "/usr/share/ortimg/manifest.json",
        world.path("/usr/share/ortimg/manifest.json").read_text().replace('"1.22.0"', '"1.22.1"'),
    )


def another_cudnn(world: World) -> None:
    world.write(
        "/usr/share/ortimg/manifest.json",
        world.path("/usr/share/ortimg/manifest.json").read_text().replace("9.5.1.17", "9.6.0.74"),
    )


def cut_the_manifest(world: World) -> None:
    text = world.path("/usr/share/ortimg/manifest.json").read_text()
    world.write("/usr/share/ortimg/manifest.json", text[: len(text) // 2])


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (swap_cublas, ["libcublas.so.12", "libcublas.so.11", "another version"]),
        (swap_cublas_under_the_same_name, ["libcublas.so.12", "says it is libcublas.so.11"]),
        (forget_ldconfig, ["ldconfig has not run", "/etc/ld.so.cache"]),
        (forget_the_cuda_line, [CUDA, "/etc/ld.so.conf.d", "libcublasLt.so.12"]),
        (move_the_core_away, ["/lib/libonnxruntime.so", PREFIX]),
        (copy_everything_into_usr_lib, ["/lib/libonnxruntime.so", "second ONNX Runtime"]),
        (empty_a_library, ["libcufft.so.11", "empty"]),
        (cut_a_library, ["libcufft.so.11", "cut"]),
        (search_the_current_directory, ["libonnxruntime_providers_shared.so", "current directory"]),
        (put_a_stub_driver_on_the_path, ["compat/libcuda.so.1", "hides the host's driver"]),
        (mix_two_cudnns, ["/opt/other/libcudnn_cnn.so.9", "two cuDNNs"]),
        (another_version_of_onnx_runtime, ["1.22.0", "1.22.1"]),
        (another_cudnn, ["cuDNN says it is 9.5.1", "9.6.0.74"]),
        (cut_the_manifest, ["manifest.json", "cut"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_is_wrong_is_named(world: World, verifier: Verifier, broken: Break, words: list[str]) -> None:
    broken(world)
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert report.verdict is Verdict.FAIL
    assert not [word for word in words if word not in failures(report)], failures(report)
    assert all(finding.cure for finding in report.failures)


def copy_of_pip(world: World) -> None:
    """As `pip install nvidia-cudnn-cu12` leaves it; the loader does not know the folder."""
    folder = "/usr/local/lib/python3.11/dist-packages/nvidia/cudnn/lib"
    world.path(folder).mkdir(parents=True)
    world.replace(world.path(f"{folder}/libcudnn.so.9"), EMPTY)
    world.replace(world.path(f"{folder}/libcudnn_ops.so.9"), EMPTY)


def copy_of_the_distribution(world: World) -> None:
    """A package with its real name and its link; the cell's folder comes first."""
    real = world.path("/usr/lib/x86_64-linux-gnu/libcudart.so.12.2.140")
    real.parent.mkdir(parents=True)
    world.replace(real, CUDART + "int other;", soname="libcudart.so.12")
    real.with_name("libcudart.so.12").symlink_to(real.name)
    world.write("/etc/ld.so.conf.d/x86_64-linux-gnu.conf", "/usr/lib/x86_64-linux-gnu\n")
    world.ldconfig()


def copy_by_a_glob(world: World) -> None:
    for name in ("libcurand.so.10", "libcufft.so.11"):
        world.path(f"/usr/local/lib/{name}").write_bytes(world.cuda(name).read_bytes())


def links_made_files(world: World) -> None:
    """COPY with a glob, into the folder itself."""
    for name in ("libonnxruntime.so", SONAME):
        content = world.ort(name).read_bytes()
        world.ort(name).unlink()
        world.ort(name).write_bytes(content)


def a_wheel_of_onnx_runtime(world: World) -> None:
    module = "/opt/venv/lib/python3.11/site-packages/onnxruntime/capi/onnxruntime_pybind11_state.so"
    world.path(module).parent.mkdir(parents=True)
    world.replace(world.path(module), EMPTY)


@pytest.mark.parametrize(
    ("broken", "check", "words", "cure"),
    [
        (copy_of_pip, "cuda.single", ["libcudnn.so.9, libcudnn_ops.so.9", "nvidia/cudnn/lib"], "pip install"),
        (
            copy_of_the_distribution,
            "cuda.single",
            ["libcudart.so.12 in /usr/lib/x86_64-linux-gnu"],
            "dpkg -S",
        ),
        (copy_by_a_glob, "cuda.single", ["libcufft.so.11, libcurand.so.10 in /usr/local/lib"], "COPY"),
        (links_made_files, "ort.single", ["is no link to it"], "copy the whole folder"),
        (a_wheel_of_onnx_runtime, "ort.single", ["second ONNX Runtime", "pybind11"], "Python flavour"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_second_copy_in_an_image_made_from_a_cell_is_one_finding(
    world: World, verifier: Verifier, broken: Break, check: str, words: list[str], cure: str
) -> None:
    broken(world)
    report = verify_root(world.root, Tier.STATIC, verifier)
    (finding,) = report.failures
    assert finding.check == check
    assert not [word for word in words if word not in finding.evidence], finding.evidence
    assert cure in str(finding.cure)
    world.path(
        "/usr/share/ortimg/manifest.json"
    ).unlink()  # of an image that ortimg did not build, nothing is known
    if (
        check == "cuda.single"
    ):  # of an image that ortimg did not build, it is not known which is the right one
        assert verify_root(world.root, Tier.STATIC, verifier).verdict is Verdict.PASS


def test_libraries_that_are_hidden_are_one_finding(world: World, verifier: Verifier) -> None:
    """A folder ahead of the cell's own, with a whole second cuDNN."""
    for name in NEEDED[-2:] + PARTS:
        world.path("/opt/other").mkdir(exist_ok=True)
        world.replace(world.path(f"/opt/other/{name}"), EMPTY)
    world.write("/etc/ld.so.conf.d/0-other.conf", "/opt/other\n")
    world.ldconfig()
    report = verify_root(world.root, Tier.STATIC, verifier)
    (finding,) = report.failures
    assert "libcudnn.so.9" in finding.evidence
    assert f"are taken from /opt/other, not from {CUDA}" in finding.evidence
    assert "/etc/ld.so.conf.d" in str(finding.cure)


def test_an_executable_stack_is_told(world: World, verifier: Verifier) -> None:
    compile_library(world.ort("libonnxruntime_providers_shared.so"), EMPTY, "-Wl,-z,execstack")
    report = verify_root(world.root, Tier.STATIC, verifier)
    assert report.verdict is Verdict.PASS, failures(report)
    (warning,) = [finding for finding in report.findings if finding.verdict is FindingVerdict.WARNING]
    assert warning.check == "ort.stack"
    assert "libonnxruntime_providers_shared.so asks for an executable stack" in warning.evidence


def test_a_base_that_is_too_old_is_told_by_the_symbols_version(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    """A library from a newer distribution: the base's libm.so.6 is there, and has no such version."""
    (tmp_path / "versions").write_text("GLIBC_2.99 { global: later; };")
    newer = tmp_path / "libm.so.6"
    compile_library(newer, "void later(void) {}", f"-Wl,--version-script={tmp_path / 'versions'}")
    compile_library(world.cuda("libcurand.so.10"), "void later(void); void use(void) { later(); }", newer)
    report = verify_root(world.root, Tier.STATIC, verifier)
    assert report.verdict is Verdict.FAIL
    said = failures(report)
    assert "base.symbols" in said, said
    assert "GLIBC_2.99" in said, said
    assert {finding.cure for finding in report.failures if finding.check == "base.symbols"} == {
        "take a newer base, or an older ONNX Runtime"
    }


def test_a_cuda_library_of_another_release_is_not_blamed_on_the_base(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    """The cell's libcublas is of an older release than the one that libcurand was linked to."""
    library = tmp_path / "libcublas.so.12"
    for path, version in ((library, "CUBLAS_2"), (world.cuda(library.name), "CUBLAS_1")):
        versions = tmp_path / f"{version}.map"
        versions.write_text(f"{version} {{ global: blas; }};")
        compile_library(path, "void blas(void) {}", f"-Wl,--version-script={versions}")
    compile_library(world.cuda("libcurand.so.10"), "void blas(void); void use(void) { blas(); }", library)
    report = verify_root(world.root, Tier.STATIC, verifier)
    found = [finding for finding in report.failures if finding.check == "base.symbols"]
    assert {finding.cure for finding in found} == {
        "take all of CUDA and cuDNN from one release: two are mixed here"
    }
    assert all("libcublas.so.12: version `CUBLAS_2' not found" in finding.evidence for finding in found)


@pytest.mark.parametrize(("source", "code"), [(ABORTS, 134), (SEGFAULTS, 139)])
def test_a_crash_is_a_failure_with_its_last_words(
    world: World, verifier: Verifier, source: str, code: int
) -> None:
    world.replace(world.cuda("libcurand.so.10"), source)
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert f"exit {code}" in failures(report)
    assert "the last words" in failures(report)


def test_a_crash_of_a_part_of_cudnn_is_a_failure(world: World, verifier: Verifier) -> None:
    world.replace(world.cuda("libcudnn_adv.so.9"), ABORTS)
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert "libcudnn_adv.so.9: crash: exit 134" in failures(report)


def test_a_hang_is_stopped_and_leaves_no_process(world: World, verifier: Verifier) -> None:
    world.replace(world.cuda("libcurand.so.10"), HANGS)
    start = time.monotonic()
    report = verify_root(world.root, Tier.LOAD, verifier, seconds=1)
    assert "hang" in failures(report)
    assert time.monotonic() - start < 30
    time.sleep(0.1)
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if _maps(pid, world.cuda("libcurand.so.10"))]


def test_an_end_without_a_report_is_a_failure(world: World, verifier: Verifier) -> None:
    source = "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(0); }"
    world.replace(world.cuda("libcurand.so.10"), source)
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert "load.session: exit 0" in failures(report)


def test_a_stub_that_says_too_old_does_not_pass(world: World, verifier: Verifier, tmp_path: Path) -> None:
    stub = tmp_path / "libcuda.so.1"
    compile_library(
        stub, "int cuDriverGetVersion(int *v) { return 100; } int cuInit(unsigned f) { return 100; }"
    )
    done = subprocess.run(
        [verifier.program, "--root", world.root, "--tier", "load", "--stub", stub],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "CUDA failure 35" in done.stderr.splitlines()[-2]


def test_a_session_without_a_device_is_not_believed(world: World, verifier: Verifier) -> None:
    world.replace(world.cuda("libcudart.so.12"), "int cudaSetDevice(int device) { return 0; }")
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert "CUDA was not used" in failures(report)


def test_without_a_driver_and_a_stub_this_machine_cannot_tell(sound: World, verifier: Verifier) -> None:
    done = subprocess.run(
        [verifier.program, "--root", sound.root, "--tier", "load"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "--stub" in done.stdout


def test_tier_run_is_never_claimed(sound: World, verifier: Verifier) -> None:
    report = verify_root(sound.root, Tier.RUN, verifier)
    assert report.verdict is Verdict.ENVIRONMENT


def test_a_hostile_library_in_the_working_directory_is_not_loaded(world: World, verifier: Verifier) -> None:
    """The root is entered with `/` as working directory, so that is where it lies."""
    world.replace(world.path("/libz.so.1"), HOSTILE)
    libz = ["-Wl,--no-as-needed", world.path("/usr/lib/libz.so.1")]
    as_upstream = "-Wl,--disable-new-dtags,-rpath,/usr/local/cuda/lib:"
    compile_library(world.ort(f"libonnxruntime.so.{VERSION}"), CORE, *libz, as_upstream, soname=SONAME)
    if os.geteuid() == 0:  # the trap works
        preload = {"LD_PRELOAD": f"{PREFIX}/lib/{SONAME}"}
        trap = subprocess.run(
            ["/usr/sbin/chroot", world.root, "/usr/bin/env"],
            env=preload,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "HOSTILE" in trap.stderr
    done = subprocess.run(
        [verifier.program, "--root", world.root, "--tier", "load", "--stub", verifier.stub],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "searches the current directory" in done.stderr
    assert "HOSTILE" not in done.stderr + done.stdout


def test_a_file_is_told_from_its_place_outside_the_path(world: World, verifier: Verifier) -> None:
    """pip's wheel has it, the loader does not know."""
    elsewhere = world.path("/opt/venv/lib/python3.11/site-packages/nvidia/cudnn/lib")
    elsewhere.mkdir(parents=True)
    world.cuda("libcudnn.so.9").rename(elsewhere / "libcudnn.so.9")
    world.ldconfig()
    report = verify_root(world.root, Tier.STATIC, verifier)
    assert "site-packages/nvidia/cudnn/lib, but no file of /etc/ld.so.conf.d names that folder" in failures(
        report
    )


def test_a_driver_without_compute_is_told(world: World, verifier: Verifier) -> None:
    world.replace(world.path("/usr/lib/libnvidia-ml.so.1"), EMPTY)
    world.ldconfig()
    report = verify_root(world.root, Tier.STATIC, verifier)
    said = {finding.check: finding for finding in report.findings}
    assert said["loader.driver"].verdict is FindingVerdict.WARNING
    assert "without compute" in said["loader.driver"].evidence


def test_no_glibc_is_told(verifier: Verifier, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    report = verify_root(tmp_path, Tier.LOAD, verifier)
    assert "not a glibc system" in failures(report)


def test_two_runs_say_the_same(sound: World, verifier: Verifier) -> None:
    assert verify_root(sound.root, Tier.LOAD, verifier) == verify_root(sound.root, Tier.LOAD, verifier)


def test_the_world_is_of_the_version_it_says(sound: World) -> None:
    assert sound.ort(f"libonnxruntime.so.{VERSION}").is_file()


def _maps(process: Path, library: Path) -> bool:
    try:
        return str(library) in (process / "maps").read_text()
    except OSError:
        return False


def without_cudnn(world: World, *linked: Path) -> None:
    """As 1.28 and later with `cudnn: none`: the provider links to the driver, and cuDNN is nowhere."""
    names = [name for name in (*NEEDED, *PARTS) if "cudnn" not in name]
    for path in world.cuda("").glob("libcudnn*"):
        path.unlink()
    needed = [world.cuda(name) for name in names]
    flags = ["-Wl,--no-as-needed", *needed, *linked, "-Wl,--allow-shlib-undefined"]
    compile_library(world.ort("libonnxruntime_providers_cuda.so"), PROVIDER, *flags)
    promised = manifest()
    promised["ort"] |= {"needed": names}  # type: ignore[operator]
    promised["cuda"] |= {"libraries": names}  # type: ignore[operator]
    world.write("/usr/share/ortimg/manifest.json", json.dumps(promised | {"cudnn": None}))
    world.ldconfig()


def test_an_image_made_without_cudnn_passes_with_a_word(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    driver = tmp_path / "libcuda.so.1"
    compile_library(driver, EMPTY)
    without_cudnn(world, driver)
    takes_no_conv = 'if (memmem(bytes, length, "Conv", 4)) return fail("there is no cuDNN");'
    core = CORE.replace("(void)env; (void)bytes;", f"(void)env; {takes_no_conv}", 1)
    assert takes_no_conv in core
    declared = "void *memmem(const void *, unsigned long, const void *, unsigned long);\n"
    world.replace(world.ort(f"libonnxruntime.so.{VERSION}"), declared + core, soname=SONAME)
    report = verify_root(world.root, Tier.LOAD, verifier)
    assert report.verdict is Verdict.PASS, failures(report)
    (said,) = [finding for finding in report.findings if finding.verdict is FindingVerdict.WARNING]
    assert "Conv not available" in said.evidence
    assert not any("libcudnn" in finding.evidence for finding in report.findings)


def test_an_image_that_leaves_out_the_cudnn_that_it_links_to_fails(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    cudnn = tmp_path / "libcudnn.so.9"
    compile_library(cudnn, EMPTY)
    without_cudnn(world, cudnn)
    report = verify_root(world.root, Tier.STATIC, verifier)
    assert "libcudnn.so.9 not found" in failures(report)
