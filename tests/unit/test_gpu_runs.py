"""The kept reports of runs on a GPU: whole, of no machine in particular, and what their table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ortimg.verify.report import parse_report

RUNS = Path(__file__).resolve().parents[2] / "docs" / "gpu-runs"
REPORTS = sorted(RUNS.glob("*/*.json"))


def test_there_are_reports_of_three_cells_that_passed() -> None:
    passed = {path.parent.name for path in REPORTS if path.name == "run.json"}
    assert len(passed) >= 3


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_report_is_whole_and_in_the_table(path: Path) -> None:
    report = parse_report(path.read_bytes())
    assert report.target == path.parent.name
    assert not re.search(r"/(tmp|root|home|work)/|hostname", path.read_text())
    table = (RUNS / "README.md").read_text()
    (row,) = [line for line in table.splitlines() if f"]({path.parent.name}/{path.name})" in line]
    assert row.split("|")[3].strip() == str(int(report.exit_code))
