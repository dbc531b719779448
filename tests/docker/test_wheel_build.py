"""The wheel as a user gets it (`make wheel`, `pip install`), alone in a folder, on a real engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed import ROOT, Installed, contents, hatchling
from real import IDENTIFIER, RealCell, ortimg

from ortimg.engine.client import Engine

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

REPOSITORY = "localhost/ortimg-test/wheel"


def run(*command: str | Path, cwd: Path) -> str:
    process = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def from_pip(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """`make wheel` in a copy of this repository, then pip with everything that the wheel asks for."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in files:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    # this environment, as it is: make must not make it again
    run("make", "wheel", f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.ready", cwd=source)
    (wheel,) = (source / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    shutil.rmtree(source / "ortimg")  # nothing may come from here any more
    return Installed(wheel, python)


@pytest.fixture(scope="module")
def project(from_pip: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new repository with the cell that this repository has too."""
    folder = tmp_path_factory.mktemp("project")
    assert from_pip("init", cwd=folder).returncode == 0
    ort, cuda, cudnn, base = IDENTIFIER.split("-")
    text = (folder / "images.yaml").read_text()
    for old, new in (
        ('ort: ["1.23.2"]', f'ort: ["{ort}"]'),
        ('cuda: ["12.6"]', f'cuda: ["{cuda.removeprefix("cuda")}"]'),
        ('cudnn: ["9"]', f'cudnn: ["{cudnn.removeprefix("cudnn")}"]'),
        ("base: [debian12, ubuntu24.04]", f"base: [{base}]"),
        ('latest: "1.23.2-cuda12.6-cudnn9-debian12"', f'latest-of-a-test: "{IDENTIFIER}"'),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "images.yaml").write_text(text)
    return folder


@pytest.fixture
def elsewhere(project: Path, engine: Engine) -> Iterator[str]:
    """The same project under another name, so that its image is not there yet."""
    path = project / "images.yaml"
    before = path.read_text()
    path.write_text(before.replace("repository: onnxruntime-gpu", f"repository: {REPOSITORY}"))
    yield f"{REPOSITORY}:{IDENTIFIER}"
    path.write_text(before)
    for tag in (IDENTIFIER, "latest-of-a-test"):
        engine.remove(f"{REPOSITORY}:{tag}")


def units(engine: Engine, real_cell: RealCell) -> dict[str, str]:
    """Name → id of everything that is shared by cells and of the same kind as the cell's own units."""
    kinds = tuple(made.reference.rpartition("-")[0] for made in real_cell.image.units.values())
    return {
        name: row.id
        for row in engine.images(reference="localhost/ortimg/*")
        for name in row.references
        if name.startswith(kinds)
    }


def test_pip_brought_the_wheel_and_no_link_to_the_sources(from_pip: Installed, tmp_path: Path) -> None:
    where = run(from_pip.python, "-I", "-c", "import ortimg; print(ortimg.__file__)", cwd=tmp_path)
    assert where.startswith(str(from_pip.python.parents[1]))
    run(from_pip.python, "-I", "-m", "pip", "check", "--disable-pip-version-check", cwd=tmp_path)


def test_the_source_archive_makes_the_same_wheel(from_pip: Installed, tmp_path: Path) -> None:
    with tarfile.open(hatchling("sdist", ROOT, tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("ortimg-*/")
    assert contents(hatchling("wheel", source, tmp_path / "dist")) == contents(from_pip.wheel)


def test_the_image_of_this_repository_is_known_as_made_of_the_same(
    from_pip: Installed, project: Path, real_cell: RealCell
) -> None:
    """Same text, same inputs, same content: there is nothing to build."""
    assert ortimg("build", IDENTIFIER).returncode == 0  # whatever other tests made of it meanwhile
    process = from_pip("build", "--json", cwd=project)
    assert process.returncode == 0, process.stderr
    (cell,) = json.loads(process.stdout)["cells"]
    assert (cell["identifier"], cell["result"]) == (IDENTIFIER, "unchanged")
    assert (project / "dockerfiles" / IDENTIFIER / "Dockerfile").read_text() == real_cell.dockerfile


def test_under_another_name_it_is_built_from_the_same_units(
    from_pip: Installed, project: Path, real_cell: RealCell, engine: Engine, elsewhere: str
) -> None:
    before = units(engine, real_cell)
    assert {made.reference for made in real_cell.image.units.values()} <= before.keys()
    process = from_pip("build", "--json", cwd=project)
    assert process.returncode == 0, process.stderr
    data = json.loads(process.stdout)
    (cell,) = data["cells"]
    assert (cell["result"], cell["tier"], cell["image"]) == ("built", "load", elsewhere)
    assert data["seconds"]["units"] == 0, "no heavy unit was built"
    assert units(engine, real_cell) == before
    ours, theirs = engine.inspect(real_cell.reference), engine.inspect(elsewhere)
    assert ours is not None
    assert theirs is not None
    assert theirs.labels["ortimg.content"] == ours.labels["ortimg.content"]
    again = json.loads(from_pip("build", "--json", cwd=project).stdout)
    assert again["cells"][0]["result"] == "unchanged"
    verified = engine.run(elsewhere, [], limit=60)  # the image's own command
    assert verified.exit_code == 0, verified.stderr
    assert json.loads(verified.stdout)["verdict"] == "pass"
