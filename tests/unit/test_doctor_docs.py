"""docs/doctor.md says what the code says. `pytest --update-golden` writes its tables anew."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import pytest

from ortimg.commands.doctor import doctor
from ortimg.core.doctor.findings import Advice, parse_advice
from ortimg.core.doctor.log import LogFault, parse_faults
from ortimg.core.doctor.names import Check

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
DATA = files("ortimg.data")


def check_table(rows: Iterable[Advice]) -> str:
    """One line a check, in the order of doctor-checks.yaml."""
    lines = [("check", "what it means", "cure")]
    lines += [(f"`{row.check.value}`", _linked(row.means, row.source), row.cure) for row in rows]
    return _table(lines)


def fault_table(rows: Iterable[LogFault]) -> str:
    """One line a fault, in the order of log-faults.yaml."""
    lines = [("fault", "what it means", "cure")]
    lines += [(f"`log.{row.name}`", _linked(row.says, row.source), row.cure) for row in rows]
    return _table(lines)


def _linked(text: str, source: str | None) -> str:
    return f"{text} ([source]({source}))" if source and source.startswith("https://") else text


def _table(lines: list[tuple[str, str, str]]) -> str:
    rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
    return "\n".join([rows[0], "|---|---|---|", *rows[1:]])


@pytest.mark.parametrize("name", ["checks", "faults"])
def test_the_tables_are_those_of_the_data(name: str, request: pytest.FixtureRequest) -> None:
    if name == "checks":
        table = check_table(parse_advice((DATA / "doctor-checks.yaml").read_bytes()).values())
    else:
        table = fault_table(parse_faults((DATA / "log-faults.yaml").read_bytes()))
    text = PAGE.read_text()
    first, last = f"<!-- doctor:{name} -->\n", f"\n<!-- /doctor:{name} -->"
    before, rest = text.split(first)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{first}{table}{last}{rest.partition(last.strip())[2]}")
    assert PAGE.read_text().split(first)[1].split(last)[0] == table


def test_every_check_is_in_the_table() -> None:
    assert all(f"`{check.value}`" in PAGE.read_text() for check in Check)


def test_the_page_names_every_option_and_no_other() -> None:
    options = {word for param in doctor.params for word in param.opts if word.startswith("--")}
    own = PAGE.read_text().partition("## Checks")[0]
    assert not {option for option in options if option not in own}
    named = set(re.findall(r"ortimg doctor[^#\n]*?(--[a-z-]+)", own))
    assert named <= options
