"""CUDA errors that are the machine's: data and C agree."""

from __future__ import annotations

from pathlib import Path

import make_gpu_faults

ROOT = Path(__file__).resolve().parents[2]


def test_the_c_table_is_what_its_script_makes() -> None:
    made = make_gpu_faults.as_c_table(make_gpu_faults.read_faults())
    assert (ROOT / "ortimg" / "verify" / "src" / "gpu_faults.inc").read_text() == made
    assert '"' not in "".join(fault.cure for fault in make_gpu_faults.read_faults())


def test_each_number_is_there_once_with_a_cure() -> None:
    faults = make_gpu_faults.read_faults()
    codes = [fault.code for fault in faults]
    assert codes == sorted(set(codes))
    assert all(len(fault.cure) > 10 for fault in faults)


def test_faults_of_programs_are_not_the_machines() -> None:
    """No kernel image, illegal address, launch failure; memory is judged by itself."""
    assert not {fault.code for fault in make_gpu_faults.read_faults()} & {2, 209, 218, 223, 700, 719}
