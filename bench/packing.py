"""One heavy layer packed in several ways, on all processors where the packer can: seconds and bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.limit import layers_of_engine
from bench.noise import Stopwatch, Timing
from bench.ours import Place

_CORES = os.cpu_count() or 1
_WAYS = {
    "zstd 1": f"zstd -1 -qc -T{_CORES}",
    "zstd 3, one thread": "zstd -3 -qc -T1",
    "zstd 3": f"zstd -3 -qc -T{_CORES}",
    "zstd 6": f"zstd -6 -qc -T{_CORES}",
    "zstd 9": f"zstd -9 -qc -T{_CORES}",
    "zstd 9, window 128 MiB": f"zstd -9 --long=27 -qc -T{_CORES}",
    "gzip 6": "gzip -6c",
}


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """One way."""

    bytes: int
    timing: Timing


class Packing(msgspec.Struct, frozen=True, kw_only=True):
    """The layer and its ways."""

    raw_bytes: int
    ways: dict[str, Packed]


def run(own: Place, cells: Sequence[str], folder: Path) -> Packing:
    """The largest layer of the first cell, from the engine's store."""
    folder.mkdir()
    raw = folder / "raw"
    try:
        blob = max(layers_of_engine(own, cells[:1]).values(), key=lambda path: path.stat().st_size)
        subprocess.run(["zstd", "-dqf", "--long=27", str(blob), "-o", str(raw)], check=True)
        return Packing(
            raw_bytes=raw.stat().st_size, ways={name: _way(raw, way) for name, way in _WAYS.items()}
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _way(raw: Path, command: str) -> Packed:
    with Stopwatch() as watch:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f'{command} "$0" | wc -c', str(raw)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    return Packed(bytes=int(done.stdout), timing=watch.timing)
