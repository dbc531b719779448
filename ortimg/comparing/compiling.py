"""Compiles a user's source against the headers of each side, as far as syntax and types go."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ortimg.core.compare_api import SourceResult
from ortimg.errors import ConfigError

_CPP = {".cc", ".cpp", ".cxx", ".c++", ".C", ".hpp", ".hh"}
_ERROR = re.compile(r"(?:^|:)\s*(?:fatal )?error: ")
_LIMIT = 120  # seconds


@contextmanager
def placed(headers: Mapping[str, bytes], folder: str | None) -> Iterator[Path | None]:
    """Those of `headers` that lie in `folder`, as `<x.h>` and `<onnxruntime/x.h>`; None: none."""
    if folder is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ortimg-headers-") as name:
        target = Path(name)
        for path, content in headers.items():
            if PurePosixPath(path).is_relative_to(folder):
                place = target / PurePosixPath(path).relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        with_folder = target / "onnxruntime"
        if not with_folder.exists():
            with_folder.symlink_to(".")
        yield target


def compile_source(source: Path, old: Path | None, new: Path | None, headers_from: str) -> SourceResult:
    """`old`, `new`: folders with headers; None: none. Raises ConfigError without a source."""
    if not source.is_file():
        raise ConfigError(f"there is no file {source}", hint="Give --source a C or C++ file.")
    if new is None:
        return SourceResult(path=str(source), old=None, new=None, why_not="NEW has no headers",
                            cure=f"its headers are in {headers_from}")  # fmt: skip
    compiler = _compiler(source.suffix in _CPP)
    if compiler is None:
        return SourceResult(path=str(source), old=None, new=None, why_not="there is no compiler here",
                            cure="install gcc and g++, or run `pip install ziglang`")  # fmt: skip
    return SourceResult(
        path=str(source),
        old=None if old is None else _errors(compiler, source, old),
        new=_errors(compiler, source, new),
    )


def _compiler(cpp: bool) -> list[str] | None:
    names = ("c++", "g++", "clang++") if cpp else ("cc", "gcc", "clang")
    for name in names:
        if found := shutil.which(name):
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "c++" if cpp else "cc"]
    return None


def _errors(compiler: list[str], source: Path, headers: Path) -> tuple[str, ...]:
    """What the compiler calls errors, a line each, without this machine's folders; empty: it compiles."""
    # OrtApi's own annotations are macros of Windows that other compilers know nothing of: no further flags.
    language = "c++" if source.suffix in _CPP else "c"  # told, since a file of another name is passed over
    command = [*compiler, "-fsyntax-only", "-x", language, f"-I{headers}", f"-I{source.parent}", str(source)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return (f"{source.name}: the compiler did not end within {_LIMIT} s",)
    if done.returncode == 0:
        return ()
    lines = [line.strip() for line in done.stderr.splitlines() if _ERROR.search(line)]
    found = lines or done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
    return tuple(
        dict.fromkeys(line.replace(f"{headers}/", "").replace(f"{source.parent}/", "") for line in found)
    )
