"""`ortimg verify` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ortimg.cli import cli
from ortimg.verify.report import parse_report

IMAGES = """\
repository: localhost/ortimg-test/never-built
matrix: {ort: ["1.16.2"], cuda: ["11.8"], cudnn: ["8"], base: [debian12, debian13], flavour: [runtime]}
"""


def verify(*words: str, project: Path | None = None) -> Result:
    options = ["-C", str(project)] if project else []
    return CliRunner().invoke(cli, [*options, "verify", *words])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "images.yaml").write_text(IMAGES)
    return tmp_path


@pytest.fixture
def rootless(tmp_path: Path) -> str:
    """A root without a C library."""
    (tmp_path / "root" / "run").mkdir(parents=True)
    return str(tmp_path / "root")


def test_one_target_is_one_report(rootless: str) -> None:
    done = verify(rootless, "--tier", "static", "--json")
    assert done.exit_code == 1
    assert parse_report(done.stdout).target == rootless


def test_words_end_with_the_fault_and_its_cure(rootless: str) -> None:
    lines = verify(rootless, "--tier", "static").stdout.splitlines()
    assert "not a glibc system" in lines[-3]
    assert "cure: take a base with glibc" in lines[-2]
    assert "FAILS tier static" in lines[-1]


@pytest.mark.engine
def test_a_selector_means_the_images_of_its_cells(project: Path) -> None:
    done = verify("1.16.2-*", "--json", project=project)
    assert done.exit_code == 3
    reports = json.loads(done.stdout)["reports"]
    assert [report["target"].partition(":")[2] for report in reports] == [
        "1.16.2-cuda11.8-cudnn8-debian12",
        "1.16.2-cuda11.8-cudnn8-debian13",
    ]
    assert {report["verdict"] for report in reports} == {"environment"}


@pytest.mark.engine
def test_an_absent_image_does_not_hide_a_failure(rootless: str, project: Path) -> None:
    done = verify(rootless, "1.16.2-*", project=project)
    assert done.exit_code == 1
    assert "FAILS" in done.stdout
    assert "the engine has no image" in done.stdout


def test_a_selector_that_matches_nothing(project: Path) -> None:
    done = verify("9.9.9-*", project=project)
    assert done.exit_code == 2
    assert "9.9.9-*" in done.output


def test_a_selector_without_a_project(tmp_path: Path) -> None:
    assert verify("1.16.2-*", project=tmp_path).exit_code == 2


def test_a_folder_that_is_not_there() -> None:
    assert verify("./never").exit_code == 2


def test_a_folder_that_is_no_root_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    for verb in ("verify", "bench", "doctor"):
        done = CliRunner().invoke(cli, [verb, str(tmp_path)])
        assert (done.exit_code, "Name a whole unpacked root" in done.output) == (2, True), done.output
