"""Looks into an image with a small program, which runs there alone; it takes a second.

`docker export` tells the same, and reads gigabytes for it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

from ortimg.core.doctor.facts import Elf
from ortimg.doctor.files import read_elf
from ortimg.doctor.image_files import ImageFiles
from ortimg.engine.client import Engine
from ortimg.errors import CheckFailed, EnvironmentFault
from ortimg.verify.binary import TARGET

_MOUNT = "/run/ortimg-doctor"  # as in peek.c
_COMPILING, _LOOKING = 300, 120  # seconds


def get_peek(cache: Path) -> Path:
    """The program, compiled where the folder `cache` has it not yet. Raises EnvironmentFault without zig."""
    source = (files("ortimg.doctor") / "peek.c").read_bytes()
    done = cache / "doctor" / hashlib.sha256(source).hexdigest()[:16] / "peek"
    if done.is_file():
        return done
    zig = shutil.which("zig")
    compiler = [zig] if zig else [sys.executable, "-m", "ziglang"]
    if not zig and importlib.util.find_spec("ziglang") is None:
        raise EnvironmentFault("there is no zig to compile a program with", "run `pip install ziglang`")
    done.parent.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=done.parent.parent, prefix="compile-") as name:
        folder = Path(name)
        (folder / "peek.c").write_bytes(source)
        (folder / "out").mkdir(mode=0o755)
        caches = {"ZIG_GLOBAL_CACHE_DIR": f"{name}/zig", "ZIG_LOCAL_CACHE_DIR": f"{name}/zig"}
        command = [*compiler, "cc", "-target", TARGET, "-std=c11", "-O2", "-s"]
        try:
            subprocess.run(
                [*command, "-o", "out/peek", "peek.c"],
                cwd=folder,
                env=os.environ | caches,
                capture_output=True,
                timeout=_COMPILING,
                check=True,
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise EnvironmentFault(
                f"peek.c does not compile ({error})", "run `pip install --upgrade ziglang`"
            ) from None
        try:
            (folder / "out").rename(done.parent)
        except OSError:
            if not done.is_file():  # another process was quicker: its file is the same
                raise
    return done


def look_into(engine: Engine, identity: str, program: Path) -> ImageFiles:
    """The files of an image. Raises CheckFailed where the program does not run to its end there."""
    result = engine.run(
        identity,
        [],
        limit=_LOOKING,
        entrypoint=f"{_MOUNT}/peek",
        volumes={str(program.parent): {"bind": _MOUNT, "mode": "ro"}},
        user="0:0",  # folders may be closed to the image's user
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
    )
    lines = result.stdout.splitlines()
    if result.exit_code != 0 or not lines or lines[-1] != "e":
        raise CheckFailed(f"the look into the image ended early: {result.stderr.strip() or result.exit_code}")
    return read_records(lines)


def read_records(lines: Iterable[str]) -> ImageFiles:
    """What peek.c printed."""
    found = ImageFiles()
    with tempfile.TemporaryDirectory(prefix="ortimg-doctor-") as name:
        scratch = Path(name) / "library"
        path, size = "", 0
        parts: list[tuple[int, bytes]] = []
        for line in (*lines, "e"):
            kind, _, rest = line.partition(" ")
            words = rest.split(" ")
            if kind == "s":
                parts.append(_part(words))
                continue
            if parts:
                _finish(found, path, size, parts, scratch)
                parts = []
            match kind:
                case "d":
                    found.add_folder(unquote(words[0]))
                case "l":
                    found.add_link(unquote(words[0]), unquote(words[1]))
                case "f":
                    path, size = unquote(words[0]), int(words[1])
                    found.add_file(path, size)
                case _:
                    pass
    return found


def _part(words: list[str]) -> tuple[int, bytes]:
    try:
        return int(words[0]), base64.b64decode(words[1], validate=True)
    except (ValueError, IndexError, binascii.Error):
        raise CheckFailed("the look into the image gave no whole answer") from None


def _finish(found: ImageFiles, path: str, size: int, parts: list[tuple[int, bytes]], scratch: Path) -> None:
    if len(parts) == 1 and parts[0][0] == 0 and len(parts[0][1]) == size:
        found.add_content(path, parts[0][1])
    found.add_elf(path, _sparse(size, parts, scratch))


def _sparse(size: int, parts: list[tuple[int, bytes]], scratch: Path) -> Elf | None:
    """A file with holes where nothing was told: the disk does not store those."""
    with scratch.open("wb") as file:
        file.truncate(size)
        for offset, content in parts:
            file.seek(offset)
            file.write(content)
    try:
        return read_elf(scratch)
    finally:
        scratch.unlink()
