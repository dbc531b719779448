"""Writes the table of the CUDA provider's options for ort-verify: `ortimg/verify/src/cuda_options.inc`.

Run: `python scripts/make_cuda_options.py`, after a change of `ortimg/data/cuda-options.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import yaml

ORTIMG = Path(__file__).resolve().parent.parent / "ortimg"


class CudaOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: an option of the CUDA execution provider."""

    name: str
    kind: Literal["boolean", "integer", "bytes", "choice", "pointer"]
    default: str
    since: str | None  # first ONNX Runtime that knows it, "1.18"; None: 1.14 or older
    meaning: str
    values: tuple[str, ...] = ()  # of a choice, by their numbers


def read_options() -> tuple[CudaOption, ...]:
    """The rows of the data file."""
    data = yaml.safe_load((ORTIMG / "data" / "cuda-options.yaml").read_text())
    return msgspec.convert(data["cuda_options"], tuple[CudaOption, ...])


def as_c_table(options: tuple[CudaOption, ...]) -> str:
    """The rows as the inside of a C initializer: name, kind, values, first minor version of ONNX Runtime."""
    lines = ["// made by scripts/make_cuda_options.py from ortimg/data/cuda-options.yaml"]
    for option in options:
        values = f'"{" ".join(option.values)}"' if option.values else "NULL"
        since = option.since.removeprefix("1.") if option.since else "0"
        lines.append(f'{{"{option.name}", {option.kind.upper()}, {values}, {since}}},')
    return "\n".join(lines) + "\n"


def main() -> None:
    (ORTIMG / "verify" / "src" / "cuda_options.inc").write_text(as_c_table(read_options()))


if __name__ == "__main__":
    main()
