"""The doctor on unpacked roots with stub libraries, one fault each. Needs no engine and no GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from stub_world import CUDA, EMPTY, PREFIX, World, compile_library, make_world

from ortimg.cli import cli
from ortimg.core.doctor.facts import Machine, Place
from ortimg.doctor.files import LocalFiles
from ortimg.doctor.gather import gather
from ortimg.doctor.ld_cache import read_cache
from ortimg.doctor.targets import a_root

SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture(autouse=True)
def _cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """ort-verify is compiled once for all tests."""
    monkeypatch.setenv("ORTIMG_CACHE", str(request.config.cache.mkdir("ortimg")))


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


def findings(root: Path, code: int) -> dict[str, str]:
    """What is not fine: check → evidence."""
    done = CliRunner().invoke(cli, ["doctor", str(root), "--json"])
    assert done.exit_code == code, done.output
    report = json.loads(done.stdout)
    assert report["target"] == str(root)
    return {row["check"]: row["evidence"] for row in report["findings"] if row["verdict"] != "ok"}


def test_a_sound_root_passes(sound: World) -> None:
    assert not [check for check in findings(sound.root, 0) if check != "container.environment"]


def move(name: str, folder: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.path(folder).mkdir(parents=True)
        world.cuda(name).rename(world.path(folder) / name)
        world.ldconfig()

    return change


def drop_part(world: World) -> None:
    world.cuda("libcudnn_adv.so.9").unlink()
    world.ldconfig()


def uncached_driver(world: World) -> None:
    world.path("/usr/local/nvidia/lib64").mkdir(parents=True)
    compile_library(world.path("/usr/local/nvidia/lib64/libcuda.so.1"), EMPTY)


def only_nvml(world: World) -> None:
    compile_library(world.path("/usr/lib/libnvidia-ml.so.1"), EMPTY)
    world.ldconfig()


def compat(world: World) -> None:
    folder = "/usr/local/cuda-12.2/compat"
    world.path(folder).mkdir()
    compile_library(world.path(f"{folder}/libcuda.so.1"), EMPTY)
    world.write("/etc/ld.so.conf.d/00-compat.conf", f"{folder}\n")
    world.ldconfig()


def two_ort(world: World) -> None:
    world.path("/opt/onnxruntime/1.20.1/lib").mkdir(parents=True)
    compile_library(
        world.path("/opt/onnxruntime/1.20.1/lib/libonnxruntime.so.1"),
        "int other;",
        soname="libonnxruntime.so.1",
    )
    world.write("/etc/ld.so.conf.d/zz-second.conf", "/opt/onnxruntime/1.20.1/lib\n")
    world.ldconfig()


def two_packages(world: World) -> None:
    for name in ("onnxruntime-1.20.1.dist-info", "onnxruntime_gpu-1.20.1.dist-info"):
        world.path(f"{SITE}/{name}").mkdir(parents=True)


def foreign_cudnn(world: World) -> None:
    compile_library(world.cuda("libcublasLt.so.10"), EMPTY)
    flags = ("-Wl,--no-as-needed", world.cuda("libcublasLt.so.10"))
    compile_library(world.cuda("libcudnn.so.8"), EMPTY, *flags)
    world.cuda("libcublasLt.so.10").unlink()
    world.ldconfig()


def run_path(world: World) -> None:
    path = world.ort("libonnxruntime_providers_shared.so")
    compile_library(path, EMPTY, "-Wl,-rpath,$ORIGIN:")


def executable_stack(world: World) -> None:
    compile_library(world.ort("libonnxruntime_providers_shared.so"), EMPTY, "-z", "execstack")


FAULTS: dict[str, tuple[Callable[[World], None], int, str, str]] = {
    "cuDNN in site-packages": (
        move("libcudnn.so.9", f"{SITE}/nvidia/cudnn/lib"),
        1,
        "cuda.libraries",
        f"in {SITE}/nvidia/cudnn/lib",
    ),
    "a library off the path": (move("libcufft.so.11", "/opt/odd/lib"), 1, "library.off-path", "/opt/odd/lib"),
    "a part of cuDNN": (drop_part, 1, "cudnn.libraries", "libcudnn_adv.so.9"),
    "an uncached driver": (uncached_driver, 1, "driver.not-in-cache", "/usr/local/nvidia/lib64"),
    "only libnvidia-ml": (only_nvml, 0, "loader.driver", "libcuda.so.1 is not"),
    "a compat libcuda": (compat, 1, "loader.driver", "/usr/local/cuda-12.2/compat/libcuda.so.1"),
    "two ONNX Runtimes": (two_ort, 1, "ort.two", f"{PREFIX}/lib"),
    "two packages": (two_packages, 1, "python.packages", "onnxruntime-gpu 1.20.1"),
    "a cuDNN for another CUDA": (foreign_cudnn, 1, "cudnn.other-cublas", "libcublasLt.so.10"),
    "an empty element in a run path": (run_path, 1, "ort.runpath", "$ORIGIN:"),
    "an executable stack": (executable_stack, 0, "ort.executable-stack", "providers_shared.so"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_named(world: World, name: str) -> None:
    change, code, check, words = FAULTS[name]
    change(world)
    seen = findings(world.root, code)
    assert words in seen.get(check, ""), seen


def test_links_of_a_root_do_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "root" / "usr" / "lib").mkdir(parents=True)
    (tmp_path / "root" / "lib").symlink_to("/usr/lib")
    (tmp_path / "root" / "up").symlink_to("../../../../../etc")
    (tmp_path / "root" / "loop").symlink_to("loop")
    (tmp_path / "root" / "usr" / "lib" / "libcuda.so.1").write_bytes(b"x")
    files = LocalFiles(tmp_path / "root")
    assert files.real("/lib/libcuda.so.1") == "/usr/lib/libcuda.so.1"
    assert files.real("/up/passwd") is None
    assert files.real("/loop") is None
    assert [*files.glob("/usr/*/libcuda.so.*")] == ["/usr/lib/libcuda.so.1"]


def test_the_cache_of_ldconfig_is_read(sound: World) -> None:
    snapshot = a_root(sound.root, Machine())
    assert snapshot.cache is not None
    assert ("libcudart.so.12", f"{CUDA}/libcudart.so.12") in snapshot.cache
    assert snapshot.conf == (CUDA, f"{PREFIX}/lib")
    assert snapshot.glibc is not None


@pytest.mark.parametrize("length", [0, 5, 20, 48, 100])
def test_a_damaged_cache_is_no_cache(sound: World, length: int) -> None:
    raw = sound.path("/etc/ld.so.cache").read_bytes()
    assert read_cache(raw[:length]) is None
    assert read_cache(os.urandom(200)) is None


def test_damaged_libraries_and_odd_files_do_not_stop_it(world: World) -> None:
    for name, content in (("libcufft.so.11", b"\x7fELF" + os.urandom(300)), ("libcurand.so.10", b"text")):
        world.cuda(name).unlink()
        world.cuda(name).write_bytes(content)
    world.cuda("libcublas.so.12").unlink()
    os.mkfifo(world.cuda("libcublas.so.12"))
    gather(LocalFiles(world.root), {}, Place.ROOT, Machine())
    assert "libcufft.so.11" in " ".join(findings(world.root, 1).values())


def test_an_empty_folder_is_no_root(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["doctor", str(tmp_path)])
    assert done.exit_code == 2
    assert "is empty" in done.output


def test_a_program_is_judged_by_the_onnx_runtime_of_the_root(sound: World, tmp_path: Path) -> None:
    old = tmp_path / "libonnxruntime.so.1.17.3"
    compile_library(old, "int ort;")
    program = tmp_path / "app"
    source = "extern int ort; int main(void) { return ort; }"
    subprocess.run(
        ["cc", "-x", "c", "-", "-x", "none", "-o", program, old], input=source.encode(), check=True
    )
    done = CliRunner().invoke(cli, ["doctor", "--program", str(program), str(sound.root)])
    assert done.exit_code == 1
    assert "libonnxruntime.so.1.17.3" in done.stdout
    assert "link it again" in done.stdout
