"""`ortimg compare --model` on a real GPU: the same outputs from two versions, and what TF32 does to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpu_models
import pytest
from click.testing import CliRunner
from conftest import Target, _targets

from ortimg.cli import cli

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def pair() -> tuple[str, str]:
    """The oldest and the newest of what there is."""
    found = sorted(_targets(), key=lambda target: target.ort)
    if len({target.ort for target in found}) < 2:
        pytest.skip("NOT TESTED ON A GPU: it takes two versions")

    def word(target: Target) -> str:
        return str(target.root) if target.root else target.name

    return word(found[0]), word(found[-1])


def checks(*words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = CliRunner().invoke(cli, ["-C", "/nowhere", "compare", *words, "--json"])
    assert done.stdout, done.output
    return done.exit_code, {one["check"]: one for one in json.loads(done.stdout)["findings"]}


def test_two_versions_give_the_same_on_the_gpu(pair: tuple[str, str], tmp_path: Path) -> None:
    model = gpu_models.embedding(tmp_path)
    _, found = checks(*pair, "--model", str(model), "--shape", "ids=3x7", "--shape", "mask=3x7")
    assert found["model.outputs"]["verdict"] == "ok"
    assert " on CUDA: largest relative error" in found["model.outputs"]["evidence"]
    assert "median" in found["model.latency"]["evidence"]


def test_a_model_that_runs_on_neither_is_not_judged(pair: tuple[str, str], tmp_path: Path) -> None:
    model = gpu_models.cuda_lacks(tmp_path)
    _, found = checks(*pair, "--model", str(model))
    assert found["model.run"]["verdict"] == "skipped"
    _, allowed = checks(
        *pair, "--model", str(model), *("--allow-cpu=Atan", "--allow-cpu=Asin", "--allow-cpu=Det")
    )
    assert allowed["model.outputs"]["verdict"] == "ok"


def test_the_cpu_may_be_asked_for_all_the_same(pair: tuple[str, str], tmp_path: Path) -> None:
    model = gpu_models.embedding(tmp_path)
    _, found = checks(*pair, "--model", str(model), "--provider", "cpu")
    assert " on CPU: largest relative error" in found["model.outputs"]["evidence"]
