"""Writes the table of CUDA errors that are the machine's for ort-verify: `ortimg/verify/src/gpu_faults.inc`.

Run: `python scripts/make_gpu_faults.py`, after a change of `ortimg/data/gpu-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

ORTIMG = Path(__file__).resolve().parent.parent / "ortimg"


class CudaFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: a number of cudaError_t or CUresult."""

    code: int
    name: str
    cure: str
    seen: str


def read_faults() -> tuple[CudaFault, ...]:
    """The rows of the data file, each with the words of its cure."""
    data = yaml.safe_load((ORTIMG / "data" / "gpu-faults.yaml").read_text())
    rows = msgspec.convert(data["cuda"], tuple[CudaFault, ...])
    return tuple(msgspec.structs.replace(row, cure=data["cures"][row.cure]) for row in rows)


def as_c_table(faults: tuple[CudaFault, ...]) -> str:
    """The rows as the inside of a C initializer: number, cure."""
    lines = ["// made by scripts/make_gpu_faults.py from ortimg/data/gpu-faults.yaml"]
    lines += [f'{{{fault.code}, "{fault.cure}"}}, // {fault.name}' for fault in faults]
    return "\n".join(lines) + "\n"


def main() -> None:
    (ORTIMG / "verify" / "src" / "gpu_faults.inc").write_text(as_c_table(read_faults()))


if __name__ == "__main__":
    main()
