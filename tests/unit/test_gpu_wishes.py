"""`gpus:` in images.yaml: nothing is left out for them, cells that they do not suit are warned of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hosts import DRIVERS, NAMES
from wishes import cell, images, planned

from ortimg.cli import cli
from ortimg.core.gpu_wishes import gpu_warnings

OLD = cell("1.17.1", "12.2")
NEW = cell("1.30.0", "13.0", "9")


def warned(wish: dict[str, str], *gpus: str) -> list[str]:
    return list(
        gpu_warnings(planned(images(include=[wish])).cells, [NAMES.find(gpu) for gpu in gpus], DRIVERS)
    )


def ortimg(folder: Path, text: str, *words: str) -> Result:
    (folder / "images.yaml").write_text(text)
    return CliRunner().invoke(cli, ["-C", str(folder), *words])


@pytest.mark.parametrize(
    ("wish", "gpu", "words"),
    [
        (OLD, "12.0", "may not run on compute capability 12.0: the CUDA 12.2 set has no machine code for"),
        (cell("1.16.2", "11.8"), "RTX 5090", "does not run on GeForce RTX 5090 (compute capability 12.0): "),
        (NEW, "V100", "does not run on V100 (compute capability 7.0): "),
        (cell("1.16.2", "11.8"), "H100", "starts slowly the first time on H100 (compute capability 9.0): "),
    ],
)
def test_a_gpu_that_a_cell_does_not_suit(wish: dict[str, str], gpu: str, words: str) -> None:
    (told, *_) = warned(wish, gpu)
    assert told.startswith(words)


def test_a_gpu_that_suits_is_no_word_worth() -> None:
    assert warned(OLD, "T4", "8.9") == []
    assert warned(NEW, "12.0") == []


def test_each_gpu_is_told_for_itself() -> None:
    assert len(warned(cell("1.16.2", "11.8"), "T4", "RTX 5090", "H100")) >= 2


def test_list_and_render_warn_and_leave_nothing_out(tmp_path: Path) -> None:
    text = images(include=[OLD, NEW, cell("1.17.1", "12.2", base="rocky9")], gpus=["12.0", "Tesla T4"])
    words = (
        "warning: 1.17.1-cuda12.2-cudnn8-debian12, 1.17.1-cuda12.2-cudnn8-rocky9: "
        "may not run on compute capability 12.0: the CUDA 12.2 set"
    )
    listed = ortimg(tmp_path, text, "list")
    assert len(listed.stdout.splitlines()) == 3
    assert words in listed.stderr
    assert words in ortimg(tmp_path, text, "render").stderr
    data = json.loads(ortimg(tmp_path, text, "list", "--json").stdout)
    assert {row["identifier"] for row in data["warnings"]} == {
        "1.17.1-cuda12.2-cudnn8-debian12",
        "1.17.1-cuda12.2-cudnn8-rocky9",
    }


def test_a_gpu_that_nobody_knows_is_told_with_its_line(tmp_path: Path) -> None:
    text = images(include=[OLD, cell("1.99.0", "12.2")], gpus=["T4", "RTX 9999"])
    result = ortimg(tmp_path, text, "list")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("images.yaml:1: include[1]: no release archive")
    assert second.startswith('images.yaml:1: gpus[1]: no GPU "RTX 9999" is known; near: ')
    assert second.endswith('; a compute capability such as "8.9" does as well')


@pytest.mark.parametrize("gpus", [[], "T4", [12.0], None])
def test_what_is_no_list_of_gpus(tmp_path: Path, gpus: object) -> None:
    result = ortimg(tmp_path, images(include=[OLD], gpus=gpus), "list")
    assert result.exit_code == 2
    assert "gpus" in result.stderr
