"""pip inside `docker build`: this machine's own index, and a stand-in for an image that Docker Hub has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from real import MARK
from service_container import docker

PYTHON = "python:3.11-slim-bookworm"


@contextmanager
def python_with_pip(base: str, folder: Path) -> Iterator[str]:
    """Words for `docker build` with a stand-in for PYTHON: a cell's base and the pip of this environment."""
    reference = f"localhost/ortimg-test/python-with-pip:{os.getpid()}-{folder.name}"
    pip = find_spec("pip")
    assert pip is not None and pip.origin is not None
    shutil.copytree(Path(pip.origin).parent, folder / "pip", ignore=shutil.ignore_patterns("__pycache__"))
    target = "/usr/local/lib/python3.11/dist-packages/pip"
    (folder / "Dockerfile").write_text(f"FROM {base}\nCOPY pip {target}\nLABEL test={MARK}\n")
    docker("build", "--quiet", f"--tag={reference}", str(folder))
    try:
        yield f"--build-context={PYTHON}=docker-image://{reference}"
    finally:
        docker("rmi", "--force", reference)


def pip_settings() -> dict[str, str]:
    """This machine's pip configuration."""
    words = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^[^.]+\.([\w-]+)='(.*)'$", listed, re.MULTILINE))


def pip_secrets(folder: Path, settings: Mapping[str, str]) -> list[str]:
    """pip's configuration as the Dockerfiles take it; a certificate's file goes along."""
    inside, secrets = dict(settings), [f"--secret=id=pip,src={folder / 'pip.conf'}"]
    if inside.get("find-links", "").startswith("/"):  # a folder of this machine
        del inside["find-links"]
    if certificate := inside.get("cert"):
        secrets.append(f"--secret=id=ca,src={certificate}")
        inside["cert"] = "/run/secrets/ca"
    lines = "".join(f"{key} = {value}\n" for key, value in inside.items())
    (folder / "pip.conf").write_text(f"[global]\n{lines}")
    return secrets
