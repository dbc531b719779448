"""`ortimg warm` on a real GPU: what the driver compiles is kept, and is enough to run without compiling."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import gpu_models
import pytest
from conftest import Target

from ortimg.core.warm_record import Step, Use, Warmth, judge
from ortimg.errors import CheckFailed
from ortimg.verify.binary import Verifier
from ortimg.verify.wish import RunWish
from ortimg.warming.folder import CACHE, look, read_record
from ortimg.warming.measure import Course, prove_image, warm_root
from ortimg.warming.warmup import ImageWish, of_image

pytestmark = pytest.mark.gpu


@pytest.fixture
def root(target: Target) -> Path:
    if target.root is None:
        pytest.skip("an image: see the tests of images")
    return target.root


@pytest.fixture(scope="module")
def warmed() -> dict[Path, tuple[Path, Warmth]]:
    """Root → folder and record, made once."""
    return {}


@pytest.fixture
def record(
    root: Path,
    verifier: Verifier,
    warmed: dict[Path, tuple[Path, Warmth]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Warmth]:
    if root not in warmed:
        out = tmp_path_factory.mktemp("warm") / "out"
        warm_root(root, out, verifier, Course(RunWish(), starts=3, cold_starts=1, seconds=300))
        warmed[root] = out, judge(read_record(out))
    return warmed[root]


def test_a_record_proves_itself_or_says_that_nothing_is_gained(record: tuple[Path, Warmth]) -> None:
    out, warmth = record
    assert warmth.gpu.compute
    if warmth.native:
        assert not (out / CACHE).exists()
        return
    exits = {start.name: start.exit for start in read_record(out).attempts}
    assert (exits[Step.NO_CACHE], exits[Step.PROOF]) == (1, 0)
    assert look(out).files > 1
    assert min(warmth.cold) > max(warmth.baked)
    if os.geteuid() == 0:  # whatever the driver does with them, all three were tried
        assert len(warmth.unwritable) == 3


def test_nothing_is_left_in_the_root(root: Path, record: tuple[Path, Warmth]) -> None:
    assert record
    assert list(root.glob("ortimg-warm.*")) == []


def test_a_model_of_the_user_gets_its_kernels_too(
    root: Path, record: tuple[Path, Warmth], verifier: Verifier, tmp_path: Path
) -> None:
    if record[1].native:
        pytest.skip("nothing is compiled for this GPU")
    wish = RunWish(model=gpu_models.embedding(tmp_path), shapes=("ids=3x7", "mask=3x7"))
    warm_root(root, tmp_path / "out", verifier, Course(wish, starts=1, seconds=300))
    assert judge(read_record(tmp_path / "out")).model == "embedding.onnx"
    assert look(tmp_path / "out").bytes > look(record[0]).bytes


def test_the_cache_of_another_build_is_of_no_use(
    root: Path, record: tuple[Path, Warmth], warmed: dict[Path, tuple[Path, Warmth]], verifier: Verifier
) -> None:
    others = [out for other, (out, warmth) in warmed.items() if other != root and not warmth.native]
    if record[1].native or not others:
        pytest.skip("needs two roots that compile")
    place = root / "ortimg-test-cache"
    shutil.copytree(others[0] / CACHE, place)
    variables = {"CUDA_CACHE_PATH": "/ortimg-test-cache", "CUDA_DISABLE_PTX_JIT": "1"}
    command: list[str | Path] = [verifier.program, "--root", root, "--tier", "run"]
    try:
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, check=False)
    finally:
        shutil.rmtree(place)
    assert done.returncode == 1


@pytest.fixture
def image(target: Target) -> Iterator[str]:
    if target.root is not None:
        pytest.skip("an unpacked root: see the tests of roots")
    yield target.name
    subprocess.run(["docker", "image", "rm", "-f", f"{target.name}-warm-test"], check=False)


def test_an_image_is_warmed_and_runs_without_compiling(
    image: str, verifier: Verifier, tmp_path: Path
) -> None:
    from ortimg.engine.client import Engine

    course = Course(RunWish(), starts=3, seconds=300)
    outcome = of_image(image, tmp_path / "out", course, ImageWish(tag=f"{image}-warm-test"))
    if not outcome.gained:
        assert outcome.made is None
        return
    assert outcome.made is not None
    assert outcome.made.proven  # with the entrypoint where the driver must write
    assert outcome.warmth is not None
    assert outcome.made.seeded is (outcome.warmth.use is Use.WRITABLE)
    with pytest.raises(CheckFailed):
        prove_image(Engine(), image, verifier, 300)
