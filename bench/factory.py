"""What building costs, in one run, as ratios: cold, nothing changed, a label changed; and bytes of twins.

    python bench/factory.py [--cold]

Works on a copy of this repository under another name, with the engine and the cache that are there. `--cold`
first removes every unit and base of ortimg from the engine, so that the first build makes them anew (inputs
stay cached); without it the first build makes the cells only.
Seconds on a shared machine move a lot; the ratios of one run move less.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OURS = "repository: onnxruntime-gpu "
REPOSITORY = "ortimg-bench"  # the images of the repository itself are left alone
GLUE = 'org.opencontainers.image.title="ONNX Runtime GPU'


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cold", action="store_true")
    cold = parser.parse_args().cold
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        shutil.copy(ROOT / "images.lock", project)
        wishes = (ROOT / "images.yaml").read_text()
        assert OURS in wishes
        (project / "images.yaml").write_text(wishes.replace(OURS, f"repository: {REPOSITORY} "))
        if cold:
            ortimg(project, "prune", "--units")
        with DiskWatch() as disk:
            first = build(project, "cold" if cold else "units there")
        twins(first["cells"])
        again = build(project, "nothing changed")
        templates = project / "templates" / "stages"
        templates.mkdir(parents=True)
        text = (ROOT / "templates" / "stages" / "image.j2").read_text()
        assert GLUE in text
        (templates / "image.j2").write_text(text.replace(GLUE, 'bench.label="1" ' + GLUE))
        glue = build(project, "a label changed")
    remove_images()
    print(f"peak disk of the first build: {disk.peak / 1e9:.1f} GB, {disk.left / 1e9:.1f} GB when done")
    print(f"nothing changed / first: {again['wall'] / first['wall']:.3f}   (asked for: 5 s at most)")
    print(f"a label changed / first: {glue['wall'] / first['wall']:.3f}   (asked for: 20 s at most)")


def remove_images() -> None:
    from ortimg.engine.client import Engine

    engine = Engine()
    for image in engine.images(reference=f"{REPOSITORY}:*"):
        for reference in image.references:
            engine.remove(reference)


def build(project: Path, what: str) -> dict[str, Any]:
    """One `ortimg build --available`; prints its seconds by part."""
    began = time.perf_counter()
    done = ortimg(project, "build", "--available", "--json")
    wall = time.perf_counter() - began
    report = json.loads(done)
    parts = report["seconds"]
    results = [cell["result"] for cell in report["cells"]]
    counts = ", ".join(f"{results.count(kind)} {kind}" for kind in dict.fromkeys(results))
    print(
        f"{what}: {wall:.1f} s (inputs {parts['fetch']}, units {parts['units']}, cells {parts['cells']},"
        f" of that verifying {parts['verify']}): {counts}"
    )
    return {"wall": wall, "cells": report["cells"]}


def twins(cells: list[dict[str, Any]]) -> None:
    """Bytes of each debian13 image that its debian12 twin does not have."""
    images = {cell["identifier"]: cell["image"] for cell in cells if cell["image"]}
    for name, image in images.items():
        twin = images.get(name.replace("-debian13", "-debian12"))
        if not name.endswith("-debian13") or twin is None:
            continue
        mine, theirs = layers(image), layers(twin)
        beyond = {key: size for key, size in mine.items() if key not in theirs}
        base = max(beyond.values())
        rest = sum(beyond.values()) - base
        share = sum(beyond.values()) / sum(mine.values())
        print(
            f"{name}: beyond its twin {base / 1e6:.1f} MB of base + {rest / 1e6:.3f} MB,"
            f" {share:.3f} of the image"
        )


def layers(image: str) -> dict[str, int]:
    from ortimg.engine.client import Engine

    return {layer.diff_id: layer.size for layer in Engine().layers(image)}


def ortimg(project: Path, *args: str) -> str:
    command = [sys.executable, "-m", "ortimg", "--project", str(project), *args]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "CI": "true"})
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


class DiskWatch:
    """Bytes that the disk of the engine fills up by, at the most and in the end."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._start = shutil.disk_usage("/var/lib").used
        self.peak = 0
        self.left = 0

    def __enter__(self) -> DiskWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.left = shutil.disk_usage("/var/lib").used - self._start

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            self.peak = max(self.peak, shutil.disk_usage("/var/lib").used - self._start)


if __name__ == "__main__":
    main()
