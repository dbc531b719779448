"""`ortimg build --gpu` and `ortimg verify --gpu` where there is a GPU, and an engine or unpacked roots."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from conftest import ROOTS, Target

from ortimg.cli import cli
from ortimg.records.record import Subject
from ortimg.records.store import FOLDER, read_file, read_records

PROJECT = Path(__file__).parents[2]


def ortimg(project: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(project), *words])


@pytest.fixture
def place(target: Target) -> str:
    return str(target.root) if target.root else target.name


def test_a_verdict_is_kept(target: Target, place: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    done = ortimg(tmp_path, "verify", place, "--gpu", "--record-file", str(file), "--json")
    assert done.exit_code == 0, done.output
    record = read_file(file)
    assert record.verdict.value == json.loads(done.stdout)["verdict"] == "pass"
    assert record.gpu is not None
    assert record.gpu.name
    assert record.gpu.driver
    assert record.subject is (Subject.ROOT if target.root else Subject.IMAGE)
    assert (record.digest is None) is (target.root is not None)
    assert f"-cuda{record.versions.cuda}-" in str(record.identity.identifier)
    assert not (tmp_path / FOLDER).exists()


def test_the_first_gpu_by_its_number(place: str, tmp_path: Path) -> None:
    done = ortimg(tmp_path, "verify", place, "--gpu", "--gpu-device", "0", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["run"]["device"]["id"] == 0


def test_a_gpu_that_is_not_there_is_the_machines_fault(place: str, tmp_path: Path) -> None:
    device = "GPU-00000000-0000-0000-0000-000000000000"
    done = ortimg(tmp_path, "verify", place, "--gpu", "--gpu-device", device, "--record-file", "r.json")
    assert done.exit_code == 3, done.output
    assert not Path("r.json").exists()


@pytest.mark.skipif(
    ROOTS in os.environ or shutil.which("docker") is None, reason="NOT TESTED ON A GPU: no engine here"
)
def test_a_build_runs_what_it_built(target: Target, tmp_path: Path) -> None:
    """The cell is built already: it runs, and is tier run from then on."""
    identifier = target.name.rpartition(":")[2]
    for name in ("images.yaml", "images.lock"):
        shutil.copy(PROJECT / name, tmp_path / name)
    done = ortimg(tmp_path, "build", identifier, "--gpu", "--json")
    assert done.exit_code == 0, done.output
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["tier"] == "run"
    (record,) = read_records(tmp_path).records
    assert record.digest == cell["digest"]
    (again,) = json.loads(ortimg(tmp_path, "build", identifier, "--json").stdout)["cells"]
    assert (again["result"], again["tier"]) == ("unchanged", "run")
