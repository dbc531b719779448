"""Files that a person wrote, in every wrong state: a line and exit code 2, never a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from wishes import cell, images

from ortimg.cli import cli

OWN = ["images.yaml", "images.lock", "catalogue/ort.yaml", "templates/stages/image.j2"]


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def a_loop(path: Path) -> None:
    path.symlink_to(path.name)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("spoil", [a_folder, a_link_to_nothing, a_loop, a_pipe, a_device, no_text])
def test_a_file_that_is_no_text(tmp_path: Path, name: str, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name != "images.yaml":
        (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    spoil(path)
    result = CliRunner().invoke(cli, ["-C", str(tmp_path), "render", "--check"])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert name in result.stderr
    assert len(result.stderr.splitlines()) <= 2
