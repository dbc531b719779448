"""Write nvidia-packages.yaml: fetch the wheels that hold the files of NVIDIA's packages, unpack, pack, count.

    python -m bench.measure_nvidia [FOLDER OF WHEELS]

2 GB of downloads, by pip. Wheels of NVIDIA hold the files of its packages for Debian and Ubuntu of the same
version. What has no wheel is left out, which makes NVIDIA's side smaller than it is.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import msgspec
import yaml

from bench.nvidia import FILE, LeftOut, NvidiaSet, Package

IMAGE = "nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04"
LIST = (
    "https://gitlab.com/nvidia/container-images/cuda: dist/11.8.0/ubuntu2204/base, runtime, runtime/cudnn8;"
    " cuda-libraries-11-8 asks for cudart, nvrtc, cublas, cufft, cufile, curand, cusolver, cusparse, npp and"
    " nvjpeg"
)
# package, its version, the wheel
PACKAGES = (
    ("cuda-cudart-11-8", "11.8.89-1", "nvidia-cuda-runtime-cu11==11.8.89"),
    ("cuda-nvrtc-11-8", "11.8.89-1", "nvidia-cuda-nvrtc-cu11==11.8.89"),
    ("libcublas-11-8", "11.11.3.6-1", "nvidia-cublas-cu11==11.11.3.6"),
    ("libcufft-11-8", "10.9.0.58-1", "nvidia-cufft-cu11==10.9.0.58"),
    ("libcurand-11-8", "10.3.0.86-1", "nvidia-curand-cu11==10.3.0.86"),
    ("libcusolver-11-8", "11.4.1.48-1", "nvidia-cusolver-cu11==11.4.1.48"),
    ("libcusparse-11-8", "11.7.5.86-1", "nvidia-cusparse-cu11==11.7.5.86"),
    ("libnpp-11-8", "11.8.0.86-1", "nvidia-npp-cu11==11.8.0.86"),
    ("libnvjpeg-11-8", "11.9.0.86-1", "nvidia-nvjpeg-cu11==11.9.0.86"),
    ("cuda-nvtx-11-8", "11.8.86-1", "nvidia-nvtx-cu11==11.8.86"),
    ("libnccl2", "2.15.5-1+cuda11.8", "nvidia-nccl-cu11==2.15.5"),
    ("libcudnn8", "8.9.6.50-1+cuda11.8", "nvidia-cudnn-cu11==8.9.6.50"),
)
LEFT_OUT = (
    LeftOut(name="cuda-compat-11-8", why="no wheel holds it"),
    LeftOut(name="libcufile-11-8", why="no wheel of this version holds it"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(work)
        found = NvidiaSet(
            image=IMAGE,
            cuda="11.8",
            list_from=LIST,
            packages=tuple(_measure(folder, *row) for row in PACKAGES),
            left_out=LEFT_OUT,
        )
    head = (
        f"# Shared libraries of {IMAGE}, package by package.\n"
        "# Written by `python -m bench.measure_nvidia`; its numbers were counted in the wheels named.\n"
    )
    FILE.write_text(head + yaml.safe_dump(msgspec.to_builtins(found), sort_keys=False, width=110))


def _measure(folder: Path, name: str, version: str, wheel: str) -> Package:
    file = _wheel(folder, wheel)
    libraries: dict[str, int] = {}
    with zipfile.ZipFile(file) as content, tempfile.TemporaryDirectory() as work:
        layer = Path(work) / "layer.tar"
        with tarfile.open(layer, "w") as tar:
            for member in content.infolist():
                base = Path(member.filename).name
                if ".so" in base and not member.is_dir():
                    libraries[base] = member.file_size
                    entry = tarfile.TarInfo(f"usr/local/cuda-11.8/lib64/{base}")
                    entry.size = member.file_size
                    with content.open(member) as stream:
                        tar.addfile(entry, io.BufferedReader(stream, 1 << 20))  # type: ignore[type-var]
        gzip = _packed(["gzip", "-6c", str(layer)])
        zstd = _packed(["zstd", "-3qc", str(layer)])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    print(f"{name}: {sum(libraries.values()):,} bytes, gzip {gzip:,}, zstd {zstd:,}", file=sys.stderr)
    return Package(
        name=name, version=version, source=wheel, sha256=digest, libraries=libraries, gzip=gzip, zstd=zstd
    )


def _wheel(folder: Path, requirement: str) -> Path:
    stem = requirement.replace("==", "-").replace("-cu11-", "_cu11-").partition("_cu11-")
    pattern = f"{stem[0].replace('-', '_')}{stem[1]}{stem[2]}-*.whl"
    if not list(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", str(folder), requirement], check=True)
    return next(folder.glob(pattern))


def _packed(command: list[str]) -> int:
    size = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(1 << 20):
            size += len(piece)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return size


if __name__ == "__main__":
    main()
