"""docker-bake.json: one target a cell, each heavy unit once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rendered import REPOSITORY, SOURCES, all_cells, all_files
from wishes import cell as wish
from wishes import images, planned

from ortimg.core.bake import bake_file, target_name
from ortimg.core.render import BAKE_FILE, render

CELLS = planned(
    images(
        include=[wish("1.16.2", "11.8"), wish("1.16.2", "11.8", base="debian13"), wish("1.17.1", "11.8")],
        tags={"latest": "1.17.1-cuda11.8-cudnn8-debian12"},
    )
).cells


def bake() -> dict[str, Any]:
    return json.loads(json.dumps(bake_file("r", CELLS)))  # type: ignore[no-any-return]


def test_a_target_for_each_cell() -> None:
    data = bake()
    names = [target_name(cell.identifier) for cell in CELLS]
    assert data["group"] == {"default": {"targets": names}}
    target = data["target"]["1_17_1-cuda11_8-cudnn8-debian12"]
    contexts = target.pop("contexts")
    assert target == {
        "context": "dockerfiles",
        "dockerfile": "1.17.1-cuda11.8-cudnn8-debian12/Dockerfile",
        "tags": ["r:1.17.1-cuda11.8-cudnn8-debian12", "r:latest"],
    }
    assert contexts.keys() == {"cuda", "ort", "ort-verify"}
    assert contexts["ort"].startswith("target:ort-1_17_1-cuda11")
    for stage, source in contexts.items():
        assert data["target"][source.removeprefix("target:")]["target"] == stage


def test_each_unit_is_a_target_once_and_no_image() -> None:
    targets = bake()["target"]
    units = {name: target for name, target in targets.items() if "target" in target}
    assert [unit["target"] for unit in units.values()] == ["cuda", "ort", "ort-verify", "ort"]
    assert all(unit["output"] == ["type=cacheonly"] for unit in units.values())
    assert not any("output" in target for name, target in targets.items() if name not in units)


def test_every_reference_is_there() -> None:
    data = json.loads(all_files()[BAKE_FILE])
    for target in data["target"].values():
        assert f"dockerfiles/{target['dockerfile']}" in all_files()
        for context in target.get("contexts", {}).values():
            assert context.removeprefix("target:") in data["target"]
    assert len(data["group"]["default"]["targets"]) == len(all_cells())


def test_names_that_bake_takes() -> None:
    """https://docs.docker.com/build/bake/reference/#target: letters, digits, `_` and `-`."""
    for name in json.loads(all_files()[BAKE_FILE])["target"]:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", name)


def test_an_empty_project_is_a_bake_file_too() -> None:
    assert json.loads(render(REPOSITORY, (), SOURCES)[BAKE_FILE]) == {
        "group": {"default": {"targets": []}},
        "target": {},
    }


def _has_buildx() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _has_buildx(), reason="there is no buildx here to read the file")
def test_buildx_reads_it_as_we_mean_it(tmp_path: Path) -> None:
    """`bake --print` needs no engine."""
    (tmp_path / BAKE_FILE).write_text(json.dumps(bake()))
    process = subprocess.run(
        ["docker", "buildx", "bake", "--print"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    seen = json.loads(process.stdout)
    assert seen["group"]["default"]["targets"] == bake()["group"]["default"]["targets"]
    for name in bake()["group"]["default"]["targets"]:
        assert seen["target"][name]["contexts"] == bake()["target"][name]["contexts"]
