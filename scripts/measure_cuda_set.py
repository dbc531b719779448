"""Reads the GPU code of every library of a CUDA set and prints the `gpu` field of its row in `cuda.yaml`.

Run: `python scripts/measure_cuda_set.py 11.8-cudnn8 […]`; without an argument, every set. Takes the wheels
from ortimg's cache, or fetches them (1 to 2 GB a set). One library lies unpacked on the disk at a time. Exits
1 where the catalogue says something else.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path, PurePosixPath

import msgspec

from ortimg.core.model import CudaSet, LibraryGpu
from ortimg.data import read_catalogue
from ortimg.errors import OrtimgError
from ortimg.inputs.cache import CHUNK, Cache
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.result import Missing
from ortimg.measure.fatbin import read_gpu_code

ROOT = Path(__file__).resolve().parent.parent


def measure(cache: Cache, row: CudaSet, wheels: list[Path]) -> tuple[LibraryGpu, ...]:
    """GPU code of the set's libraries; those without any are left out."""
    found: list[LibraryGpu] = []
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as package:
            for member in package.namelist():
                name = PurePosixPath(member).name
                if name not in row.libraries:
                    continue
                with cache.workdir(package.getinfo(member).file_size) as work:
                    library = work / name
                    with package.open(member) as reader, library.open("wb") as writer:
                        shutil.copyfileobj(reader, writer, CHUNK)
                    code = read_gpu_code(library)
                if code.sass or code.ptx:
                    found.append(LibraryGpu(library=name, **msgspec.structs.asdict(code)))
    return tuple(found)


def as_yaml(gpu: tuple[LibraryGpu, ...]) -> str:
    """The lines of the `gpu` field."""
    text = "    gpu:\n"
    for code in gpu:
        sass, ptx = (", ".join(f'"{sm}"' for sm in part) for part in (code.sass, code.ptx))
        isa = f', ptx_isa: "{code.ptx_isa}"' if code.ptx_isa else ""
        text += f"      - {{library: {code.library}, sass: [{sass}], ptx: [{ptx}]{isa}, confidence: A}}\n"
    return text


def main() -> int:
    catalogue, cache = read_catalogue(), Cache.default(print)
    wanted = sys.argv[1:] or [row.key for row in catalogue.cuda_sets]
    differ = False
    with Fetcher(cache, lock=read_lock(ROOT)) as fetcher:
        for row in catalogue.cuda_sets:
            if row.key not in wanted:
                continue
            result = fetcher.cuda(row).result()
            if isinstance(result, Missing):
                raise OrtimgError(str(result), result.hint)
            gpu = measure(cache, row, [file.path for file in result.files])
            print(
                f"# {row.key}: {'as the catalogue says' if gpu == row.gpu else 'NOT what the catalogue says'}"
            )
            print(as_yaml(gpu), end="", flush=True)
            differ = differ or gpu != row.gpu
    return int(differ)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OrtimgError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
