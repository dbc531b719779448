"""The image of examples/python-service, built from a clone as a reader builds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pip_here import pip_secrets, pip_settings, python_with_pip
from real import RealCell
from service_container import ROOT, build_from_clone, docker

CELL = "1.17.1-cuda11.8-cudnn8-debian12-python3.11"
SERVICE = ROOT / "examples" / "python-service"


@contextmanager
def python_service(cell: RealCell, folder: Path) -> Iterator[str]:
    """The image's reference, until the end of the block. `folder`: scratch."""
    reference = f"localhost/ortimg-test/example-python:{os.getpid()}"
    (folder / "pip").mkdir()
    with python_with_pip(cell.base, folder / "pip") as context:
        words = [f"--build-arg=CELL={cell.reference}", context, *pip_secrets(folder, pip_settings())]
        build_from_clone("python-service", reference, folder / "clone", *words)
    try:
        yield reference
    finally:
        docker("rmi", "--force", reference)
