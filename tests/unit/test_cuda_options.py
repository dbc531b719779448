"""The table of the CUDA provider's options: data and C agree."""

from __future__ import annotations

from pathlib import Path

import make_cuda_options

ROOT = Path(__file__).resolve().parents[2]


def test_the_c_table_is_what_its_script_makes() -> None:
    options = make_cuda_options.read_options()
    made = make_cuda_options.as_c_table(options)
    assert (ROOT / "ortimg" / "verify" / "src" / "cuda_options.inc").read_text() == made


def test_each_option_is_there_once_and_a_choice_has_values() -> None:
    options = make_cuda_options.read_options()
    assert len({option.name for option in options}) == len(options) > 20
    assert all((option.kind == "choice") is bool(option.values) for option in options)
    assert all(option.default in option.values for option in options if option.kind == "choice")
