"""Prints the row of a new CUDA set for `cuda.yaml`: wheels, hashes, libraries, lowest glibc, GPU code.

Run: `python scripts/pin_cuda_set.py CUDA CUDNN`, such as `12.4.1 9.1.0.70` (1 to 2 GB of wheels, which stay
in ortimg's cache). NVIDIA's own package `cuda-toolkit` says which wheels make up a CUDA release. A library is
left out (`dropped`) where the sets that are there leave its kind out. Read the row before it is committed: a
library of a new kind is taken, and why it is needed belongs into a comment.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from measure_cuda_set import as_yaml, measure
from packaging.utils import parse_wheel_filename

from ortimg.core.model import CudaSet, CudaWheel, Origin
from ortimg.core.versions import number
from ortimg.data import read_catalogue
from ortimg.errors import OrtimgError
from ortimg.inputs.cache import CHUNK, Cache, sha256_of
from ortimg.inputs.process import ProgramFailedError, run
from ortimg.inputs.wheels import name as cache_name
from ortimg.inputs.wheels import pip
from ortimg.measure.elf import read_library

# Extras of the package `cuda-toolkit`, in the order of a row. cuDNN 9 opens nvrtc, cuDNN 8 does not need it.
EXTRAS = {
    "cudart": "cuda-runtime",
    "cublas": "cublas",
    "cufft": "cufft",
    "curand": "curand",
    "nvrtc": "cuda-nvrtc",
}
WORK = 6_000_000_000  # bytes: the wheels twice, one library unpacked
_LIBRARY = re.compile(r"lib[^/]+\.so(\.[0-9.]+)?")


def requirements(cuda: str, cudnn: str) -> list[str]:
    """What pip is asked for: `12.4.1`, `9.1.0.70`."""
    major = cuda.partition(".")[0]
    extras = [extra for extra in EXTRAS if extra != "nvrtc" or number(cudnn)[0] >= 9]
    return [f"cuda-toolkit[{','.join(extras)}]=={cuda}", f"nvidia-cudnn-cu{major}=={cudnn}"]


def dropped_kinds(sets: Iterable[CudaSet]) -> set[str]:
    """Kinds of libraries that the catalogue leaves out: `libnvblas`, `libcudnn_adv_train`."""
    return {kind(name) for row in sets for wheel in row.wheels for name in wheel.dropped}


def kind(soname: str) -> str:
    """A library's name without its numbers: `libnvrtc-builtins.alt` of `libnvrtc-builtins.alt.so.13.0`."""
    return soname.partition(".so")[0]


def read_wheel(path: Path, dropped: set[str]) -> CudaWheel:
    """Name, hash, size and libraries of one wheel."""
    project, version, _build, _tags = parse_wheel_filename(path.name)
    with zipfile.ZipFile(path) as package:
        members = [PurePosixPath(member) for member in package.namelist()]
    found = [
        member.name for member in members if member.parent.name == "lib" and _LIBRARY.fullmatch(member.name)
    ]
    return CudaWheel(
        requirement=f"{project}=={version}",
        filename=path.name,
        sha256=sha256_of(path),
        size=path.stat().st_size,
        libraries=tuple(name for name in found if kind(name) not in dropped),
        dropped=tuple(name for name in found if kind(name) in dropped),
    )


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The wheels of a row in its order; what pip brought besides (nvJitLink) is left out."""
    wanted = [*EXTRAS.values(), "cudnn"]
    found = {re.sub(r"^nvidia-|-cu\d+$", "", parse_wheel_filename(path.name)[0]): path for path in paths}
    return [found[name] for name in wanted if name in found]


def lowest(row: CudaSet, wheels: Sequence[Path], work: Path) -> tuple[str | None, str | None]:
    """Lowest glibc and GLIBCXX that every library of the set is content with."""
    glibc: set[str] = set()
    glibcxx: set[str] = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as package:
            for member in package.namelist():
                if PurePosixPath(member).name in row.libraries:
                    with package.open(member) as reader, (work / "library").open("wb") as writer:
                        shutil.copyfileobj(reader, writer, CHUNK)
                    library = read_library(work / "library")
                    glibc |= {library.glibc} if library.glibc else set()
                    glibcxx |= {library.glibcxx} if library.glibcxx else set()
    return max(glibc, key=number, default=None), max(glibcxx, key=number, default=None)


def row_text(row: CudaSet, gpu: str) -> str:
    """The row as it stands in `cuda.yaml`."""
    text = f'  - cuda: "{row.cuda}"\n    cudnn: "{row.cudnn}"\n    cudnn_version: "{row.cudnn_version}"\n'
    text += f'    glibc: "{row.glibc}"\n    glibcxx: "{row.glibcxx}"\n{gpu}    wheels:\n'
    for wheel in row.wheels:
        text += f"      - requirement: {wheel.requirement}\n        filename: {wheel.filename}\n"
        text += f"        sha256: {wheel.sha256}\n        size: {wheel.size}\n"
        text += f"        libraries: [{', '.join(wheel.libraries)}]\n"
        if wheel.dropped:
            text += f"        dropped: [{', '.join(wheel.dropped)}]\n"
    return text


def download(cuda: str, cudnn: str, cache: Cache, work: Path) -> list[Path]:
    """The wheels, in the cache from now on."""
    print(f"downloading {' '.join(requirements(cuda, cudnn))}", file=sys.stderr, flush=True)
    folder = work / "wheels"
    folder.mkdir()
    options = ("--quiet", "--only-binary=:all:", "--no-cache-dir", "--no-input", "-d", str(folder))
    command = (*pip(), "download", *options, *requirements(cuda, cudnn))
    try:
        run(command, stop=threading.Event(), env={"TMPDIR": str(work)})
    except ProgramFailedError as error:
        raise OrtimgError(
            f"pip cannot download that: {error.tail}", "see `pip index versions cuda-toolkit`"
        ) from error
    kept = []
    for path in in_order(folder.iterdir()):
        filename, requirement = (
            path.name,
            "==".join(str(part) for part in parse_wheel_filename(path.name)[:2]),
        )
        entry = cache.adopt(
            cache_name(filename), path, sha256=None, origin=Origin.WHEEL, details={"requirement": requirement}
        )
        named = work / filename  # a blob's own name says nothing
        cache.place(entry, named)
        kept.append(named)
    return kept


def make_row(cuda: str, cudnn: str, wheels: Sequence[Path], sets: Iterable[CudaSet], work: Path) -> CudaSet:
    """The set of these wheels; `cuda` may have three numbers, a set's name has two."""
    dropped = dropped_kinds(sets)
    row = CudaSet(
        cuda=".".join(cuda.split(".")[:2]),
        cudnn=cudnn.partition(".")[0],
        cudnn_version=cudnn,
        wheels=tuple(read_wheel(path, dropped) for path in wheels),
    )
    glibc, glibcxx = lowest(row, wheels, work)
    return CudaSet(
        cuda=row.cuda, cudnn=row.cudnn, cudnn_version=cudnn, glibc=glibc, glibcxx=glibcxx, wheels=row.wheels
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cuda", help="release of CUDA, such as 12.4.1")
    parser.add_argument("cudnn", help="release of cuDNN, such as 9.1.0.70")
    options = parser.parse_args()
    cache = Cache.default(lambda text: print(text, file=sys.stderr))
    with cache.workdir(WORK) as work:
        wheels = download(options.cuda, options.cudnn, cache, work)
        row = make_row(options.cuda, options.cudnn, wheels, read_catalogue().cuda_sets, work)
        print(row_text(row, as_yaml(measure(cache, row, wheels))), end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OrtimgError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
