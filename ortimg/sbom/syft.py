"""A distribution's packages by syft, once for each base: https://github.com/anchore/syft

syft gets nothing but the package database and the packages' copyright files: of the gigabytes it would say
nothing, and it would read them for two minutes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ortimg.core.content import digest
from ortimg.core.sbom import Component
from ortimg.core.sbom_distro import read_syft
from ortimg.errors import EnvironmentFault
from ortimg.generated import write_atomically
from ortimg.inputs.cache import Cache
from ortimg.sbom.gather import Read, members

NOT_SCANNED = "The distribution's packages were not looked at: there was no syft."
_DATABASES = ("/var/lib/dpkg", "/usr/lib/sysimage/rpm", "/var/lib/rpm")
_RELEASE = ("/usr/lib/os-release", "/etc/os-release")
_COPYRIGHTS = "/usr/share/doc"
_LIMIT = 300  # seconds


def syft_program() -> str | None:
    """The one that came with `ortimg[sbom]`, or one on PATH."""
    beside = Path(sys.executable).with_name("syft")
    return str(beside) if beside.is_file() else shutil.which("syft")


def distro_packages(read: Read, cache: Cache, program: str) -> tuple[Component, ...]:
    """The packages of the image that `read` reads. Raises EnvironmentFault where syft fails."""
    with cache.workdir() as work:
        root = work / "root"
        parts = [program, _version(program)]
        for place in (*_RELEASE, *_DATABASES, _COPYRIGHTS):
            for path, member, tar in members(read, place):
                if place == _COPYRIGHTS and not path.endswith("/copyright"):
                    continue
                file = tar.extractfile(member)
                target = (root / path.lstrip("/")).resolve()
                if file is None or not target.is_relative_to(root.resolve()):
                    continue
                data = file.read()
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                parts.append(f"{path} {hashlib.sha256(data).hexdigest()}")
        kept = cache.root / "sbom" / f"distro-{digest(*sorted(parts))}.json"
        if kept.is_file():
            return read_syft(kept.read_bytes())
        data = _scan(program, root, work)
        found = read_syft(data)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, data.decode())
        return found


def _scan(program: str, root: Path, work: Path) -> bytes:
    root.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "SYFT_CHECK_FOR_APP_UPDATE": "false",  # it would ask the network
        "XDG_CACHE_HOME": str(work / "cache"),
    }
    command = [program, "scan", "--quiet", "--output=syft-json", f"dir:{root}"]
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFault(f"syft: {error}", f"see `{program} --version`") from error
    if done.returncode != 0:
        said = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
        raise EnvironmentFault(f"syft failed: {said}", f"see `{program} --version`")
    return done.stdout


def _version(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = "install it anew: in a clone of ortimg, pip install '.[sbom]'"
        raise EnvironmentFault(f"syft: {error}", hint) from error
    return done.stdout.strip()
