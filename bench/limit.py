"""The limit: copy the inputs, write the distinct bytes once, compress them once, one after another.

The bytes are those of the cells' own layers, as the engine holds them; each is unpacked beforehand, which is
not counted. Writing ends when the system took the bytes, as in a build, not when they are on the disk.
Compression is the one that the build does, zstd at level 3, on all processors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.inputs import Inputs
from bench.noise import Stopwatch, Timing
from bench.ours import REPOSITORY, Place
from ortimg.core.problems import quote
from ortimg.errors import EnvironmentFault
from ortimg.publishing.store import ContentStore


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of each of the three, and the bytes of each."""

    copy: float
    write: float
    compress: float
    input_bytes: int
    raw_bytes: int
    packed_bytes: int
    raw_layers: dict[str, int]  # bytes of each layer unpacked, by the digest it is sent under
    timing: Timing  # of the whole part, unpacking beforehand included

    @property
    def seconds(self) -> float:
        return self.copy + self.write + self.compress


def run(own: Place, inputs: Sequence[Inputs], folder: Path) -> Limit:
    """Raises EnvironmentFault where the engine's layers cannot be read as files."""
    folder.mkdir()
    files = {file.sha256: file for have in inputs for file in have.files}
    layers = layers_of_engine(own, [have.cell.identifier for have in inputs])
    copy = write = compress = 0.0
    packed_bytes = 0
    raw_layers: dict[str, int] = {}
    try:
        with Stopwatch() as whole:
            for file in files.values():
                with Stopwatch() as watch:
                    subprocess.run(["cp", str(file.path), str(folder / "input")], check=True)
                copy += watch.timing.seconds
                (folder / "input").unlink()
            for digest, blob in layers.items():
                raw, written = folder / "raw", folder / "written"
                subprocess.run(["zstd", "-dqf", "--long=27", str(blob), "-o", str(raw)], check=True)
                with Stopwatch() as watch:
                    subprocess.run(["cp", "--reflink=never", str(raw), str(written)], check=True)
                write += watch.timing.seconds
                written.unlink()
                with Stopwatch() as watch:
                    packed = subprocess.run(
                        ["sh", "-c", f'zstd -3 -qc -T{os.cpu_count() or 1} "$0" | wc -c', str(raw)],
                        check=True, capture_output=True, text=True,
                    )  # fmt: skip
                compress += watch.timing.seconds
                raw_layers[digest] = raw.stat().st_size
                packed_bytes += int(packed.stdout)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Limit(
        copy=round(copy, 2),
        write=round(write, 2),
        compress=round(compress, 2),
        input_bytes=sum(file.size for file in files.values()),
        raw_bytes=sum(raw_layers.values()),
        packed_bytes=packed_bytes,
        raw_layers=raw_layers,
        timing=whole.timing,
    )


def layers_of_engine(own: Place, cells: Sequence[str]) -> dict[str, Path]:
    """Files of the cells' distinct layers, packed with zstd, in the engine's store."""
    store = ContentStore(own.engine.data / "containerd/daemon/io.containerd.content.v1.content")
    found: dict[str, Path] = {}
    for cell in cells:
        reference = f"{REPOSITORY}:{cell}"
        digest = own.engine.docker("image", "inspect", "--format", "{{.Id}}", reference).strip()
        image = store.image(digest)
        for layer in image.layers if image else ():
            path = store.path(layer.digest)
            if path is None or not layer.media_type.endswith("+zstd"):
                raise EnvironmentFault(f"{quote(reference)}: a layer is not a file packed with zstd")
            found[layer.digest] = path
    return found
