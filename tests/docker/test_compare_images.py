"""`ortimg compare` on images of a real engine: tiny ones with stub libraries, and real cells."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from compare_images import real_image
from real import ROOT
from stub_world import PREFIX, World, compile_library, make_world

from ortimg.cli import cli
from ortimg.engine.client import Engine

pytestmark = pytest.mark.engine

PROVIDER = f"{PREFIX}/lib/libonnxruntime_providers_cuda.so"
MODEL = ROOT / "ortimg" / "verify" / "model" / "verify.onnx"


def compare(*words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(ROOT), "compare", *words])


def checks(done: Result) -> dict[str, dict[str, Any]]:
    assert done.stdout, done.output
    return {one["check"]: one for one in json.loads(done.stdout)["findings"]}


class Images:
    """Images made of folders, and gone afterwards."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.names: list[str] = []

    def put(self, root: Path, name: str) -> str:
        reference = f"localhost/ortimg-test/compare:{name}-{os.getpid()}"
        tar = root.parent / f"{name}.tar"
        with tarfile.open(tar, "w") as archive:
            archive.add(root, ".")
        self._engine.import_root(tar, reference)
        tar.unlink()
        self.names.append(reference)
        return reference


@pytest.fixture(scope="module")
def images(engine: Engine) -> Iterator[Images]:
    made = Images(engine)
    yield made
    subprocess.run(["docker", "image", "rm", "-f", *made.names], capture_output=True, check=False)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For tiny images. What was read in the real ones stays in the user's cache, as for a user."""
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))


tiny = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("compare") / "root")


@pytest.fixture(scope="module")
def sound(images: Images, world: World) -> str:
    return images.put(world.root, "sound")


@tiny
def test_an_image_and_its_root_are_the_same_thing(sound: str, world: World) -> None:
    for words in ((sound, sound), (sound, str(world.root))):
        done = compare(*words, "--json")
        assert done.exit_code == 0, done.output
        assert {one["verdict"] for one in checks(done).values()} <= {"ok", "skipped"}
        assert checks(done)["cuda"]["evidence"] == "CUDA 12.2 on both sides"


@tiny
def test_what_an_image_lost_and_who_must_be_linked_again(
    sound: str, images: Images, world: World, tmp_path: Path
) -> None:
    """A program inside that links to another libonnxruntime."""
    other = world.copy(tmp_path / "root")
    compile_library(tmp_path / "libonnxruntime.so.1.17.3", "void OrtGetApiBase(void) {}")
    other.path("/app").mkdir()
    source = "void OrtGetApiBase(void); void f(void) { OrtGetApiBase(); }"
    compile_library(other.path("/app/serve"), source, tmp_path / "libonnxruntime.so.1.17.3")
    other.cuda("libcufft.so.11").unlink()
    done = compare(sound, images.put(other.root, "other"), "--json")
    found = checks(done)
    assert done.exit_code == 1
    assert "/app/serve: it links to libonnxruntime.so.1.17.3" in found["program"]["evidence"]
    assert found["program"]["cure"].startswith("link it again with ONNX Runtime 1.22.0")
    assert "libcufft.so.11" in found["libraries.absent"]["evidence"]


@tiny
@pytest.mark.parametrize("damage", [b"", b"\x7fELF\x02\x01\x01" + b"\xff" * 500])
def test_a_broken_provider(sound: str, images: Images, world: World, tmp_path: Path, damage: bytes) -> None:
    broken = world.copy(tmp_path / "root")
    broken.path(PROVIDER).unlink()
    broken.path(PROVIDER).write_bytes(damage)
    done = compare(sound, images.put(broken.root, f"broken{len(damage)}"), "--json")
    assert done.exit_code == 1
    assert PROVIDER in checks(done)["files"]["evidence"]
    assert checks(done)["provider"]["verdict"] == "fail"


