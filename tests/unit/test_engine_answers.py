"""The engine says 200 first and tells an error later."""

from __future__ import annotations

import json

import pytest

from ortimg.engine.answers import require_success
from ortimg.errors import EnvironmentFault

STATUS = [json.dumps({"status": f"Pushing layer {number}"}) for number in range(5)]


def stream(*lines: str) -> str:
    return "".join(f"{line}\r\n" for line in lines)


def test_an_error_after_five_good_lines() -> None:
    denied = json.dumps({"errorDetail": {"message": "denied: no"}, "error": "denied"})
    with pytest.raises(EnvironmentFault, match="import x: denied: no"):
        require_success(stream(*STATUS, denied), "import x")


def test_the_short_form_of_an_error() -> None:
    with pytest.raises(EnvironmentFault, match="denied"):
        require_success(stream(json.dumps({"error": "denied"})), "import x")


def test_a_status_that_speaks_of_an_error_is_none() -> None:
    require_success(stream(*STATUS, json.dumps({"status": "error correction: done"}), ""), "import x")


@pytest.mark.parametrize("last", ['{"status": "Push', '{"errorDetail": {"mess'])
def test_a_line_that_was_cut(last: str) -> None:
    with pytest.raises(EnvironmentFault, match="broke off"):
        require_success(stream(*STATUS) + last, "import x")


def test_an_answer_without_lines() -> None:
    require_success("", "import x")
