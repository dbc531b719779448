"""Prints the row of an ONNX Runtime version for `python.yaml`: its wheels for each Python, with their hashes.

Run: `python scripts/pin_python_wheels.py VERSION CUDA_MAJOR`, such as `1.31.1 13`. Nothing is downloaded:
`uv lock` writes down what the package index says of each file. Which CUDA the wheels are for no index tells:
`scripts/measure_ort.py VERSION --file WHEEL` does.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from ortimg.core.model import PythonRelease, PythonWheel
from ortimg.core.versions import number

OLDEST = (
    "3.8",
    "3.9",
    "3.10",
    "3.11",
)  # from which Python on; uv refuses those that a version has no wheel for
_PROJECT = """\
[project]
name = "wheels"
version = "0"
requires-python = ">={python}"
dependencies = ["onnxruntime-gpu=={version}"]

[[tool.uv.dependency-metadata]]
name = "onnxruntime-gpu"
version = "{version}"
requires-dist = []
"""
_WHEEL = re.compile(r"onnxruntime_gpu-[^-]+-cp3(\d+)-cp3\1-manylinux[^-]*_x86_64\.whl")


def locked(version: str) -> str:
    """A `uv.lock` that names every wheel of `version`. Raises RuntimeError with uv's words."""
    said = ""
    for python in OLDEST:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "pyproject.toml").write_text(_PROJECT.format(python=python, version=version))
            command = [sys.executable, "-m", "uv", "lock", "--quiet", "--directory", folder]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            if ended.returncode == 0:
                return (Path(folder) / "uv.lock").read_text()
            said = ended.stderr.strip()
    raise RuntimeError(said)


def read_lock(text: str, cuda_major: int) -> PythonRelease:
    """The row of the one version in a `uv.lock`: wheels for CPython and x86-64 Linux."""
    [package] = [row for row in tomllib.loads(text)["package"] if row["name"] == "onnxruntime-gpu"]
    files = []
    for wheel in package["wheels"]:
        filename = wheel["url"].rpartition("/")[2]
        if match := _WHEEL.fullmatch(filename):
            sha256 = wheel["hash"].removeprefix("sha256:")
            files.append(
                PythonWheel(python=f"3.{match[1]}", filename=filename, sha256=sha256, size=wheel["size"])
            )
    return PythonRelease(
        version=package["version"],
        cuda_major=cuda_major,
        files=tuple(sorted(files, key=lambda row: number(row.python))),
    )


def row_text(row: PythonRelease) -> str:
    """The row as it stands in `python.yaml`."""
    text = f'  - version: "{row.version}"\n    cuda_major: {row.cuda_major}\n    files:\n'
    for file in row.files:
        text += f'      - {{python: "{file.python}", sha256: {file.sha256}, size: {file.size},\n'
        text += f"         filename: {file.filename}}}\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the row of an ONNX Runtime version for python.yaml.")
    parser.add_argument("version")
    parser.add_argument("cuda_major", type=int)
    args = parser.parse_args()
    try:
        row = read_lock(locked(args.version), args.cuda_major)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 3
    print(row_text(row), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
