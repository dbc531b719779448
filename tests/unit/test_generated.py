"""Generated files on the disk: only what changed is written, only what is ours is removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from wishes import cell, images, matrix

from ortimg.cli import cli
from ortimg.core.drift import find_drift
from ortimg.errors import EnvironmentFault
from ortimg.generated import MARK, read_generated, write_generated

FIRST, SECOND = "1.16.2-cuda11.8-cudnn8-debian12", "1.16.2-cuda11.8-cudnn8-debian13"
LONG_AGO = 1_000_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two cells, rendered, every file of an old date."""
    wish(tmp_path, "debian12", "debian13")
    assert ortimg(tmp_path, "render").exit_code == 0
    for path in tree(tmp_path):
        os.utime(tmp_path / path, (LONG_AGO, LONG_AGO))
    return tmp_path


def wish(folder: Path, *bases: str) -> None:
    (folder / "images.yaml").write_text(images(matrix=matrix(["1.16.2"], ["11.8"], ["8"], [*bases])))


def ortimg(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), *arguments])


def tree(folder: Path) -> dict[str, tuple[str, float]]:
    """Path → text and time, of everything but images.yaml."""
    return {
        str(path.relative_to(folder)): (path.read_text(), path.stat().st_mtime)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "images.yaml"
    }


def dockerfile(folder: Path, identifier: str) -> Path:
    return folder / "dockerfiles" / identifier / "Dockerfile"


def test_a_second_render_writes_nothing(project: Path) -> None:
    before = tree(project)
    result = ortimg(project, "render")
    assert result.exit_code == 0
    assert f"{len(before)} files: 0 new, 0 changed, 0 removed." in result.stderr
    assert tree(project) == before


def test_only_what_changed_is_written(project: Path) -> None:
    path = dockerfile(project, FIRST)
    wanted = path.read_text()
    path.write_text(wanted.replace("debian:12-slim", "debian:12"))
    result = ortimg(project, "render")
    assert "0 new, 1 changed, 0 removed" in result.stderr
    assert path.read_text() == wanted
    written = {name for name, (_, time) in tree(project).items() if time != LONG_AGO}
    assert written == {f"dockerfiles/{FIRST}/Dockerfile"}


def test_a_cell_that_is_gone_takes_its_dockerfile_and_folder_along(project: Path) -> None:
    wish(project, "debian12")
    result = ortimg(project, "render")
    assert "0 new, 1 changed, 1 removed" in result.stderr  # docker-bake.json changed
    assert not dockerfile(project, SECOND).parent.exists()
    assert dockerfile(project, FIRST).stat().st_mtime == LONG_AGO
    assert not ortimg(project, "render", "--check").exit_code


def test_what_is_not_ours_is_left_and_named(project: Path) -> None:
    mine = dockerfile(project, "mine")
    mine.parent.mkdir()
    mine.write_text("FROM scratch\n")
    notes = dockerfile(project, SECOND).parent / "notes.txt"
    notes.write_text(f"{MARK}: the mark alone makes no Dockerfile of it\n")
    binary = project / "dockerfiles" / "data.bin"
    binary.write_bytes(b"\xff\x00\xfe")
    wish(project, "debian12")
    result = ortimg(project, "render")
    assert result.exit_code == 0
    assert "1 removed" in result.stderr
    left = [line.partition(":")[0] for line in result.stderr.splitlines() if "left alone" in line]
    assert left == [
        "dockerfiles/1.16.2-cuda11.8-cudnn8-debian13/notes.txt",
        "dockerfiles/data.bin",
        "dockerfiles/mine/Dockerfile",
    ]
    assert mine.exists()
    assert notes.exists()
    assert binary.read_bytes() == b"\xff\x00\xfe"
    assert not dockerfile(project, SECOND).exists()
    assert ortimg(project, "render", "--check").exit_code == 1, "they are orphans all the same"


def test_check_writes_nothing_and_prints_the_patch(project: Path) -> None:
    dockerfile(project, FIRST).write_text("stale\n")
    (project / "docker-bake.json").unlink()
    dockerfile(project, "1.0").parent.mkdir()
    dockerfile(project, "1.0").write_text(f"{MARK}\n")
    before = tree(project)
    result = ortimg(project, "render", "--check")
    assert result.exit_code == 1
    assert tree(project) == before
    assert "1 stale, 1 missing, 1 orphaned" in result.stderr
    assert f"--- a/dockerfiles/{FIRST}/Dockerfile\n" in result.stdout
    assert "--- /dev/null\n+++ b/docker-bake.json\n" in result.stdout
    assert "--- a/dockerfiles/1.0/Dockerfile\n+++ /dev/null\n" in result.stdout


def test_an_error_in_the_last_cell_leaves_the_tree_as_it_was(project: Path) -> None:
    folder = project / "templates" / "stages"
    folder.mkdir(parents=True)
    # good for two cells, and different from what is there; bad for the last one
    (folder / "tools.j2").write_text(
        "FROM scratch AS tools\n{% if base.name == 'debian13' %}{{ oops }}{% endif %}\n"
    )
    wish(project, "debian12", "ubuntu24.04", "debian13")
    before = tree(project)
    result = ortimg(project, "render")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"templates/stages/tools.j2:2: 'oops' is undefined (cell {SECOND})\n"
    assert tree(project) == before


def test_a_file_in_the_place_of_a_folder(project: Path) -> None:
    (project / "dockerfiles" / FIRST / "Dockerfile").unlink()
    (project / "dockerfiles" / FIRST).rmdir()
    (project / "dockerfiles" / FIRST).write_text("mine\n")
    result = ortimg(project, "render")
    assert result.exit_code == 3
    assert "Traceback" not in result.stderr
    assert f"dockerfiles/{FIRST}" in result.stderr
    assert (project / "dockerfiles" / FIRST).read_text() == "mine\n"


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dockerfiles").mkdir()
    path = tmp_path / "dockerfiles" / "f"
    path.write_text("old\n")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "replace", fail)
    wanted = {"dockerfiles/f": "new\n"}
    with pytest.raises(EnvironmentFault, match="cannot be written: No space left on device"):
        write_generated(tmp_path, wanted, find_drift(wanted, read_generated(tmp_path)))
    assert path.read_text() == "old\n"
    assert [p.name for p in path.parent.iterdir()] == ["f"], "no temporary file is left"


def test_files_can_be_read_by_others(project: Path) -> None:
    assert {oct((project / path).stat().st_mode & 0o777) for path in tree(project)} == {"0o644"}


def test_a_cell_of_include_is_rendered_like_one_of_the_matrix(tmp_path: Path) -> None:
    wish(tmp_path, "debian12")
    ortimg(tmp_path, "render")
    text = dockerfile(tmp_path, FIRST).read_text()
    (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    assert not ortimg(tmp_path, "render", "--check").exit_code
    assert dockerfile(tmp_path, FIRST).read_text() == text
