"""ortimg as a user installs it: from its wheel, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent  # of the environment with the tools


@dataclass(frozen=True)
class Installed:
    """ortimg from its wheel, in a virtual environment far from this repository."""

    wheel: Path
    python: Path

    def __call__(self, *words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `ortimg`, as it is on PATH, in the folder `cwd`."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [str(self.python.parent / "ortimg"), *words],
            cwd=cwd,
            env={**inherited, "PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )


def hatchling(kind: str, source: Path, folder: Path) -> Path:
    """Build a "wheel" or an "sdist" of `source` into `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    (built,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def contents(wheel: Path) -> dict[str, bytes]:
    """Name → bytes of all that is in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
