"""The wheel works alone: nothing of the repository is needed beside it."""

from __future__ import annotations

import json
import subprocess
from email.parser import BytesParser
from pathlib import Path

import pytest
from installed import BIN, ROOT, Installed, contents

from ortimg import __version__
from ortimg.project import load_project
from ortimg.rendering import render_project

CELL = "1.23.2-cuda12.6-cudnn9-debian12"  # is in both, this repository and a new one


def source_files() -> dict[str, bytes]:
    """What must be in the wheel: the package, and the templates inside it."""
    found = {}
    for folder, place in ((ROOT / "ortimg", "ortimg"), (ROOT / "templates", "ortimg/templates")):
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found[f"{place}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return found


def test_everything_is_inside_and_nothing_else(installed: Installed) -> None:
    inside = contents(installed.wheel)
    package = {name: data for name, data in inside.items() if not name.startswith("ortimg-")}
    assert package == source_files()
    assert {
        "ortimg/data/ort.yaml",
        "ortimg/data/images.schema.json",
        "ortimg/data/init/gitignore",
        "ortimg/templates/Dockerfile.j2",
        "ortimg/context/tools/requirements.txt",
        "ortimg/verify/src/main.c",
        "ortimg/verify/src/cJSON.LICENSE",
        "ortimg/verify/model/verify.onnx",
        "ortimg/py.typed",
    } <= package.keys()
    assert inside[f"ortimg-{__version__}.dist-info/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_what_the_wheel_says_of_itself(installed: Installed) -> None:
    inside = contents(installed.wheel)
    metadata = BytesParser().parsebytes(inside[f"ortimg-{__version__}.dist-info/METADATA"])
    assert (metadata["Name"], metadata["Version"]) == ("ortimg", __version__)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    needs = metadata.get_all("Requires-Dist") or []
    assert needs
    assert all("<" in need or ">=" in need for need in needs)
    entry = inside[f"ortimg-{__version__}.dist-info/entry_points.txt"].decode()
    assert "ortimg = ortimg.__main__:main" in entry


def test_it_is_the_wheel_that_runs(installed: Installed, tmp_path: Path) -> None:
    where = subprocess.run(
        [
            str(installed.python),
            "-I",  # no PYTHONPATH
            "-c",
            "import ortimg, ortimg.sources as s; print(ortimg.__file__, s.builtin_templates())",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(Path(place).is_relative_to(installed.python.parents[1]) for place in where.split())
    assert len(where.split()) == 2
    assert installed("--version", cwd=tmp_path).stdout == f"ortimg, version {__version__}\n"


@pytest.fixture(scope="module")
def project(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    for words in (["init"], ["render"]):
        process = installed(*words, cwd=folder)
        assert process.returncode == 0, process.stderr
    return folder


def test_list(installed: Installed, project: Path) -> None:
    data = json.loads(installed("list", "--json", cwd=project).stdout)
    assert data["schema"] == 1
    assert [cell["identifier"] for cell in data["cells"]] == [CELL, CELL.replace("debian12", "ubuntu24.04")]


def test_files_are_those_of_this_repository(project: Path) -> None:
    """Byte for byte, so that both build the same units."""
    ours = render_project(load_project(ROOT))
    theirs = {
        str(path.relative_to(project)): path.read_text("utf-8")
        for path in sorted((project / "dockerfiles").rglob("*"))
        if path.is_file()
    }
    assert f"dockerfiles/{CELL}/Dockerfile" in theirs
    shared = theirs.keys() & ours.keys()
    assert {path for path in ours if path.endswith((".c", ".h", ".py", ".txt"))} <= shared
    assert {path: theirs[path] for path in shared} == {path: ours[path] for path in shared}
    others = theirs.keys() - shared
    assert others == {f"dockerfiles/{CELL.replace('debian12', 'ubuntu24.04')}/Dockerfile"}


def test_hadolint(project: Path) -> None:
    files = [str(path) for path in project.glob("dockerfiles/*/Dockerfile")]
    assert len(files) == 2
    process = subprocess.run(
        [str(BIN / "hadolint"), *files], cwd=project, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout


def test_the_makefile_calls_the_ortimg_on_path(installed: Installed, project: Path) -> None:
    path = f"{installed.python.parent}:/usr/bin:/bin"
    process = subprocess.run(
        ["make", "check"], cwd=project, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert "files are up to date" in process.stderr


def test_the_makefile_takes_uvx_where_there_is_no_ortimg(project: Path) -> None:
    process = subprocess.run(
        ["make", "-n", "images"],
        cwd=project,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == f"set -f; uvx ortimg@{__version__} build --available *\n"


def test_templates_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    assert installed("init", "--templates", cwd=tmp_path).returncode == 0
    copied = {str(path.relative_to(tmp_path)) for path in (tmp_path / "templates").rglob("*.j2")}
    assert copied == {
        f"templates/{p.relative_to(ROOT / 'templates')}" for p in (ROOT / "templates").rglob("*.j2")
    }
