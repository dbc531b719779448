"""Two builds without a cache give one digest; where they do not, it is told what differs."""

from __future__ import annotations

import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from layer_diff import differences
from real import ROOT, RealCell, changed

from ortimg.core.render import DOCKERFILES
from ortimg.engine.buildx import run_build
from ortimg.engine.client import Engine
from ortimg.factory.disk import builder_name
from ortimg.factory.stores import COMPRESSION

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

NAMES = tuple(f"ortimg-test-reproducible:{word}" for word in ("first", "second"))
DATE = {"SOURCE_DATE_EPOCH": "1735689600"}
FIXED = " && touch --date=@315532800 /etc/ld.so.cache /etc"


@pytest.fixture
def tidy(tidy_engine: Engine) -> Iterator[None]:
    yield
    for name in NAMES:
        tidy_engine.remove(name)


def build(cell: RealCell, dockerfile: str, name: str, folder: Path) -> None:
    """Build the last stage without a cache, as `ortimg build` does; what it stands on is not built anew."""
    (folder / "Dockerfile").write_text(dockerfile)
    args = ["build", f"--builder={builder_name()}", "--no-cache", f"--file={folder / 'Dockerfile'}"]
    args += [f"--build-context={stage}={source}" for stage, source in cell.contexts.items()]
    args += [f"--tag={name}", f"--output=type=image,{COMPRESSION}", str(ROOT / DOCKERFILES)]
    outcome = run_build(args, on_event=lambda _: None, log=folder / "log", cancel=threading.Event(), env=DATE)
    assert outcome.ok, outcome.failure


@pytest.mark.usefixtures("tidy")
def test_two_builds_without_a_cache_give_one_digest(
    real_cell: RealCell, tidy_engine: Engine, tmp_path: Path
) -> None:
    for name in NAMES:
        build(real_cell, real_cell.dockerfile, name, tmp_path)
    first, second = (digest(tidy_engine, name) for name in NAMES)
    if first != second:  # to read them takes a while
        pytest.fail("\n".join(differences(*NAMES)), pytrace=False)
    # A step whose times are not fixed makes another image.
    build(real_cell, changed(real_cell.dockerfile, FIXED, ""), NAMES[1], tmp_path)
    assert digest(tidy_engine, NAMES[1]) != first


def digest(engine: Engine, name: str) -> str:
    image = engine.inspect(name)
    assert image is not None
    return image.id


@pytest.mark.usefixtures("tidy")
def test_what_differs_is_told_by_layer_path_and_field(tmp_path: Path) -> None:
    for name, time, mode in zip(NAMES, (1, 2), (0o644, 0o600), strict=True):
        context = tmp_path / str(time)
        context.mkdir()
        file = tarfile.TarInfo("conf")
        file.mtime, file.mode = time, mode
        with tarfile.open(context / "root.tar", "w") as tar:
            tar.addfile(file)
        (context / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
        args = ["build", f"--builder={builder_name()}", f"--tag={name}"]
        args += [f"--output=type=image,{COMPRESSION}", str(context)]
        outcome = run_build(
            args, on_event=lambda _: None, log=tmp_path / "log", cancel=threading.Event(), env=DATE
        )
        assert outcome.ok, outcome.failure
    lines = differences(*NAMES)
    assert "layer 0: conf: mtime 1 → 2" in lines
    assert "layer 0: conf: mode 420 → 384" in lines
    assert not [line for line in lines if line.startswith("layer") and ": conf: " not in line]
