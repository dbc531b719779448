"""Real cells whose model runs on the CPU, as far as a machine without a GPU can go."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from real import RealCell, make_real_cell, ortimg

from ortimg.core.model import Tier
from ortimg.engine.client import Engine
from ortimg.verify.binary import Verifier
from ortimg.verify.image import verify_image
from ortimg.verify.report import RunReport, Verdict
from ortimg.verify.wish import Provider, RunWish

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))
import gpu_models  # small models, of use here too

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

LIMIT = 60  # seconds; a container of these images starts and ends in a few


@pytest.fixture(scope="module")
def python_cell(tidy_engine: Engine) -> RealCell:
    """1.17.1 as a wheel, which has no libonnxruntime.so."""
    return make_real_cell(tidy_engine, "1.17.1-cuda11.8-cudnn8-debian12-python3.11")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that the image's user can read: pytest's own are private."""
    tmp_path.chmod(0o755)
    return tmp_path


def test_the_wheel_computes_what_the_archive_computes(
    real_cell: RealCell, python_cell: RealCell, verifier: Verifier, place: Path
) -> None:
    """Through Python and through C, from the same inputs, by two releases."""
    wish = RunWish(provider=Provider.CPU, save_outputs=place / "saved", runs=3)
    first = verify_image(Engine(), real_cell.reference, Tier.RUN, verifier, wish=wish)
    assert (first.verdict, first.tier) == (Verdict.PASS, Tier.LOAD), first.failures
    wish = RunWish(provider=Provider.CPU, reference=place / "saved", runs=3)
    second = verify_image(Engine(), python_cell.reference, Tier.RUN, verifier, wish=wish)
    assert (second.verdict, second.tier) == (Verdict.PASS, Tier.LOAD), second.failures
    assert isinstance(second.run, RunReport)
    assert (second.run.ort, second.run.provider) == ("1.17.1", "cpu")
    assert second.run.runs is not None
    assert second.run.runs.count == 3
    assert second.run.reference is not None
    assert second.run.reference.ort == "1.16.2"
    assert second.run.reference.largest_relative_error is not None
    assert second.run.reference.largest_relative_error < 1e-5


def test_a_model_of_the_user_through_python(python_cell: RealCell, verifier: Verifier, place: Path) -> None:
    wish = RunWish(
        model=gpu_models.embedding(place), shapes=("ids=3x7", "mask=3x7"), provider=Provider.CPU, runs=2
    )
    report = verify_image(Engine(), python_cell.reference, Tier.RUN, verifier, wish=wish)
    assert report.verdict is Verdict.PASS, report.failures
    assert isinstance(report.run, RunReport)
    assert [(one.type, one.shape) for one in report.run.inputs] == [("int64", "3x7"), ("bool", "3x7")]


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor: nothing can be taken away")
def test_a_container_on_some_processors_has_no_word_of_affinity(
    real_cell: RealCell, verifier: Verifier, place: Path
) -> None:
    """ONNX Runtime pins threads to processors that the container has not, unless told how many to take.

    The hang makes the verifier show the last words of ONNX Runtime's log.
    """
    gpu_models.endless(place)
    shown = Engine().run(
        real_cell.reference,
        ["--tier", "run", "--provider", "cpu", "--model", "/models/endless.onnx", "--timeout", "2",
         "--stub", "/verifier/libcuda.so.1"],
        limit=LIMIT,
        entrypoint="/verifier/ort-verify",
        volumes={
            str(verifier.folder): {"bind": "/verifier", "mode": "ro"},
            str(place): {"bind": "/models", "mode": "ro"},
        },
        cpuset_cpus="0",
        nano_cpus=500_000_000,
    )  # fmt: skip
    assert shown.exit_code == 1, shown.stderr
    words = 'hang: it did not end within 2 s and was stopped at "run for the first time", last words: nothing'
    assert words in shown.stdout.replace('\\"', '"')
    assert "affinity" not in shown.stdout + shown.stderr


def test_bench_on_an_engine_without_a_gpu(real_cell: RealCell, place: Path) -> None:
    model = str(gpu_models.chain(place))
    words = ["bench", real_cell.reference, "--model", model, "--runs", "5", "--json"]
    done = ortimg(*words, "--batch", "1,4")
    told = json.loads(done.stdout)
    if not Path("/dev/nvidiactl").exists():
        assert done.returncode == 3, done.stderr
        assert told["bench"]["cuda_not_measured"].startswith("no GPU here: the engine gives no GPU")
    points = [(one["batch"], one["provider"]) for one in told["bench"]["points"] if one["provider"] == "cpu"]
    assert points == [(1, "cpu"), (4, "cpu")]
    alone = ortimg(*words, "--cpu-only", "--plot", str(place / "plot.svg"))
    assert alone.returncode == 0, alone.stderr
    assert "<svg" in (place / "plot.svg").read_text()
