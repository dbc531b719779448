"""How a command ends when a second signal comes while the first is answered. One is tests/docker's matter."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Where a second signal strikes cannot be chosen from outside, so a stub verb is struck at a chosen place.
STUB = """
import signal, sys
from ortimg import cli

def struck(**_):
    for number in map(int, sys.argv[1:]):
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            pass
    raise RuntimeError("release unlocked lock")

cli.cli = struck
cli.main()
"""


@pytest.mark.parametrize(("first", "second"), [(2, 2), (15, 2), (15, 15)])
def test_a_second_signal_inside_a_lock_is_an_interrupt(first: int, second: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUB, str(first), str(second)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("signals", [(), (2,)])
def test_a_bug_is_not_taken_for_an_interrupt(signals: tuple[int, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", STUB, *map(str, signals)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "release unlocked lock" in done.stderr
