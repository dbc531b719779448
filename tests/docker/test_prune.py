"""`ortimg prune` on a real engine: tiny images under a name of their own, so that real units stay."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ortimg.cli import cli
from ortimg.core.lock import merge, planned
from ortimg.core.model import Origin
from ortimg.core.render import dockerfile_path
from ortimg.engine.cache import cache_records, prune_cache
from ortimg.engine.client import Engine
from ortimg.factory import disk, images, stale
from ortimg.factory.images import Identities, cell_image, root_reference
from ortimg.inputs.cache import Cache, Entry
from ortimg.inputs.lockfile import write_lock
from ortimg.project import load_project
from ortimg.rendering import build_context, render_project

MARK = f"prune-{os.getpid()}"
REPOSITORY = f"ortimg-test/{MARK}"
IDENTIFIER = "1.16.2-cuda11.8-cudnn8-debian12"
CONFIG = {
    "repository": REPOSITORY,
    "include": [{"ort": "1.16.2", "cuda": "11.8", "cudnn": "8", "base": "debian12"}],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose cache, units and builder's records are its own."""
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(images, "PREFIX", f"localhost/ortimg-test-{MARK}")
    for module, name in ((disk, "_INTERMEDIATE"), (stale, "_HEAVY_STEP"), (stale, "_CELL_STEP")):
        monkeypatch.setattr(module, name, re.compile(f".*COPY {name}-{MARK} "))
    (tmp_path / "images.yaml").write_text(json.dumps(CONFIG))
    return tmp_path


