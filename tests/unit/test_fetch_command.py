"""`ortimg fetch` where nothing can be had: every input with its reasons, JSON alone on stdout, exit 3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from wishes import cell, images, planned

from ortimg.commands.fetch import ask_for
from ortimg.core.model import Base, CudaSet, Flavour, Origin, OrtRelease
from ortimg.inputs.probe import Upstream
from ortimg.inputs.result import Fetched, Kind, Missing, Result

CONFIG = """\
repository: onnxruntime-gpu
matrix:
  ort: ["1.17.1"]
  cuda: ["12.2"]
  cudnn: ["8"]
  base: [ubuntu22.04]
  flavour: [runtime]
"""
KEYS = [("base", "ubuntu22.04"), ("ort", "1.17.1-cuda12")]  # gigabytes of CUDA would be of no use


def fetch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "images.yaml").write_text(CONFIG)
    nowhere = {
        "HTTP_PROXY": "http://127.0.0.1:1",
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "ORTIMG_CACHE": str(folder / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
    }
    command = (sys.executable, "-m", "ortimg", "-C", str(folder), "fetch", *arguments)
    return subprocess.run(command, env=os.environ | nowhere, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    return fetch(tmp_path_factory.mktemp("project"), "--json")


def test_json_lists_every_input(result: subprocess.CompletedProcess[str]) -> None:
    data = json.loads(result.stdout)
    assert data["schema"] == 1
    assert [(row["kind"], row["key"]) for row in data["inputs"]] == KEYS
    assert {row["result"] for row in data["inputs"]} == {"missing"}
    causes = {row["kind"]: row["cause"] for row in data["inputs"]}
    assert "Ubuntu 22.04 cannot be bootstrapped" in causes["base"]
    assert "no fallback holds ONNX Runtime 1.17.1 for CUDA 12" in causes["ort"]


def test_exit_code_and_last_lines(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 3
    assert "2 of 2 inputs could not be had: base ubuntu22.04, ort 1.17.1-cuda12" in result.stderr
    assert "ORTIMG_RELEASE_MIRROR" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    closed = fetch(tmp_path)
    assert closed.returncode == 3
    assert "the cache cannot be written" in closed.stderr
    assert "ORTIMG_CACHE" in closed.stderr
    assert closed.stdout.count("the cache cannot be written") == 1  # ort
    assert "Traceback" not in closed.stderr


class StubFetcher:
    """Has the bases and archives that it is told of; remembers which CUDA sets were asked for."""

    def __init__(self, *there: str, answers: bool) -> None:
        self.there = there
        self.cuda_sets: list[str] = []
        self.upstream = Upstream() if answers else Upstream(releases="no answer", hub="no answer")

    def _result(self, kind: Kind, key: str) -> Future[Result]:
        future: Future[Result] = Future()
        found = Fetched(kind=kind, key=key, origin=Origin.UPSTREAM)
        future.set_result(found if key in self.there else Missing(kind=kind, key=key, reasons=("none",)))
        return future

    def ort(self, row: OrtRelease) -> Future[Result]:
        return self._result(Kind.ORT, row.key)

    def base(self, row: Base, _flavour: Flavour) -> Future[Result]:
        return self._result(Kind.BASE, row.name)

    def cuda(self, row: CudaSet) -> Future[Result]:
        self.cuda_sets.append(row.key)
        return self._result(Kind.CUDA, row.key)


def test_what_may_be_had_where_nothing_upstream_answers() -> None:
    away = Upstream(releases="no answer", hub="no answer")

    def may(*wish: str, **more: str) -> bool:
        return away.may_have(planned(images(include=[cell(*wish, **more)])).cells[0])

    assert may("1.16.2", "11.8")  # Maven, and a base that can be bootstrapped
    assert not may("1.16.2", "11.8", base="rocky9")
    assert not may("1.17.3", "12.2")
    assert not may("1.17.3", "11.8")
    assert may("1.17.1", "11.8", flavour="python3.11")
    assert may("1.18.1", "11.8", flavour="python3.11")  # no fallback of its archive, but it takes the wheel


@pytest.mark.parametrize(
    ("there", "answers", "sets"),
    [
        ((), False, {"12.6-cudnn9"}),  # of the one cell that has fallbacks: its archive is asked for at once
        (("1.17.1-cuda12", "rocky9"), False, {"12.2-cudnn8", "12.6-cudnn9"}),  # they are in the cache
        (("1.17.1-cuda12",), False, {"12.6-cudnn9"}),
        ((), True, {"12.2-cudnn8", "12.6-cudnn9"}),
    ],
)
def test_a_cuda_set_that_no_image_can_use_is_not_fetched(
    there: tuple[str, ...], answers: bool, sets: set[str]
) -> None:
    rows = [cell("1.17.1", "12.2", base="rocky9"), cell("1.23.2", "12.6", "9")]
    stub = StubFetcher(*there, answers=answers)
    ask_for(stub, planned(images(include=rows)).cells)  # type: ignore[arg-type]
    assert set(stub.cuda_sets) == sets
