"""Reads a real ONNX Runtime package and prints its catalogue row, and where `ort.yaml` says something else.

Run: `python scripts/measure_ort.py VERSION [--cuda MAJOR]`: takes the package from wherever ortimg gets it
(cache, release host, Maven, wheel; 150 to 600 MB). For a version that is not in the catalogue yet, or a
package on the disk: `--file ARCHIVE` (a release .tgz, a jar or a wheel). Exits 1 where the row differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from ortimg.core.catalogue import Index
from ortimg.core.model import GpuArchitectures, Origin, OrtRelease
from ortimg.data import read_catalogue
from ortimg.errors import ConfigError, OrtimgError
from ortimg.inputs.cache import Cache, sha256_of
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.result import Missing
from ortimg.measure.ort import Measured, NotAnArchiveError, differences, measure

ROOT = Path(__file__).resolve().parent.parent


def as_yaml(version: str, found: Measured, origin: str) -> str:
    """The measured part of a row, as it would stand in `ort.yaml`."""
    lines = [f"  # measured: {origin}", f'  - version: "{version}"']
    lines += [
        f"    soname: {found.soname}",
        f"    needed: [{', '.join(found.needed)}]",
        "    needed_confidence: A",
    ]
    lines += [f'    glibc: "{found.glibc}"', f'    glibcxx: "{found.glibcxx}"', "    abi_confidence: A"]
    lines += [f"    gpu: {_gpu(found.gpu)}"]
    if found.executable_stack:
        lines.append(f"    executable_stack: [{', '.join(found.executable_stack)}]")
    if found.git_commit:
        lines.append(f"    git_commit: {found.git_commit}")
    if found.top_folder:
        lines.append(f"    top_folder: {found.top_folder}")
    lines += [
        f"  # opens by name: {', '.join(found.opened) or 'nothing'}",
        f"  # system libraries: {', '.join(found.system)}",
        f"  # run paths: {', '.join(f'{name} {path}' for name, path in found.run_paths.items()) or 'none'}",
        f"  # symbol versions: {', '.join(found.defines)}; links: {', '.join(found.links) or 'none'}",
        f"  # headers: {found.headers}, CMake package: {found.cmake}, pkg-config: {found.pkg_config}",
    ]
    return "\n".join(lines)


def _gpu(code: GpuArchitectures) -> str:
    sass, ptx = (", ".join(f'"{sm}"' for sm in part) for part in (code.sass, code.ptx))
    isa = f', ptx_isa: "{code.ptx_isa}"' if code.ptx_isa else ""
    return f"{{sass: [{sass}], ptx: [{ptx}]{isa}, confidence: {code.confidence.value}}}"


def compared(row: OrtRelease, found: Measured, origin: str) -> bool:
    """Print a row and what differs; whether all is as the catalogue says.

    A wheel's GPU code is a fact of its own.
    """
    print(as_yaml(row.version, found, origin))
    wheel = origin == Origin.WHEEL.value and row.wheel is not None and row.wheel.gpu is not None
    faults = [text for text in differences(row, found) if not (wheel and text.startswith("gpu."))]
    if wheel and row.wheel is not None and row.wheel.gpu != found.gpu:
        faults.append(f"wheel.gpu: the row says {row.wheel.gpu}, the file {found.gpu}")
    for text in faults or ["as the catalogue says"]:
        print(f"# {row.key}: {text}", flush=True)
    return not faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version")
    parser.add_argument("--cuda", type=int, metavar="MAJOR", help="only the archive for this CUDA major")
    parser.add_argument(
        "--file", type=Path, metavar="ARCHIVE", help="measure this file instead of fetching one"
    )
    options = parser.parse_args()
    rows = [
        row
        for row in Index(read_catalogue()).releases.get(options.version, ())
        if options.cuda in (None, row.cuda_major)
    ]
    if options.file is not None:
        with tempfile.TemporaryDirectory(dir=options.file.parent) as work:
            found = measure(options.file, Path(work))
        print(f"# {options.file.name}: sha256 {sha256_of(options.file)}, {options.file.stat().st_size} bytes")
        if not rows:
            print(as_yaml(options.version, found, options.file.name))
            return 0
        origin = Origin.WHEEL.value if options.file.suffix == ".whl" else options.file.name
        matches = [compared(row, found, origin) for row in rows]
        return int(not all(matches))
    if not rows:
        raise ConfigError(f"{options.version} is not in the catalogue; name the package with --file")
    cache, good = Cache.default(print), True
    with Fetcher(cache, lock=read_lock(ROOT)) as fetcher:
        for row in rows:
            result = fetcher.ort(row).result()
            if isinstance(result, Missing):
                print(f"# {result}")
                continue
            with cache.workdir() as work:
                found = measure(result.files[0].path, work)
            good = compared(row, found, result.origin.value) and good
    return int(not good)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OrtimgError, NotAnArchiveError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