@tiny
def test_images_without_onnx_runtime_or_with_the_cpu_only(
    sound: str, images: Images, world: World, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "file").touch()
    bare = images.put(tmp_path / "bare", "bare")  # no program, no command, no C library
    done = compare(sound, bare)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{bare} holds no ONNX Runtime" in done.output
    cpu = world.copy(tmp_path / "cpu")
    cpu.path(PROVIDER).unlink()
    done = compare(sound, images.put(cpu.root, "cpu"), "--json")
    assert "everything runs on the CPU" in checks(done)["provider"]["evidence"]


@tiny
def test_an_absent_image_is_the_machines_fault() -> None:
    done = compare("localhost/ortimg-test/compare:absent", "1.20.1")
    assert (done.exit_code, "docker pull" in done.output) == (3, True)


@tiny
def test_an_image_is_read_once_and_forgotten_when_it_is_gone(
    sound: str, images: Images, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    kept = tmp_path / "cache" / "index" / "compare"
    other = world.copy(tmp_path / "root")
    gone = images.put(other.root, "gone")
    compare(gone, gone)
    assert len([*kept.iterdir()]) == 1
    engine.remove(gone)
    compare(sound, sound)
    assert len([*kept.iterdir()]) == 1

    def refuse(*_: object) -> None:
        raise AssertionError("the image was read again")

    monkeypatch.setattr(Engine, "exported", refuse)
    assert compare(sound, sound).exit_code == 0


# real cells


@pytest.mark.inputs
def test_real_cells_with_a_model(engine: Engine) -> None:
    old = real_image(engine, "1.16.2-cuda11.8-cudnn8-debian12")
    new = real_image(engine, "1.18.0-cuda12.2-cudnn8-debian12")
    done = compare(old, new, "--json", "--model", str(MODEL), "--provider", "cpu", "--runs", "5")
    found = checks(done)
    assert done.exit_code == 1
    assert {check for check, one in found.items() if one["verdict"] == "fail"} == {"driver", "soname"}
    assert found["cuda"]["evidence"].startswith("CUDA 11.8 → 12.2")
    assert found["cudnn"]["evidence"].startswith("cuDNN 8.9.6.50 → 8.9.7.29")
    needed = found["libraries.needed"]["evidence"]
    assert "gained libcublasLt.so.12, libcublas.so.12, libcufft.so.11, libcudart.so.12" in needed
    assert "libonnxruntime.so.1.16.2 → libonnxruntime.so.1.18.0" in found["soname"]["evidence"]
    assert "OrtGetApiBase" in found["exports"]["evidence"]
    assert "SASS 60, 61, 70, 75, 80" in found["gpu.code"]["evidence"]
    assert found["model.outputs"]["verdict"] == "ok", found["model.outputs"]
    assert "median" in found["model.latency"]["evidence"]


@pytest.mark.inputs
def test_real_files_say_what_the_catalogue_says(engine: Engine) -> None:
    """The same cell from the catalogue and from its image: nothing to act on, nothing that differs."""
    cell = "1.18.0-cuda12.2-cudnn8-debian12"
    done = compare(cell, real_image(engine, cell), "--json")
    assert done.exit_code == 0
    assert [one for one in checks(done).values() if one["verdict"] == "warning"] == []


@pytest.mark.inputs
def test_sources_against_real_headers(engine: Engine, tmp_path: Path) -> None:
    devel = real_image(engine, "1.23.2-cuda12.6-cudnn9-debian13-devel")
    good, bad = tmp_path / "good.cpp", tmp_path / "bad.c"
    good.write_text(
        "#include <onnxruntime_cxx_api.h>\nint main() { Ort::Env env; return ORT_API_VERSION; }\n"
    )
    bad.write_text(
        "#include <onnxruntime_c_api.h>\nvoid *f(const OrtApi *api) { return api->NoSuchThing; }\n"
    )
    done = compare("1.20.1", devel, "--json", "--source", str(good), "--source", str(bad))
    sources = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "source"]
    assert [one["verdict"] for one in sources] == ["ok", "fail"]
    assert "bad.c:2:" in sources[1]["evidence"] and "OLD has no headers" in sources[1]["evidence"]
    same = checks(compare(devel, devel, "--json"))
    assert same["api.functions"]["evidence"] == "struct OrtApi is the same on both sides, 382 functions"
