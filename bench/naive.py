"""The naive side: a hand-written Dockerfile a cell, `docker build`, `docker push`, one cell at a time.

Base images are in the engine beforehand, as if pulled. Each cell starts without a builder cache and is
removed when it was pushed, so that the disk holds one cell. A kept cache would have spared later cells some
steps; the steps' own seconds are recorded, so that it can be told how much (`spared`).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.daemons import Engine, call, engine, registry
from bench.disk import bytes_below
from bench.dockerfile import dockerfile
from bench.inputs import Inputs
from bench.manifests import layers_of
from bench.noise import Stopwatch, Timing
from bench.serving import serving

REPOSITORY = "bench/naive"
_FETCH = "bench/fetch:1"
_NAME = re.compile(r"#(\d+) \[([^]]*\d+/\d+)\] (.*)")
_NAME_LENGTH = 80  # enough to tell the steps apart
_DONE = re.compile(r"#(\d+) DONE ([\d.]+)s")


class NaiveCell(msgspec.Struct, frozen=True, kw_only=True):
    """What one cell cost."""

    build: Timing
    push: Timing
    stored: int  # bytes that the engine's disk holds of it, the builder's cache emptied
    layers: dict[str, int]  # as pushed
    steps: dict[str, float]  # seconds of each step of the build, by its text
    export: float  # seconds of packing and unpacking the layers


@contextmanager
def naive_engine(
    folder: Path, inputs: Sequence[Inputs], fetch_root: Path, *, containerd_store: bool = True
) -> Iterator[Engine]:
    """An engine that holds the bases of `inputs` and the image of the first stage."""
    with engine(folder, containerd_store=containerd_store) as own:
        roots = {_base(have): have.base.path for have in inputs}
        for image, root in {_FETCH: fetch_root, **roots}.items():
            context = folder / "base"
            context.mkdir()
            shutil.copyfile(root, context / "root.tar")
            (context / "Dockerfile").write_text('FROM scratch\nADD root.tar /\nCMD ["bash"]\n')
            own.docker("build", "--quiet", "--tag", image, str(context))
            shutil.rmtree(context)
        own.docker("builder", "prune", "--all", "--force")
        yield own


def run(own: Engine, have: Inputs, folder: Path) -> NaiveCell:
    """Build and push one cell, then remove it. `folder`: for its context, its registry, its files."""
    name = have.cell.identifier
    files = {file.name: file.path for file in have.files if file != have.base}
    archive = have.archive.name if have.archive else None
    context = folder / "context"
    context.mkdir(parents=True)
    before = bytes_below(own.data)
    try:
        with serving(folder / "files", files) as server, registry(folder / "registry") as store:
            text = dockerfile(have.cell, archive, server, _FETCH, _base(have))
            (context / "Dockerfile").write_text(text)
            image = f"{store.host}/{REPOSITORY}:{name}"
            words = ["build", "--network", "host", "--progress", "plain", "--tag", image, str(context)]
            with Stopwatch() as building:
                told = call(["sh", "-c", 'exec docker "$@" 2>&1', "docker", *words], own.environment())
            with Stopwatch() as pushing:
                own.docker("push", "--quiet", image)
            layers = layers_of(f"{store.host}/{REPOSITORY}", name)
            own.docker("builder", "prune", "--all", "--force")
            stored = bytes_below(own.data) - before
            own.docker("rmi", "--force", image)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    steps, export = read_steps(told)
    return NaiveCell(
        build=building.timing, push=pushing.timing, stored=stored, layers=layers, steps=steps, export=export
    )


def read_steps(progress: str) -> tuple[dict[str, float], float]:
    """Seconds of each step by its text, and of the export, from `docker build --progress plain`.

    >>> read_steps("#5 [fetch 2/3] RUN a\\n#5 DONE 1.5s\\n#9 exporting to image\\n#9 DONE 3.0s\\n")
    ({'fetch 2/3 RUN a': 1.5}, 3.0)
    """
    names: dict[str, str] = {}
    seconds: dict[str, float] = {}
    export = 0.0
    for line in progress.splitlines():
        if named := _NAME.match(line):
            names.setdefault(named[1], " ".join(f"{named[2]} {named[3]}".split())[:_NAME_LENGTH])
        elif line.endswith("exporting to image"):
            names.setdefault(line.split()[0].lstrip("#"), "")
        elif (done := _DONE.match(line)) and done[1] in names:
            if names[done[1]]:
                seconds[names[done[1]]] = float(done[2])
            else:
                export = float(done[2])
    return seconds, export


def spared(cells: Sequence[tuple[Inputs, NaiveCell]]) -> float:
    """Seconds of steps that a kept builder cache would have spared: the same fetch as in an earlier cell."""
    seen: set[str] = set()
    total = 0.0
    for have, cell in cells:
        parts = {
            "pip": str([file.sha256 for file in have.wheels]),
            "curl": have.archive.sha256 if have.archive else "",
        }
        for word, identity in parts.items():
            step = next((value for text, value in cell.steps.items() if f"{word} " in text), 0.0)
            if identity in seen:
                total += step
            seen.add(identity)
    return total


def _base(have: Inputs) -> str:
    return f"bench/base-{have.cell.base.key_for(have.cell.flavour)}:1"
