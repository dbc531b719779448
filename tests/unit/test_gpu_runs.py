"""The kept reports of runs on a GPU: whole, of no machine in particular, and what their table says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ortimg.core import warm_record
from ortimg.records import record
from ortimg.verify.report import parse_report

RUNS = Path(__file__).resolve().parents[2] / "docs" / "gpu-runs"
KEPT = sorted(RUNS.glob("*/*.json"))
OTHERS = {  # name of the file → whose output it is
    "warm": "warm",
    "record": "verify --gpu --record-file",
    "compare": "compare",
    "doctor": "doctor",
    "service": "a load on an example",
    "guide": "blocks of docs/guide, which tests/docs holds against the pages",
}


def kind(path: Path) -> str:
    return path.stem.split("-")[0] if path.stem.split("-")[0] in OTHERS else "report"


def named(*kinds: str) -> pytest.MarkDecorator:
    paths = [path for path in KEPT if kind(path) in kinds]
    return pytest.mark.parametrize("path", paths, ids=lambda path: f"{path.parent.name}/{path.stem}")


def row(path: Path) -> list[str]:
    table = (RUNS / "README.md").read_text()
    (line,) = [line for line in table.splitlines() if f"]({path.parent.name}/{path.name})" in line]
    return [cell.strip() for cell in line.split("|")]


def test_there_are_reports_of_three_cells_that_passed() -> None:
    passed = {path.parent.name for path in KEPT if path.name == "run.json"}
    assert len(passed) >= 3


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", r"all (\d+) nodes of its model on CUDA with 1.16.2 and 1.18.0, all (\d+) with 1.23.2"),
        ("README.zh-CN.md", r"1.16.2 和 1.18.0 为 (\d+) 个.1.23.2 为 (\d+) 个"),
    ],
)
def test_what_the_front_page_quotes_is_in_the_reports(page: str, words: str) -> None:
    text = " ".join((RUNS.parents[1] / page).read_text().split())
    quoted = re.search(words, text)
    assert quoted, f"{page} quotes no run"
    runs = [json.loads(path.read_text())["run"] for path in KEPT if path.name == "run.json"]
    on_cuda = {run["ort"]: (run["nodes"]["cuda"], run["nodes"]["cpu"]) for run in runs}
    assert on_cuda["1.16.2"] == on_cuda["1.18.0"] == (int(quoted[1]), 0)
    assert on_cuda["1.23.2"] == (int(quoted[2]), 0)
    largest = max(output["relative_error"] for run in runs for output in run["outputs"])
    assert f"{largest:.1e}" in text


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_names_no_path_of_the_machine_and_is_in_the_table(path: Path) -> None:
    assert not re.search(r"/(tmp|root|home|work)/|hostname", path.read_text())
    assert row(path)


@named("report")
def test_a_report_is_whole_and_ended_as_the_table_says(path: Path) -> None:
    report = parse_report(path.read_bytes())
    assert report.target == path.parent.name
    assert row(path)[3] == str(int(report.exit_code))


@named("warm")
def test_a_warm_up_proves_that_the_cache_is_enough(path: Path) -> None:
    warmth = warm_record.judge(warm_record.parse_record(path.read_bytes()))
    assert not warmth.native
    assert warmth.ratio is not None and warmth.ratio <= 1.3
    assert row(path)[3] == "0"


@named("record")
def test_a_record_is_one_that_verify_takes_in(path: Path) -> None:
    kept = record.parse_record(path.read_bytes(), path.name)
    assert kept.identity.identifier == path.parent.name


@named("compare", "doctor")
def test_what_a_command_printed_ended_as_the_table_says(path: Path) -> None:
    printed = json.loads(path.read_text())
    exits = {"pass": 0, "same": 0, "compatible": 0, "action-needed": 1, "fail": 1, "environment": 3}
    assert row(path)[3] == str(exits[printed["verdict"]])
