"""docs/doctor.md says what the code says. `pytest --update-golden` writes its tables anew."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from ortimg.commands.doctor import doctor
from ortimg.core.doctor.findings import parse_advice
from ortimg.core.doctor.log import parse_faults
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.table import check_table, fault_table

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
DATA = files("ortimg.data")


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
    lines = [line for line in own.splitlines() if "ortimg doctor" in line or line.startswith("With")]
    text = "\n".join([own, *lines])
    assert {option for option in options if f"{option}" not in text} == {"--cuda-share"}
    named = set(re.findall(r"ortimg doctor[^#\n]*?(--[a-z-]+)", own))
    assert named <= options
