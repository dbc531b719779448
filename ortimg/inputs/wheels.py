"""Wheels by pip, each checked against its hash: indexes, proxies and credentials of the user's pip hold."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import threading

from packaging.utils import parse_wheel_filename

from ortimg.core.model import Origin
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, Entry, sha256_of
from ortimg.inputs.download import HashMismatch, Progress, Unreachable
from ortimg.inputs.process import ProgramFailedError, folder_size, run


def name(filename: str) -> str:
    """Name of a wheel in the cache."""
    return f"wheels/{filename}"


def cached_wheel(cache: Cache, filename: str, sha256: str) -> Entry | None:
    """The wheel from the cache, if it is the pinned one."""
    entry = cache.get(name(filename))
    return entry if entry is not None and entry.sha256 == sha256 else None


def fetch_wheel(
    cache: Cache,
    requirement: str,
    filename: str,
    sha256: str,
    size: int,
    *,
    stop: threading.Event,
    progress: Progress | None = None,
) -> Entry:
    """Download one wheel of a pinned requirement; `size` in bytes, 0 where it is not known.

    Raises `Unreachable` and `HashMismatch`; what pip left behind is gone then.
    """
    with cache.workdir(2 * size) as work:
        downloads, temporary = work / "wheels", work / "tmp"
        downloads.mkdir()
        temporary.mkdir()
        wanted = work / "requirements.txt"
        wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n")

        def tick() -> None:
            if progress is not None:
                done = max(folder_size(temporary), folder_size(downloads))
                progress(min(done, size) if size else done, size or None)

        command = (
            *pip(),
            *("download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"),
            *("--no-cache-dir", "--disable-pip-version-check", "--no-input"),
            *_platform(filename),
            *("-r", str(wanted), "-d", str(downloads)),
        )
        try:
            run(command, stop=stop, env={"TMPDIR": str(temporary)}, tick=tick)
        except ProgramFailedError as error:
            if "DO NOT MATCH THE HASHES" in error.output or "do not match the hashes" in error.output:
                raise HashMismatch(requirement, sha256, _got(error.output)) from error
            raise Unreachable(
                f"pip cannot download {requirement}: {error.tail}",
                "check the network and pip's index (pip config list)",
            ) from error
        found = sorted(downloads.glob("*.whl"))
        if [path.name for path in found] != [filename]:
            names = ", ".join(path.name for path in found) or "nothing"
            raise EnvironmentFault(f"pip brought {names} for {requirement}, expected {filename}")
        digest = sha256_of(found[0])
        if digest != sha256:
            raise HashMismatch(requirement, sha256, digest)
        return cache.adopt(
            name(filename), found[0], sha256=digest, origin=Origin.WHEEL, details={"requirement": requirement}
        )


def pip() -> tuple[str, ...]:
    """How to call pip: this interpreter's, else the system's. Raises `EnvironmentFault`."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    if found := shutil.which("pip3") or shutil.which("pip"):
        return (found,)
    raise EnvironmentFault("pip is not installed", f"run: {sys.executable} -m ensurepip")


def _platform(filename: str) -> tuple[str, ...]:
    """Options that make pip take this very wheel whatever machine and interpreter it runs on."""
    _name, _version, _build, tags = parse_wheel_filename(filename)
    options: list[str] = []
    for platform in sorted({tag.platform for tag in tags}):
        options += ["--platform", platform]
    tag = sorted(tags, key=str)[0]
    if tag.interpreter.startswith("cp"):
        options += ["--implementation", "cp", "--abi", tag.abi, "--python-version", tag.interpreter[2:]]
    return tuple(options)


def _got(output: str) -> str:
    """The hash that pip found."""
    match = re.search(r"Got\s+([0-9a-f]{64})", output)
    return match[1] if match else "another"
