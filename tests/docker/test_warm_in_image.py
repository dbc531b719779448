"""`ortimg warm IMAGE` whole, in containers of the engine, on a stub of a GPU that must compile.

All but the request for a device is as with a real GPU: the image brings the stub of its driver along.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from real import RealCell
from stub_world import CUDA, PREFIX
from warm_world import make_warm_world

from ortimg.engine.client import Engine
from ortimg.errors import CheckFailed, ConfigError, ExitCode
from ortimg.verify.binary import get_verifier
from ortimg.verify.wish import RunWish
from ortimg.warming import measure, warmup
from ortimg.warming.folder import look
from ortimg.warming.measure import Course, prove_image
from ortimg.warming.warmup import ImageWish

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

ONCE = Course(RunWish(), starts=1, seconds=60)
NAME = "localhost/ortimg-test/stub-gpu"


@pytest.fixture(scope="module")
def image(real_cell: RealCell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A stub of ONNX Runtime and of a GPU on a real base, which has sh."""
    folder = tmp_path_factory.mktemp("context")
    world = make_warm_world(folder / "world")
    rootfs = folder / "rootfs"
    for path in (PREFIX, CUDA, "/etc/ld.so.conf.d", "/usr/share/ortimg", "/opt/onnxruntime/current"):
        source, target = world.path(path), rootfs / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        else:
            shutil.copytree(source, target, symlinks=True)
    (rootfs / "usr/local/lib").mkdir(parents=True)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(world.path(f"/usr/lib/{name}"), rootfs / "usr/local/lib")
    shutil.copytree(world.path("/etc/fake"), rootfs / "etc/fake")
    (folder / "Dockerfile").write_text(
        f"FROM {real_cell.base}\nCOPY rootfs/ /\nRUN ldconfig\n"
        "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"
        "LABEL ortimg.identifier=1.22.0-cuda12.2-cudnn9-stub\nUSER 1234:1234\n"
    )
    name = f"{NAME}:{os.getpid()}"
    subprocess.run(["docker", "build", "-q", "-t", name, folder], check=True, capture_output=True)
    yield name
    rows = subprocess.run(["docker", "images", "-q", NAME], capture_output=True, text=True, check=True)
    subprocess.run(
        ["docker", "image", "rm", "-f", *set(rows.stdout.split())], capture_output=True, check=False
    )


@pytest.fixture(autouse=True)
def _without_device_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "docker_options", lambda *_: {})


def test_an_image_is_warmed_and_the_warmed_one_proves_itself(
    engine: Engine, image: str, tmp_path: Path
) -> None:
    outcome = warmup.of_image(image, tmp_path / "out", ONCE, ImageWish())
    assert outcome.gained
    assert outcome.made is not None
    assert (outcome.made.proven, outcome.made.seeded) == (True, False)
    assert outcome.warmth is not None
    # A container mounts nothing: the engine shows it the folder a second time, read-only.
    assert dict(outcome.warmth.unwritable) == {"read-only-mount": True, "no-write-bits": True}
    assert outcome.made.reference == f"{image}-warm-sm90-580.159.04"
    assert outcome.warmth.cold[0] > outcome.warmth.second[0]
    assert look(tmp_path / "out").files == 2
    assert all(path.stat().st_uid == os.getuid() for path in (tmp_path / "out").rglob("*"))
    made = engine.inspect(outcome.made.reference)
    assert made is not None
    assert made.user == "1234:1234"
    with pytest.raises(ConfigError, match="is there, and not an empty folder"):
        warmup.of_image(image, tmp_path / "out", ONCE, ImageWish())
    with pytest.raises(ConfigError, match="is warmed already"):
        warmup.of_image(outcome.made.reference, tmp_path / "more", ONCE, ImageWish())


def test_the_proof_is_that_of_any_user(
    engine: Engine, image: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A cache that only its owner can read is of no use in an image."""
    made = warmup.of_image(image, tmp_path / "out", ONCE, ImageWish(tag=f"{image}-any")).made
    assert made is not None
    (tmp_path / "Dockerfile").write_text(
        f"FROM {made.reference}\nUSER 0\nRUN chmod -R go= /usr/share/ortimg/warm/cache\nUSER {os.getuid()}\n"
    )
    name = f"{image}-private"
    subprocess.run(["docker", "build", "-q", "-t", name, tmp_path], check=True, capture_output=True)
    with pytest.raises(CheckFailed, match="does not run its model without compiling"):
        prove_image(engine, name, get_verifier(request.config.cache.mkdir("ortimg")), 60)


def test_where_the_driver_must_write_the_image_proves_itself_with_a_copy(
    engine: Engine, image: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\nUSER 0\nRUN touch /etc/fake/must-write\nUSER 1234\n")
    name = f"{image}-must-write"
    subprocess.run(["docker", "build", "-q", "-t", name, tmp_path], check=True, capture_output=True)
    outcome = warmup.of_image(name, tmp_path / "out", ONCE, ImageWish())
    assert outcome.made is not None
    assert outcome.warmth is not None
    assert dict(outcome.warmth.unwritable) == {"read-only-mount": False, "no-write-bits": False}
    assert (outcome.made.proven, outcome.made.seeded) == (True, True)
    verifier = get_verifier(request.config.cache.mkdir("ortimg"))
    with pytest.raises(CheckFailed, match="does not run its model without compiling"):
        prove_image(engine, outcome.made.reference, verifier, 60)  # past its entrypoint
    with pytest.raises(CheckFailed, match="compile at each start"):
        warmup.of_image(name, tmp_path / "more", ONCE, ImageWish(seed=False))


def test_the_proof_fails_without_the_cache(
    engine: Engine, image: str, request: pytest.FixtureRequest
) -> None:
    verifier = get_verifier(request.config.cache.mkdir("ortimg"))
    with pytest.raises(CheckFailed, match="does not run its model without compiling"):
        prove_image(engine, image, verifier, 60)


def test_a_failing_start_makes_no_image(
    image: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    course = Course(RunWish(shapes=("nope",)), starts=1, seconds=60)
    with pytest.raises(ConfigError) as caught:
        warmup.of_image(image, tmp_path / "out", course, ImageWish())
    assert caught.value.exit_code is ExitCode.USAGE
    assert "--shape nope" in capfd.readouterr().err
