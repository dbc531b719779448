"""`ort-verify` and its stub driver for targets that ortimg did not build: compiled once, kept."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ortimg.errors import EnvironmentFault
from ortimg.verify.sources import verifier_sources

TARGET = "x86_64-linux-gnu.2.17"  # older than the glibc of any base, so one binary serves all of them
_FLAGS = ("-target", TARGET, "-std=c11", "-O2", "-s")
_LIMIT = 300  # seconds; the first compile of a machine takes about ten


@dataclass(frozen=True)
class Verifier:
    """The two files, side by side in one folder of their own."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "ort-verify"

    @property
    def stub(self) -> Path:
        return self.folder / "libcuda.so.1"


def get_verifier(cache: Path) -> Verifier:
    """The verifier of this ortimg, compiled where the folder `cache` has it not yet.

    Raises EnvironmentFault where there is no zig, or where it fails.
    """
    sources = verifier_sources()
    digest = hashlib.sha256()
    for name, content in sources.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    done = Verifier(cache / "verifier" / digest.hexdigest()[:16])
    if not done.folder.is_dir():
        _compile(_compiler(), sources, done.folder)
    return done


def _compiler() -> list[str]:
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    zig = shutil.which("zig")
    if zig is None:
        raise EnvironmentFault(
            "the verifier is not compiled yet, and there is no zig to compile it", "run `pip install ziglang`"
        )
    return [zig, "cc"]


def _compile(compiler: list[str], sources: dict[str, bytes], target: Path) -> None:
    """Fill the folder `target`, whole or not at all; two processes at once do no harm."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"{target.parent}: the cache cannot be written ({error.strerror})",
            "set ORTIMG_CACHE to a folder that you may write",
        ) from error
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="compile-") as name:
        work = Path(name)
        for path, content in sources.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(content)
        units = sorted(str(path.relative_to(work)) for path in work.glob("verify/src/*.c"))
        out = work / "out"
        out.mkdir(mode=0o755)
        _run([*compiler, *_FLAGS, "-o", "out/ort-verify", *units, "-ldl", "-lpthread"], work)
        shared = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
        _run([*compiler, *_FLAGS, *shared, "-o", "out/libcuda.so.1", "verify/stub/libcuda.c"], work)
        try:
            out.rename(target)
        except OSError:
            if not target.is_dir():  # another process was quicker: its files are the same
                raise


def _run(command: list[str], folder: Path) -> None:
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | caches,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(
            f"zig did not end within {_LIMIT} s", "try again on a less busy machine"
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise EnvironmentFault(
            f"the verifier does not compile: {last}", "run `pip install --upgrade ziglang`"
        )
