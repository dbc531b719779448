"""The table of the CUDA provider's options: data and C agree."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "make_cuda_options.py"
    spec = importlib.util.spec_from_file_location("make_cuda_options", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where msgspec looks for the names of types
    spec.loader.exec_module(module)
    return module


def test_the_c_table_is_what_its_script_makes(script: ModuleType) -> None:
    options = script.read_options()
    made = script.as_c_table(options)
    assert (ROOT / "ortimg" / "verify" / "src" / "cuda_options.inc").read_text() == made


def test_each_option_is_there_once_and_a_choice_has_values(script: ModuleType) -> None:
    options = script.read_options()
    assert len({option.name for option in options}) == len(options) > 20
    assert all((option.kind == "choice") is bool(option.values) for option in options)
    assert all(option.default in option.values for option in options if option.kind == "choice")
