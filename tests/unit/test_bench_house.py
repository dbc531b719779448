"""The harness ends what it started, and asks for nothing that it does not measure with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import disk
from bench.parts import PARTS
from bench.serving import serving

ROOT = Path(__file__).parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_part_that_is_none_is_refused_with_those_that_there_are() -> None:
    done = bench("--parts", "naive speed")
    assert done.returncode == 2
    assert "no such part: speed" in done.stderr
    assert " ".join(PARTS) in done.stderr


def test_a_cell_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "ORTIMG_BENCH_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "bench", "--cells", "9.9.9-*"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "9.9.9-*" in done.stderr
    assert "Traceback" not in done.stderr


def test_bytes_on_the_disk_count_a_file_of_two_names_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(os.urandom(100_000))
    alone = disk.bytes_below(tmp_path)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert disk.bytes_below(tmp_path) == alone
    assert alone >= 100_000


def test_the_naive_sides_files_are_served_by_name_and_gone_afterwards(tmp_path: Path) -> None:
    import urllib.request

    (tmp_path / "blob").write_bytes(b"wheel")
    with serving(tmp_path / "files", {"a-1-py3-none-any.whl": tmp_path / "blob"}) as address:
        with urllib.request.urlopen(f"{address}/a-1-py3-none-any.whl") as answer:
            assert answer.read() == b"wheel"
        with urllib.request.urlopen(f"{address}/") as answer:
            assert b"a-1-py3-none-any.whl" in answer.read()  # the list that pip reads
    assert not (tmp_path / "files").exists()
