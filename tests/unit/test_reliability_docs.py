"""docs/reliability.md: each row names a test that exists, where `make` really runs it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text("utf-8")
ROWS = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if line.startswith("| ")]
FAULTS = [row for row in ROWS if row[0] != "fault"]
FOLDERS = {"u": "unit", "d": "docker", "f": "fleet"}
NAMED = re.compile(r"(?P<run>[udf])(?P<root>, \*root\*)? `(?P<file>test_\w+\.py)::(?P<test>test_\w+)`")
CODES = {"0", "1", "2", "3", "130", "-"}


@cache
def functions_in(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_there_are_rows() -> None:
    assert len(FAULTS) > 40
    assert all(len(row) == 4 for row in FAULTS)


def test_each_row_names_a_test_that_exists() -> None:
    for row in FAULTS:
        named = NAMED.fullmatch(row[3])
        assert named, f"no test: {row}"
        path = ROOT / "tests" / FOLDERS[named["run"]] / named["file"]
        assert path.is_file(), row
        assert named["test"] in functions_in(path), row


def test_each_row_has_exit_codes() -> None:
    for row in FAULTS:
        assert {*row[2].split(", ")} <= CODES, row


def test_what_needs_root_says_so() -> None:
    for row in FAULTS:
        named = NAMED.fullmatch(row[3])
        assert named
        path = ROOT / "tests" / FOLDERS[named["run"]] / named["file"]
        marks = [ast.unparse(mark) for mark in functions_in(path)[named["test"]].decorator_list]
        whole = "geteuid() != 0" in ast.unparse(_mark_of_file(path))
        assert (whole or "as_root" in marks) == bool(named["root"]), row


def test_make_runs_the_folders_as_the_page_says() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^test: .*\btest-unit test-docker\b", makefile, re.MULTILINE)
    for target in re.findall(r"`make (test-\w+)`", TEXT):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def _mark_of_file(path: Path) -> ast.AST:
    tree = ast.parse(path.read_text("utf-8"))
    found = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    return found[0] if found else ast.Constant("")
