"""The real 1.16.2 cell as a user builds it, and builds of its Dockerfile with one change in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ortimg.core.lock import merge, planned
from ortimg.core.render import DOCKERFILES, dockerfile_path
from ortimg.engine.buildx import BuildOutcome, run_build
from ortimg.engine.client import Engine
from ortimg.factory.asking import asks
from ortimg.factory.disk import builder_name
from ortimg.factory.images import CellImage, Identities, cell_image, root_reference
from ortimg.factory.steps import cell_contexts
from ortimg.inputs.cache import Cache
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.result import Fetched, Kind
from ortimg.project import load_project
from ortimg.rendering import build_context, render_project

ROOT = Path(__file__).parents[2]
IDENTIFIER = "1.16.2-cuda11.8-cudnn8-debian12"
MARK = "of-a-test"  # stands in the changed lines, so that the builder's records of them can be found again
LDCONFIG = (
    "RUN --network=none ldconfig && rm -f /var/cache/ldconfig/aux-cache"
    " && touch --date=@315532800 /etc/ld.so.cache /etc\n"
)
VERIFY = "ort-verify --tier load --stub"
CUDA = "/usr/local/cuda-11.8/lib64"
ORT = "/opt/onnxruntime/1.16.2/lib"


def ortimg(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """The command line, as a user has it."""
    settings: dict[str, object] = {"cwd": ROOT, "timeout": 1800} | options
    return subprocess.run(
        [sys.executable, "-m", "ortimg", *words],
        capture_output=True,
        text=True,
        check=False,
        **settings,  # type: ignore[call-overload]
    )


@dataclass(frozen=True)
class RealCell:
    """The cell in the engine, and what it was made of."""

    image: CellImage
    reference: str
    base: str  # reference of the base's image
    contexts: Mapping[str, str]  # stage → what replaces it, as `ortimg build` gives them
    dockerfile: str
    archive: Path  # ONNX Runtime's, as it was fetched

    def build(self, dockerfile: str, folder: Path, contexts: Mapping[str, str] | None = None) -> BuildOutcome:
        """Build `dockerfile` as `ortimg build` does; nothing is exported or tagged. `folder`: scratch."""
        return build_text(dockerfile, folder, {**self.contexts, **(contexts or {})})


def build_text(
    dockerfile: str, folder: Path, contexts: Mapping[str, str], context: Path = ROOT / DOCKERFILES
) -> BuildOutcome:
    """Build a text, with nothing exported or tagged."""
    path = folder / "Dockerfile"
    path.write_text(dockerfile)
    args = ["build", f"--builder={builder_name()}", f"--file={path}", "--output=type=cacheonly"]
    args += [f"--build-context={stage}={source}" for stage, source in contexts.items()]
    return run_build(
        [*args, str(context)],
        on_event=lambda _event: None,
        log=folder / "build.log",
        cancel=threading.Event(),
    )


def make_real_cell(engine: Engine, identifier: str = IDENTIFIER) -> RealCell:
    """`ortimg build` of the cell: brings its inputs the first time, and does nothing where it is there."""
    done = ortimg("build", identifier)
    assert done.returncode == 0, done.stdout + done.stderr
    project = load_project(ROOT)
    cell = next(cell for cell in project.plan.cells if cell.identifier == identifier)
    files = render_project(project)
    with Fetcher(
        Cache.default(),
        lock=merge(read_lock(ROOT), planned([cell])),
        has_image=lambda name: engine.inspect(name) is not None,
    ) as fetcher:
        known = {kind: ask.known for kind, ask in asks(fetcher, cell).items()}
    ort, cuda, base = known[Kind.ORT], known[Kind.CUDA], known[Kind.BASE]
    assert isinstance(ort, Fetched)
    assert isinstance(cuda, Fetched)
    assert isinstance(base, Fetched)
    identities = Identities.of(ort, cuda, base, known.get(Kind.HEADERS))
    image = cell_image(cell, identities, files[dockerfile_path(cell)], build_context(files))
    root = root_reference(f"base-{base.key}", base.identity) if base.files else None
    return RealCell(
        image=image,
        reference=f"{project.plan.repository}:{identifier}",
        base=root or str(base.image),
        contexts=cell_contexts(image, root and f"docker-image://{root}"),
        dockerfile=files[dockerfile_path(cell)],
        archive=ort.files[0].path,
    )


def changed(text: str, old: str, new: str) -> str:
    """`text` with one change, which really takes place."""
    assert text.count(old) == 1, f"{text.count(old)} times in the text: {old}"
    return text.replace(old, new)


def before_ldconfig(dockerfile: str, line: str) -> str:
    """The Dockerfile with a further line ahead of the ldconfig run."""
    return changed(dockerfile, LDCONFIG, f"{line}\n{LDCONFIG}")


def compile_library(source: str, target: Path, *options: str) -> Path:
    """A shared library for x86-64, made by this machine's `cc`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-O0", "-w", "-x", "c", "-", "-o", str(target), *options]
    subprocess.run(command, input=source, text=True, check=True, env={**os.environ, "LC_ALL": "C"})
    return target
