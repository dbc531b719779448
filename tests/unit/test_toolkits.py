"""Libraries older than the toolkit that ONNX Runtime was built with."""

from __future__ import annotations

import pytest
from hosts import FACTS, answer, cell, host

from ortimg.core.cautions import cautions
from ortimg.core.fit_rules import Verdict
from ortimg.core.fit_table import fit_table

WORDS = "was built with CUDA 12.8, and the set is CUDA 12.6"


def test_an_older_set_than_the_toolkit_is_not_known_to_do() -> None:
    old = cell("1.24.1", "12.6")
    found = answer(old, host("580.65.06", "T4"))
    assert found.verdict is Verdict.UNKNOWN
    assert any(WORDS in reason for reason in found.reasons)
    assert fit_table([old], FACTS).splitlines()[-1].split(" | ")[4] == "-", "no GPU is promised"
    assert [text for text in cautions([old]) if WORDS in text]


@pytest.mark.parametrize(
    ("ort", "cuda"),
    [
        ("1.23.2", "12.6"),
        ("1.24.1", "12.8"),
        ("1.18.0", "12.2"),
        ("1.30.0", "13.0"),
        ("1.16.2", "11.8"),
    ],
)
def test_a_set_of_the_toolkit_or_newer_is_fine(ort: str, cuda: str) -> None:
    new = cell(ort, cuda)
    assert answer(new, host("580.65.06", "T4")).verdict is Verdict.NATIVE
    assert cautions([new]) == {}
