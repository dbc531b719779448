"""`ortimg report` on a real engine: what it reads of images that are there, and of those that only say so."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ortimg.cli import cli
from ortimg.core.tags import UNITS
from ortimg.engine.client import Engine, Image
from ortimg.records.record import Identity, Subject, make_record
from ortimg.records.store import write_record
from ortimg.verify.report import parse_report

pytestmark = pytest.mark.engine
ROOT = Path(__file__).parents[2]
REPOSITORY = "localhost/ortimg-test/report"
ONE, TWO, FOREIGN = (f"1.16.2-cuda11.8-cudnn8-{base}" for base in ("debian12", "debian13", "ubuntu22.04"))
UNIT = f"{UNITS}/cuda:report-test-0123456789abcdef"
SIZE = 3_000_000  # bytes of the one file of an image
Make = Callable[..., Image]


@pytest.fixture
def make(engine: Engine, tmp_path: Path) -> Iterator[Make]:
    """Makes an image of one file of zeros with labels, in a second."""
    made = []

    def image(reference: str, **labels: str) -> Image:
        tar = tmp_path / "root.tar"
        with tarfile.open(tar, "w") as archive:
            info = tarfile.TarInfo("zeros")
            info.size = SIZE
            archive.addfile(info, io.BytesIO(bytes(SIZE)))
        lines = [f"LABEL ortimg.{key}={json.dumps(value)}" for key, value in labels.items()]
        made.append(reference)
        return engine.import_root(tar, reference, lines)

    yield image
    for reference in made:
        engine.remove(reference)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    axes = {"ort": ["1.16.2"], "cuda": ["11.8"], "cudnn": ["8"]}
    axes["base"] = ["debian12", "debian13", "ubuntu22.04"]
    (tmp_path / "images.yaml").write_text(json.dumps({"repository": REPOSITORY, "matrix": axes}))
    return tmp_path


def test_images_of_the_engine_and_their_layers(make: Make, project: Path) -> None:
    one = make(f"{REPOSITORY}:{ONE}", identifier=ONE, tier="load", origin="ort=maven,base=<b>bold</b>")
    make(f"{REPOSITORY}:{TWO}", identifier=TWO, tier="run, it says")
    make(f"{REPOSITORY}:{FOREIGN}", identifier="of somebody else", tier="run")
    make(UNIT)
    run = parse_report((ROOT / "docs" / "gpu-runs" / ONE / "run.json").read_bytes())
    identity = Identity(identifier=ONE)
    write_record(
        project, make_record(run, Subject.IMAGE, one.digest, identity, "1.2.3", "2026-12-02T00:00:00Z")
    )
    done = CliRunner().invoke(cli, ["--project", str(project), "report", "-o", "-"])
    assert done.exit_code == 0, done.output
    page = done.stdout
    assert cell(page, ONE).count("✓ ran") == 1
    assert '<td class="tier">run</td>' in cell(page, ONE)  # by the record
    assert '<td class="tier">not told</td>' in cell(page, TWO)  # a tier that is none
    assert '<td class="tier">not built here</td>' in cell(page, FOREIGN)  # somebody else's image
    assert "2 images of 6.0" in page
    assert "cuda report-test" in page
    assert "base: &lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>" not in page


def cell(page: str, identifier: str) -> str:
    """The row of the grid."""
    return page.split(f'<tr data-cell="{identifier}">')[1].split("</tr>")[0]
