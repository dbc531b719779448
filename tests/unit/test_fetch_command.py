"""`ortimg fetch` where nothing can be had: every input with its reasons, JSON alone on stdout, exit 3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = """\
repository: onnxruntime-gpu
matrix:
  ort: ["1.17.1"]
  cuda: ["12.2"]
  cudnn: ["8"]
  base: [ubuntu22.04]
  flavour: [runtime]
"""
KEYS = [("base", "ubuntu22.04"), ("cuda", "12.2-cudnn8"), ("ort", "1.17.1-cuda12")]


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
    assert "pip cannot download nvidia-cublas-cu12" in causes["cuda"]
    assert "no fallback holds ONNX Runtime 1.17.1 for CUDA 12" in causes["ort"]


def test_exit_code_and_last_lines(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 3
    assert (
        "3 of 3 inputs could not be had: base ubuntu22.04, cuda 12.2-cudnn8, ort 1.17.1-cuda12"
        in result.stderr
    )
    assert "ORTIMG_RELEASE_MIRROR" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    closed = fetch(tmp_path)
    assert closed.returncode == 3
    assert "the cache cannot be written" in closed.stderr
    assert "ORTIMG_CACHE" in closed.stderr
    assert closed.stdout.count("the cache cannot be written") == 2  # cuda and ort; not for each wheel
    assert "Traceback" not in closed.stderr
