"""man/: one page a command, as `--help` tells it, and sound to those who read man pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from installed import Installed, contents
from make_man import FOLDER, pages, write
from test_help import COMMANDS, guide

PAGES = pages()
MANDOC = shutil.which("mandoc")
NO_DATE = 'WARNING: missing date, using "": TH'  # a page names its release instead


def test_there_is_a_page_for_each_command() -> None:
    assert {*PAGES} == {f"{name.replace(' ', '-')}.1" for name in COMMANDS}


def test_the_committed_pages_are_those_of_the_help() -> None:
    """`make man` writes them anew."""
    assert {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()} == PAGES


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_all_that_the_help_has(name: str) -> None:
    plain = PAGES[f"{name.replace(' ', '-')}.1"].replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    sections = [line[4:] for line in plain.splitlines() if line.startswith(".SH ")]
    assert sections[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    assert [one for one in sections if one in ("EXAMPLES", "EXIT STATUS", "SEE ALSO")] == [
        "EXAMPLES",
        "EXIT STATUS",
        "SEE ALSO",
    ]
    for parameter in COMMANDS[name].params:
        for option in parameter.opts:
            assert option in plain or not option.startswith("-"), option
    assert all(f".TP\n{code}\n" in plain for code, _ in guide(name).exits)


def test_pages_of_commands_that_are_gone_are_taken_away(tmp_path: Path) -> None:
    (tmp_path / "ortimg-nothing.1").write_text("old")
    write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*PAGES}


def test_the_wheel_puts_them_where_man_looks(installed: Installed) -> None:
    inside = {name.rpartition("/")[2]: name for name in contents(installed.wheel) if name.endswith(".1")}
    assert {*inside} == {*PAGES}
    assert all("/data/share/man/man1/" in place for place in inside.values())
    assert (installed.python.parents[1] / "share" / "man" / "man1" / "ortimg.1").is_file()


@pytest.mark.skipif(
    MANDOC is None, reason="NOT CHECKED BY MANDOC: it is not on PATH; `make mandoc` installs it"
)
def test_mandoc_finds_no_fault(tmp_path: Path) -> None:
    def faults(*paths: Path) -> list[str]:
        done = subprocess.run(
            [str(MANDOC), "-T", "lint", "-W", "warning", *map(str, paths)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if NO_DATE not in line]

    assert faults(*sorted(FOLDER.glob("*.1"))) == []
    broken = tmp_path / "broken.1"
    broken.write_text(PAGES["ortimg.1"].replace(".SH NAME", ".XX NAME"))
    assert faults(broken)
