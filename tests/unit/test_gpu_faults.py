"""CUDA errors that are the machine's: data and C agree."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "make_gpu_faults.py"
    spec = importlib.util.spec_from_file_location("make_gpu_faults", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where msgspec looks for the names of types
    spec.loader.exec_module(module)
    return module


def test_the_c_table_is_what_its_script_makes(script: ModuleType) -> None:
    made = script.as_c_table(script.read_faults())
    assert (ROOT / "ortimg" / "verify" / "src" / "gpu_faults.inc").read_text() == made
    assert '"' not in "".join(fault.cure for fault in script.read_faults())


def test_each_number_is_there_once_with_a_cure(script: ModuleType) -> None:
    faults = script.read_faults()
    codes = [fault.code for fault in faults]
    assert codes == sorted(set(codes))
    assert all(len(fault.cure) > 10 for fault in faults)


def test_faults_of_programs_are_not_the_machines(script: ModuleType) -> None:
    """No kernel image, illegal address, launch failure; memory is judged by itself."""
    assert not {fault.code for fault in script.read_faults()} & {2, 209, 218, 223, 700, 719}
