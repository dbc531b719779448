"""The engine says 200 first and tells an error later."""

from __future__ import annotations

import json

import pytest

from ortimg.engine.answers import require_success
from ortimg.engine.info import unanswered
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


@pytest.mark.parametrize("endpoint", [None, "unix:///run/other.sock"])
def test_a_socket_that_this_user_may_not_open_is_cured_by_the_group(endpoint: str | None) -> None:
    said = "('Connection aborted.', PermissionError(13, 'Permission denied'))"
    found = unanswered("the container engine does not answer", said, endpoint)
    assert "this user may not use the container engine" in str(found)
    assert "usermod -aG docker" in str(found)
    assert "PermissionError" not in str(found)