class World:
    """Tiny images that stand for units, bases and cells."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.made: list[str] = []

    def image(self, reference: str, size: int, source: str | None = None, **labels: str) -> str:
        """An image with a layer of `size` bytes, above that of `source`."""
        if source is None:
            self.imported(reference, size, [f"LABEL ortimg.{key}={value}" for key, value in labels.items()])
        else:
            options = [f"--label=ortimg.{key}={value}" for key, value in labels.items()]
            self.build(size, f"own-{MARK}", source, f"--tag={reference}", *options)
        self.made.append(reference)
        return reference

    def imported(self, reference: str, size: int, changes: list[str]) -> None:
        (self.folder / "own").write_bytes(os.urandom(size))
        tar = self.folder.parent / "own.tar"
        with tarfile.open(tar, "w") as archive:
            archive.add(self.folder / "own", "own")
        self.engine.import_root(tar, reference, changes)

    def build(self, size: int, name: str, source: str | None, *options: str) -> None:
        (self.folder / name).write_bytes(os.urandom(size))
        text = f"FROM {'unit' if source else 'scratch'}\nCOPY {name} /{size}\n"
        context = [f"--build-context=unit=docker-image://{source}"] if source else []
        command = ["docker", "buildx", "build", "--quiet", "--provenance=false", "--file=-"]
        subprocess.run(
            [*command, *context, *options, str(self.folder)],
            input=text,
            text=True,
            check=True,
            capture_output=True,
        )

    def left(self) -> set[str]:
        return {reference for reference in self.made if self.engine.inspect(reference)}


@pytest.fixture
def world(engine: Engine, tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "context"
    folder.mkdir()
    world = World(engine, folder)
    yield world
    for reference in world.left():
        engine.remove(reference)
    prune_cache(engine, lambda record: MARK in record.description)


def put(name: str, **details: str) -> Entry:
    cache = Cache.default()
    with cache.workdir() as work:
        (work / "file").write_bytes(os.urandom(10))
        return cache.adopt(name, work / "file", sha256=None, origin=Origin.MAVEN, details=details)


def references(folder: Path) -> dict[str, str]:
    """What `ortimg build` would call the units and the base of the one cell."""
    project = load_project(folder)
    tar = put("ort/1.16.2-cuda11/maven", tar_sha256="7" * 64)
    base = put("base/debian12/bootstrap")
    (cell,) = project.plan.cells
    files = render_project(project)
    identities = Identities(
        ort=tar.details["tar_sha256"],
        cuda=" ".join(wheel.sha256 for wheel in cell.cuda_set.wheels),
        base=base.sha256,
        ort_origin=Origin.MAVEN,
        cuda_origin=Origin.WHEEL,
        base_origin=Origin.BOOTSTRAP,
    )
    made = cell_image(cell, identities, files[dockerfile_path(cell)], build_context(files))
    return {unit.value: image.reference for unit, image in made.units.items()} | {
        "base": root_reference("base-debian12", base.sha256)
    }


def prune(folder: Path, *options: str) -> tuple[Result, dict[str, Any]]:
    result = CliRunner().invoke(cli, ["-C", str(folder), "prune", "--json", *options])
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    assert report["engine"] is None
    return result, {row["name"]: row["bytes"] for row in report["removed"] if row["kind"] != "cache"}


def about(size: int) -> int:
    """Bytes as the test wrote them: stores count in blocks, and folders too."""
    return size // 10_000 * 10_000


def test_stale_images_go_and_what_builds_use_stays(project: Path, world: World) -> None:
    wanted = [world.image(name, 100) for name in references(project).values()]
    cell = world.image(f"{REPOSITORY}:{IDENTIFIER}", 100, identifier=IDENTIFIER)
    strange = world.image(f"localhost/ortimg-test-{MARK}-other/cuda:x", 100)
    prefix = images.PREFIX
    old = {
        world.image(f"{prefix}/cuda:11.8-cudnn8-0123456789abcdef", 50_000): 50_000,
        world.image(f"{prefix}/ort:1.14.0-cuda11-0123456789abcdef", 60_000): 60_000,
        world.image(f"{prefix}/base-debian12:0123456789abcdef", 70_000): 70_000,
        world.image(f"{prefix}/base-debian13:0123456789abcdef", 80_000): 80_000,
    }
    tools = world.image(f"{prefix}/tools:0123456789abcdef", 100)  # the cache does not know what it is made of
    _, dry = prune(project, "--dry-run")
    assert world.left() == {*wanted, cell, strange, tools, *old}
    _, removed = prune(project)
    assert removed == dry
    assert {name: about(size) for name, size in removed.items()} == old
    assert world.left() == {*wanted, cell, strange, tools}

    write_lock(project, merge(planned(load_project(project).plan.cells), planned(())))
    _, removed = prune(project, "--units")
    assert removed.keys() == {*wanted, tools}
    assert world.left() == {cell, strange}
    _, removed = prune(project, "--images")
    assert removed.keys() == {cell}
    assert world.left() == {strange}


def test_bytes_are_those_that_nothing_else_holds(project: Path, world: World) -> None:
    unit = world.image(f"{images.PREFIX}/cuda:11.8-cudnn8-0123456789abcdef", 90_000)
    world.image(f"{REPOSITORY}:{IDENTIFIER}", 20_000, unit, identifier=IDENTIFIER)
    _, removed = prune(project)
    assert removed == {unit: 0}, "the cell holds the unit's layer"
    unit = world.image(f"{images.PREFIX}/cuda:11.8-cudnn8-0123456789abcdef", 30_000)
    second = f"{images.PREFIX}/cuda:11.8-cudnn8-00000000000000ff"
    world.engine.tag(unit, second)
    world.made.append(second)
    _, removed = prune(project)
    assert sorted(map(about, removed.values())) == [0, 30_000], "two names of one image count once"
    _, removed = prune(project, "--images")
    assert len(removed) == 1
    assert about(removed[f"{REPOSITORY}:{IDENTIFIER}"]) in (110_000, 120_000)
    assert world.left() == set()


def test_an_image_of_a_container_is_left_and_named(project: Path, world: World) -> None:
    unit = world.image(f"{images.PREFIX}/cuda:11.8-cudnn8-0123456789abcdef", 100)
    cell = world.image(f"{REPOSITORY}:{IDENTIFIER}", 100, identifier=IDENTIFIER)
    names = [f"{MARK}-{number}" for number in range(2)]
    for name, image in zip(names, (unit, cell), strict=True):
        subprocess.run(["docker", "create", "--name", name, image, "/x"], check=True, capture_output=True)
    try:
        result, removed = prune(project, "--images")
        assert removed == {}
        assert json.loads(result.stdout)["kept"] == [
            {"name": unit, "reason": f"used by the container {names[0]}"},
            {"name": cell, "reason": f"used by the container {names[1]}"},
        ]
        assert world.left() == {unit, cell}
    finally:
        subprocess.run(["docker", "rm", "-f", *names], check=True, capture_output=True)
    _, removed = prune(project, "--images")
    assert removed.keys() == {unit, cell}


def test_records_of_the_builder(project: Path, world: World) -> None:
    def here() -> set[str]:
        found = (
            re.search(rf"COPY (\S+)-{MARK} ", record.description) for record in cache_records(world.engine)
        )
        return {match[1] for match in found if match}

    names = ("_INTERMEDIATE", "_HEAVY_STEP", "_CELL_STEP", "strange")
    for name in names:
        world.build(40_000, f"{name}-{MARK}", None, "--output=type=cacheonly")
    assert here() == {*names}
    _, dry = prune(project, "--dry-run")
    _, removed = prune(project)
    assert dry.keys() == removed.keys() == {"2 records of the builder"}
    assert removed["2 records of the builder"] >= 80_000
    assert here() == {"_CELL_STEP", "strange"}
    prune(project, "--units")
    assert here() == {"strange"}
