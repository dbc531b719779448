"""The doctor on images of a real engine: small ones with stub libraries, and a real cell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from real import RealCell
from stub_world import CUDA, NVIDIA, PREFIX, World, compile_library, make_world

from ortimg.core.doctor.facts import Machine, Snapshot
from ortimg.doctor import targets
from ortimg.engine.client import Engine

pytestmark = pytest.mark.engine

WHEEL = "/srv/app/env/lib/python3.12/site-packages/nvidia/cudnn/lib"  # where nobody would look
FAULTY = {
    "LD_LIBRARY_PATH": "/usr/local/cuda-12.2::/nope",
    "NVIDIA_VISIBLE_DEVICES": "3",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "NVIDIA_REQUIRE_CUDA": "cuda>=12.8",
    "CUDA_VISIBLE_DEVICES": "3",
}


@pytest.fixture(autouse=True)
def _cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """ort-verify is compiled once for all tests."""
    monkeypatch.setenv("ORTIMG_CACHE", str(request.config.cache.mkdir("ortimg")))


def imported(root: Path, env: dict[str, str]) -> Iterator[str]:
    """An image of one layer with these files."""
    name = f"localhost/ortimg-test/doctor-{uuid.uuid4().hex[:8]}:1"
    changes = [word for key, value in env.items() for word in ("--change", f"ENV {key}={value}")]
    tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    subprocess.run(
        ["docker", "import", *changes, "-", name], stdin=tar.stdout, check=True, capture_output=True
    )
    assert tar.wait() == 0
    yield name
    subprocess.run(["docker", "image", "rm", "-f", name], check=True, capture_output=True)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture(scope="module")
def faulty(sound: World, tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Iterator[str]:  # noqa: ARG001
    """Many faults of a kind each in one image, which costs a second."""
    world = sound.copy(tmp_path_factory.mktemp("faulty") / "root")
    world.path(WHEEL).mkdir(parents=True)
    world.cuda("libcudnn.so.9").rename(world.path(WHEEL) / "libcudnn.so.9")
    world.path(f"{WHEEL.partition('/nvidia')[0]}/onnxruntime-1.22.0.dist-info").mkdir()
    world.path(f"{WHEEL.partition('/nvidia')[0]}/onnxruntime_gpu-1.22.0.dist-info").mkdir()
    world.path("/opt/onnxruntime/1.17.3/lib").mkdir(parents=True)
    other = world.path("/opt/onnxruntime/1.17.3/lib/libonnxruntime.so.1")
    compile_library(other, "int other;", soname="libonnxruntime.so.1")
    world.write("/etc/ld.so.conf.d/zz.conf", "/opt/onnxruntime/1.17.3/lib\n")
    world.ldconfig()
    yield from imported(world.root, FAULTY)


def doctor(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ortimg", "doctor", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
        timeout=300,
    )


def test_each_fault_of_an_image_is_found_without_a_gpu(faulty: str) -> None:
    done = doctor(faulty, "--driver", "550.54.14", "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["target"], report["tier"], report["verdict"]) == (faulty, "static", "fail")
    said: dict[str, str] = {}
    for row in report["findings"]:
        if row["verdict"] != "ok":
            said[row["check"]] = f"{said.get(row['check'], '')} {row['evidence']}"
            assert row["cure"] or row["verdict"] == "skipped"
    assert WHEEL in said["cudnn.off-path"]
    assert f"{PREFIX}/lib" in said["ort.two"]
    assert "onnxruntime-gpu 1.22.0" in said["python.packages"]
    assert "/usr/local/cuda-12.2: no .so inside" in said["path.no-libraries"]
    assert "/nope" in said["path.missing"]
    assert "empty element" in said["path.empty"]
    assert "does not meet NVIDIA_REQUIRE_CUDA=cuda>=12.8" in said["driver.require"]
    assert "counted from 0 inside" in said["device.container"]


def test_a_look_inside_and_an_export_tell_the_same(faulty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = targets.an_image(faulty, Machine())
    with monkeypatch.context() as patch:
        patch.setattr(targets, "look_into", _not_allowed)
        exported = targets.an_image(faulty, Machine())

    def facts(snapshot: Snapshot) -> list[object]:
        return [
            sorted((one.path, one.real, one.size, one.elf) for one in snapshot.libraries),
            snapshot.cache,
            snapshot.conf,
            snapshot.packages,
            snapshot.glibc,
            snapshot.library_path,
        ]

    assert any(one.path == f"{CUDA}/libcublas.so.12" and one.elf for one in inside.libraries)
    assert facts(inside) == facts(exported)


def _not_allowed(*_words: object) -> None:
    raise targets.CheckFailed("not tried")


def test_an_image_without_a_shell_or_a_c_library(tmp_path: Path, engine: Engine) -> None:  # noqa: ARG001
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ld-musl-x86_64.so.1").write_bytes(b"")
    for name in imported(tmp_path, NVIDIA):
        done = doctor(name)
        assert done.returncode == 1, done.stderr
        assert "not a glibc system" in done.stdout


def test_nothing_is_left_in_the_engine(faulty: str) -> None:
    api = docker.from_env().api
    assert not api.containers(all=True, filters={"ancestor": faulty})


def test_what_is_no_image_and_a_missing_engine_are_the_environments_fault(engine: Engine) -> None:  # noqa: ARG001
    done = doctor("localhost/ortimg-test/never:1")
    assert (done.returncode, "the engine has no image" in done.stderr) == (3, True)
    done = doctor("debian:12", DOCKER_HOST="unix:///never/docker.sock")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert doctor("No Image").returncode == 2


def test_a_real_cell_passes(real_cell: RealCell) -> None:
    done = doctor(real_cell.reference, "--driver", "535.104.05")
    assert done.returncode == 0, done.stdout
    assert "driver 535.104.05 runs CUDA 11.8" in done.stdout
    assert "libcudnn.so.8 has all its parts beside it" in done.stdout


def test_the_engines_own_words_without_a_gpu(real_cell: RealCell) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    command = ["docker", "run", "--rm", "--gpus", "all", real_cell.reference, "true"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    done = subprocess.run(
        [sys.executable, "-m", "ortimg", "doctor", "--log", "-"],
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, said + done.stdout
