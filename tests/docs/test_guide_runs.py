"""Every block of the guide that says so is run where it says so, and prints what the page shows.

`pytest tests/docs -k archive` runs one page; `-s` shows what each block took.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock
from guide import english_pages, read_page
from guide_runner import Runner

pytestmark = [pytest.mark.engine, pytest.mark.inputs]


TURN = 3600  # seconds; a page of another run ends within


def turn(name: str) -> FileLock:
    """Names of images, of containers and ports are the page's own: two runs on one machine take turns."""
    return FileLock(Path(tempfile.gettempdir()) / f"ortimg-guide-{os.getuid()}-{name}.lock", timeout=TURN)


@pytest.mark.parametrize("path", english_pages(), ids=lambda path: read_page(path).name)
def test_page(path: Path, tmp_path: Path) -> None:
    page = read_page(path)
    assert not page.faults, "\n".join(f"{path}:{fault}" for fault in page.faults)
    with turn(page.name):
        runner = Runner(page, tmp_path / "page")
        try:
            for step, seconds in runner.run():
                print(f"{path.name}:{step.block.line}: {step.marker.kind.value} {seconds:.1f} s")
        finally:
            runner.close()
