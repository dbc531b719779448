"""The commands of the README, run as they stand, in the README's order, in a fresh clone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from readme import ROOT, RUN, blocks

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

LIMIT = 3600  # seconds for one block; `make images` builds everything where nothing is there yet


def test_every_block_that_says_so_is_run(tmp_path: Path) -> None:
    clone = tmp_path / "ortimg"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    # as in a new shell: without this run's virtual environment
    environment = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")
    }
    environment.pop("MAKEFLAGS", None)
    environment.pop("MAKELEVEL", None)
    wanted = [block for block in blocks((clone / "README.md").read_text("utf-8")) if block.info == RUN]
    assert wanted
    for block in wanted:
        process = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        said = f"README.md:{block.line}\n{block.text}\n{process.stdout[-4000:]}\n{process.stderr[-4000:]}"
        assert process.returncode == 0, said
    state = ["git", "status", "--porcelain"]
    left = subprocess.run(state, cwd=clone, capture_output=True, text=True, check=True).stdout
    assert left == "", f"what is committed is not what the commands make:\n{left}"
