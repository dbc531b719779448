"""Whole rendered files, held against copies that a person has read.

After a wanted change: `pytest tests/golden --update-golden`, then read `git diff tests/golden`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ortimg.core.cells import plan
from ortimg.core.config import parse_config
from ortimg.core.render import Pins, render
from ortimg.data import read_catalogue
from ortimg.sources import read_sources

EXPECTED = Path(__file__).parent / "expected"

TWO_CELLS = """
repository: registry.example.com/team/onnxruntime-gpu
include:
  - {ort: "1.16.2", cuda: "11.8", cudnn: "8", base: debian12}
  - {ort: "1.16.2", cuda: "11.8", cudnn: "8", base: debian13}
tags: {latest: "1.16.2-cuda11.8-cudnn8-debian13"}
"""
ONE_CELL = """
repository: onnxruntime-gpu
include:
  - {ort: "%s", cuda: "%s", cudnn: "%s", base: %s, flavour: %s}
"""
# Of no real image: what a lock holds when a base was resolved.
RESOLVED = Pins(base_digest={"ubuntu22.04": "sha256:" + "0123456789abcdef" * 4})

DOCKERFILES = {
    "1.16.2-cuda11.8-cudnn8-debian12": None,
    "1.18.0-cuda12.2-cudnn8-rocky9": None,  # its archive's hash is not known
    "1.23.2-cuda12.6-cudnn9-debian13": None,
    "1.23.2-cuda12.6-cudnn9-debian13-devel": None,
    "1.17.1-cuda11.8-cudnn8-debian12-python3.11": None,
    "1.18.0-cuda11.8-cudnn8-rocky9-python3.9": None,
    "1.17.1-cuda12.2-cudnn8-ubuntu22.04": RESOLVED,
    "1.30.0-cuda13.0-cudnnnone-debian12": None,
}


def files(images: str, pins: Pins | None = None) -> Mapping[str, str]:
    planned = plan(parse_config(images, "images.yaml"), read_catalogue())
    return render(planned.repository, planned.cells, read_sources(), pins)


Compare = Callable[[str, str], None]


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Compare:
    """Hold a text against the file of that name, or write the file."""

    def check(name: str, text: str) -> None:
        path = EXPECTED / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        expected = path.read_text("utf-8") if path.is_file() else ""
        if text != expected:
            shown = str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
            diff = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), shown, "rendered now", lineterm="", n=2
            )
            told = "\n".join(diff)
            pytest.fail(f"{told}\n\nIf this is wanted: pytest tests/golden --update-golden", pytrace=False)

    return check


@pytest.mark.parametrize("identifier", DOCKERFILES)
def test_dockerfile(identifier: str, compare: Compare) -> None:
    ort, cuda, cudnn, base, flavour = (*identifier.split("-"), "runtime")[:5]
    images = ONE_CELL % (ort, cuda.removeprefix("cuda"), cudnn.removeprefix("cudnn"), base, flavour)
    rendered = files(images, DOCKERFILES[identifier])
    compare(f"{identifier}.Dockerfile", rendered[f"dockerfiles/{identifier}/Dockerfile"])


def test_bake_file(compare: Compare) -> None:
    compare("two-cells.docker-bake.json", files(TWO_CELLS)["docker-bake.json"])


def test_which_files_there_are() -> None:
    """`expected/` holds nothing that no test reads."""
    names = {f"{identifier}.Dockerfile" for identifier in DOCKERFILES} | {"two-cells.docker-bake.json"}
    assert {path.name for path in EXPECTED.iterdir()} == names


def test_the_expected_files_show_what_they_are_for() -> None:
    """So that an update without reading cannot make them useless."""
    unknown = (EXPECTED / "1.18.0-cuda12.2-cudnn8-rocky9.Dockerfile").read_text()
    assert "--checksum" not in unknown
    assert "# No public source states this archive's sha256" in unknown
    resolved = (EXPECTED / "1.17.1-cuda12.2-cudnn8-ubuntu22.04.Dockerfile").read_text()
    assert f"FROM ubuntu:22.04@{RESOLVED.base_digest['ubuntu22.04']} AS base\n" in resolved
    assert "ADD --checksum=sha256:" in resolved
    bake = json.loads((EXPECTED / "two-cells.docker-bake.json").read_text())
    assert len(bake["group"]["default"]["targets"]) == 2
