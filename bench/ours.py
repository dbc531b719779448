"""Our side: the same cells with `ortimg build` and `ortimg push`, in an empty engine, inputs in the cache."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench import ROOT
from bench.daemons import Engine, Registry, call, call_both, engine, registry
from bench.disk import DiskWatch, bytes_below
from bench.manifests import layers_of
from bench.noise import Stopwatch, Timing
from ortimg.errors import EnvironmentFault

REPOSITORY = "onnxruntime-gpu"  # as images.yaml calls it
_GLUE = 'org.opencontainers.image.title="ONNX Runtime GPU'


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """What the cells cost together."""

    build: Timing
    parts: dict[str, float]  # seconds as `ortimg build --json` tells them
    steps: dict[str, float]  # seconds of each unit, root and cell, as `ortimg build` tells them
    push: Timing
    stored: int  # bytes that the engine's disk holds when all is done: units and builder cache too
    peak: int  # bytes that the disk filled up by at the most, others' included
    layers: dict[str, dict[str, int]]  # as pushed, by cell
    unchanged: Timing  # `ortimg build` once more
    label: Timing  # after one label changed in every cell


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A project, a cache and an engine of a run's own, and the registry that is pushed to."""

    project: Path
    cache: Path
    engine: Engine
    registry: Registry

    def environment(self) -> dict[str, str]:
        return {**self.engine.environment(), "ORTIMG_CACHE": str(self.cache)}

    def ortimg(self, *words: str) -> str:
        """What `ortimg` prints on stdout. Raises EnvironmentFault with its last words."""
        return call(self.command(*words), self.environment())

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "ortimg", "-C", str(self.project), *words]

    def built(self, cells: Sequence[str]) -> dict[str, Any]:
        """The report of `ortimg build`, with what it told meanwhile as "told".

        Raises EnvironmentFault where a cell is not there afterwards.
        """
        printed, told = call_both(self.command("build", *cells, "--json"), self.environment())
        report: dict[str, Any] = {**json.loads(printed), "told": told}
        lost = [row["identifier"] for row in report["cells"] if row["result"] not in ("built", "unchanged")]
        if lost:
            raise EnvironmentFault(f"not built: {', '.join(lost)}")
        return report

    def push(self, path: str, cells: Sequence[str], *words: str) -> None:
        """`ortimg push` below a path of the registry."""
        prefix = f"{self.registry.host}/{path}"
        options = ("--tier", "load", "--no-aliases", "--registry-prefix", prefix)
        digests = str(self.project / "digests.json")
        self.ortimg("push", *cells, *options, "--digests", digests, *words)


@contextmanager
def place(folder: Path, cache: Path) -> Iterator[Place]:
    """Everything empty but the inputs, which are links into `cache`."""
    folder.mkdir(parents=True)
    try:
        for part in ("blobs", "index"):
            shutil.copytree(cache / part, folder / "cache" / part, copy_function=_link)
        project = folder / "project"
        project.mkdir()
        for name in ("images.yaml", "images.lock"):
            shutil.copy(ROOT / name, project)
        with engine(folder / "engine") as own, registry(folder / "registry") as store:
            yield Place(project=project, cache=folder / "cache", engine=own, registry=store)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(own: Place, cells: Sequence[str]) -> Ours:
    """Build, build again, change a label, push."""
    with DiskWatch(own.project) as disk, Stopwatch() as first:
        report = own.built(cells)
    stored = bytes_below(own.engine.data)
    with Stopwatch() as pushing:
        own.push("first", cells)
    layers = {name: layers_of(f"{own.registry.host}/first/{REPOSITORY}", name) for name in cells}
    with Stopwatch() as unchanged:
        own.built(cells)
    change_label(own.project)
    with Stopwatch() as label:
        own.built(cells)
    return Ours(
        build=first.timing,
        parts=report["seconds"],
        steps=read_steps(report["told"]),
        push=pushing.timing,
        stored=stored,
        peak=disk.peak,
        layers=layers,
        unchanged=unchanged.timing,
        label=label.timing,
    )


def read_steps(told: str) -> dict[str, float]:
    """Seconds of what was built, without the hashes in its names.

    >>> read_steps("cuda:11.8-cudnn8-590fd6fcbd75f988: built in 51.4 s\nx: storing\n")
    {'cuda:11.8-cudnn8': 51.4}
    """
    found = re.findall(r"^(\S+?)(?:[-:][0-9a-f]{16})?: built in ([\d.]+) s$", told, re.MULTILINE)
    return {name: float(seconds) for name, seconds in found}


def change_label(project: Path) -> None:
    """One label more in every image, by a template of the project's own."""
    text = (ROOT / "templates" / "stages" / "image.j2").read_text()
    if _GLUE not in text:
        raise EnvironmentFault("the template of an image has another title than the bench knows")
    target = project / "templates" / "stages"
    target.mkdir(parents=True)
    (target / "image.j2").write_text(text.replace(_GLUE, 'bench.label="1" ' + _GLUE))


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
