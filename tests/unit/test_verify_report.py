"""Reports of ort-verify are read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ortimg.core.model import Tier
from ortimg.errors import CheckFailed, ExitCode
from ortimg.verify.report import Verdict, encode, failed, parse_report, with_target


def report(**changes: Any) -> dict[str, Any]:
    finding = {"check": "ort.files", "verdict": "ok", "evidence": "found", "cure": None}
    whole = {"schema": 1, "target": "x", "tier": "load", "verdict": "pass", "findings": [finding]}
    return {**whole, **changes}


def finding(verdict: str) -> dict[str, Any]:
    return {"check": "cuda.libraries", "verdict": verdict, "evidence": "libcufft.so.10", "cure": "add it"}


@pytest.mark.parametrize(
    ("verdict", "found", "code"),
    [
        ("pass", "ok", ExitCode.DONE),
        ("pass", "warning", ExitCode.DONE),
        ("fail", "fail", ExitCode.FAILED),
        ("environment", "skipped", ExitCode.ENVIRONMENT),
    ],
)
def test_a_whole_report(verdict: str, found: str, code: ExitCode) -> None:
    read = parse_report(json.dumps(report(verdict=verdict, findings=[finding(found)])))
    assert (read.verdict.value, read.exit_code, read.tier) == (verdict, code, Tier.LOAD)


def test_more_keys_may_come() -> None:
    assert parse_report(json.dumps(report(seconds=3))).verdict is Verdict.PASS


@pytest.mark.parametrize("length", range(0, len(json.dumps(report())), 7))
def test_a_cut_report_is_a_failure(length: int) -> None:
    with pytest.raises(CheckFailed, match="no whole report"):
        parse_report(json.dumps(report())[:length])


@pytest.mark.parametrize(
    "wrong",
    [
        report(verdict="pass", findings=[finding("fail")]),
        report(verdict="fail"),
        report(findings=[]),
        report(schema=2),
        report(verdict="maybe"),
        report(tier="gpu"),
        {key: value for key, value in report().items() if key != "findings"},
        [],
    ],
    ids=["pass with a failure", "fail without one", "no checks", "schema", "verdict", "tier", "cut", "list"],
)
def test_a_report_that_contradicts_itself_is_a_failure(wrong: Any) -> None:
    with pytest.raises(CheckFailed):
        parse_report(json.dumps(wrong))


def test_two_reports_are_none() -> None:
    with pytest.raises(CheckFailed):
        parse_report(json.dumps(report()) + json.dumps(report()))


def test_what_is_written_can_be_read() -> None:
    one = failed("image:1", Tier.STATIC, "verify", "hang", "see what it waits for")
    assert parse_report(encode(one)) == one
    assert with_target(one, "other").target == "other"


def test_the_numbers_of_a_run_are_kept_as_they_were_written() -> None:
    run = {
        "model": "net.onnx",
        "device": {"id": 0, "name": "Some GPU", "memory_bytes": 150109880320},
        "options": {"device_id": "0"},
        "tf32": False,
        "outputs": [{"name": "out", "relative_error": 1e-7}],
        "nodes": {"total": 5, "cuda": 2, "cpu": 3, "share_cuda": 0.4, "copies": 4},
    }
    read = parse_report(json.dumps(report(tier="run", run=run)))
    assert json.loads(encode(read))["run"] == run


def test_without_a_run_there_are_no_numbers() -> None:
    assert "run" not in json.loads(encode(parse_report(json.dumps(report()))))
