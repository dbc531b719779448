"""A project whose whole build takes seconds: tiny stub libraries, packed as the real ones are; a tiny base.

Everything else is real: the release archive comes by HTTP, the wheels by pip, and `ortimg build` unpacks,
builds and verifies them. So a test can build again and again, on an engine with a small disk of its own too.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from real import ortimg
from stub_world import CUDA, NEEDED, PARTS, PREFIX, SONAME, VERSION, make_world

from ortimg.core.render import dockerfile_path
from ortimg.engine.client import Engine
from ortimg.factory.asking import asks
from ortimg.factory.images import Identities, cell_image
from ortimg.inputs.cache import Cache, sha256_of
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.probe import Upstream
from ortimg.inputs.result import Fetched, Kind
from ortimg.project import load_project
from ortimg.rendering import build_context, render_project
from ortimg.sources import builtin_templates

BASE = f"localhost/ortimg-test/small-base:{os.getpid()}"  # another run of the tests has its own
CELLS = tuple(f"{VERSION}-cuda12.2-cudnn9-{base}" for base in ("one", "two"))
ASSET = f"onnxruntime-linux-x64-gpu-{VERSION}.tgz"
WHEEL = "nvidia_small_cu12-1.0-py3-none-manylinux2014_x86_64.whl"
_LAST_STEP = "RUN --network=none ldconfig "
_PROGRAMS = ("sh", "cat", "chmod", "cp", "dirname", "head", "ln", "mkdir", "mv", "rm", "sleep", "touch")
_IMAGE = "stages/image.j2"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        return None


@dataclass(frozen=True)
class Parts:
    """What projects are made of, made once: archive, wheel, and the URL where the archive is served."""

    folder: Path
    url: str
    sha256: Mapping[str, str]
    asked: list[str]  # paths that were got from there
    projects: list[Small] = field(default_factory=list)


@dataclass
class Small:
    """A project with two cells, and a cache of its own."""

    root: Path
    cache: Path
    repository: str
    parts: Parts
    more: dict[str, str] = field(default_factory=dict)  # environment

    @property
    def environment(self) -> dict[str, str]:
        mine = {
            "ORTIMG_CACHE": str(self.cache),
            "ORTIMG_RELEASE_MIRROR": self.parts.url,
            "ORTIMG_REGISTRY_MIRROR": "127.0.0.1:9",  # nobody is there
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.parts.folder),
            "NO_COLOR": "1",
        }
        return {**os.environ, **mine, **self.more}

    def ortimg(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return ortimg(*words, cwd=self.root, env={**self.environment, **more}, timeout=300)

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """The same in a session of its own, so that signals reach it as they do from a terminal."""
        return subprocess.Popen(
            # A CI job in the background ignores SIGINT, and what it starts inherits that.
            ["env", "--default-signal=INT", sys.executable, "-m", "ortimg", *words],
            cwd=self.root,
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def build(self, *words: str, **more: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """`ortimg build --json`; also its rows by identifier."""
        done = self.ortimg("build", "--json", *words, **more)
        return done, rows_of(done.stdout, done.stderr)

    def image(self, cell: str) -> str:
        return f"{self.repository}:{cell}"

    def step(self, command: str, base: str = "two") -> None:
        """One more step in the Dockerfile of the cell on `base`, ahead of `ldconfig`."""
        text = (builtin_templates() / _IMAGE).read_text()
        assert text.count(_LAST_STEP) == 1
        line = f'{{% if base.name == "{base}" %}}\nRUN --network=none {command}\n{{% endif %}}\n'
        path = self.root / "templates" / _IMAGE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(_LAST_STEP, line + _LAST_STEP))


def rows_of(out: str, err: str) -> dict[str, Any]:
    """Rows of `build --json` by identifier; stdout holds the one object and nothing else."""
    assert "Traceback" not in err, err
    report = json.loads(out or '{"cells": []}')
    return {row["identifier"]: row for row in report["cells"]}


def runs(*words: str) -> bool:
    """Whether there is a process with just this command line."""
    wanted = "\0".join(words).encode() + b"\0"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == wanted:
                    return True
            except OSError:
                continue
    return False


@dataclass(frozen=True)
class SlowHost:
    """A release host that begins an answer and then says no more until it is told to."""

    url: str
    asked: threading.Event
    go_on: threading.Event


@contextmanager
def slow_host(parts: Parts) -> Iterator[SlowHost]:
    """It has the archive."""
    asked, go_on = threading.Event(), threading.Event()
    data = (parts.folder / "web" / f"v{VERSION}" / ASSET).read_bytes()

    class Slow(_Quiet):
        def do_GET(self) -> None:
            if not self.path.endswith(ASSET):
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:1000])
            asked.set()
            go_on.wait(60)
            with suppress(OSError):
                self.wfile.write(data[1000:])

    with _serving(Slow) as url:
        try:
            yield SlowHost(url, asked, go_on)
        finally:
            go_on.set()


@contextmanager
def _serving(handler: Callable[..., _Quiet]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def small_project(folder: Path, parts: Parts, name: str, cache: Path | None = None) -> Small:
    """A new project below `folder`. `name`: of its images, which must be told apart from all others.

    `cache`: one that is there; else it gets an empty one.
    """
    root = folder / "project"
    (root / "catalogue").mkdir(parents=True)
    (root / "images.yaml").write_text(
        f'repository: ortimg-test/{name}\nmatrix:\n  ort: ["{VERSION}"]\n  cuda: ["12.2"]\n  cudnn: ["9"]\n'
        "  base: [one, two]\n"
    )
    libc = platform.libc_ver()[1]
    rows = "".join(
        f'  - {{name: {base}, image: "{BASE}", title: {base}, glibc: "{libc}", glibcxx: null}}\n'
        for base in ("one", "two")
    )
    (root / "catalogue" / "bases.yaml").write_text(f"bases:\n{rows}")
    (root / "catalogue" / "ort.yaml").write_text(
        f'releases:\n  - version: "{VERSION}"\n    replaces: true\n    cuda_major: 12\n    cudnn_major: 9\n'
        f'    cuda_build: "12.2"\n    cuda_confidence: A\n    needed_confidence: A\n'
        f"    asset: {ASSET}\n    sha256: {parts.sha256[ASSET]}\n"
        f"    size: {(parts.folder / 'web' / f'v{VERSION}' / ASSET).stat().st_size}\n    soname: {SONAME}\n"
        f'    needed: [{", ".join(NEEDED)}]\n    glibc: "2.17"\n    glibcxx: "3.4.19"\n'
    )
    (root / "catalogue" / "cuda.yaml").write_text(
        'cuda_sets:\n  - cuda: "12.2"\n    cudnn: "9"\n    cudnn_version: "9.5.1.17"\n    wheels:\n'
        f"      - requirement: nvidia-small-cu12==1.0\n        filename: {WHEEL}\n"
        f"        sha256: {parts.sha256[WHEEL]}\n        size: {(parts.folder / WHEEL).stat().st_size}\n"
        f"        libraries: [{', '.join((*NEEDED, *PARTS))}]\n"
    )
    if cache is None:
        cache = folder / "cache"
        _share_tools(Cache(cache))
    parts.projects.append(Small(root, cache, f"ortimg-test/{name}", parts))
    return parts.projects[-1]


@contextmanager
def small_parts(folder: Path, engine: Engine) -> Iterator[Parts]:
    """The parts, and the base in `engine`, until the end of the block."""
    world = make_world(folder / "world")
    release = folder / "web" / f"v{VERSION}" / ASSET
    release.parent.mkdir(parents=True)
    _pack_release(world.path(PREFIX), release)
    _pack_wheel(world.path(CUDA), folder / WHEEL)
    _import_base(world.root, folder / "base.tar")
    files = {path.name: sha256_of(path) for path in (release, folder / WHEEL)}
    asked: list[str] = []

    class Counting(_Quiet):
        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

    try:
        with _serving(partial(Counting, directory=str(folder / "web"))) as url:
            parts = Parts(folder, url, files, asked)
            yield parts
            for project in parts.projects:
                with suppress(AssertionError):  # its inputs were never had
                    for unit in units_of(project, engine)[:2]:  # the others are those of every project
                        engine.remove(unit)
                    break
    finally:
        engine.remove(BASE)


def units_of(project: Small, engine: Engine) -> list[str]:
    """References of the heavy images that the project's cells stand on; its inputs are in its cache."""
    planned = load_project(project.root)
    cell = planned.plan.cells[0]
    files = render_project(planned)
    away = Upstream(releases="not asked", hub="not asked")
    with Fetcher(
        Cache(project.cache), upstream=away, has_image=lambda name: engine.inspect(name) is not None
    ) as fetcher:
        known = {kind: ask.known for kind, ask in asks(fetcher, cell).items()}
    ort, cuda, base = known[Kind.ORT], known[Kind.CUDA], known[Kind.BASE]
    assert isinstance(ort, Fetched)
    assert isinstance(cuda, Fetched)
    assert isinstance(base, Fetched)
    text = files[dockerfile_path(cell)]
    image = cell_image(cell, Identities.of(ort, cuda, base), text, build_context(files))
    return [unit.reference for unit in image.units.values()]


def _pack_release(prefix: Path, target: Path) -> None:
    texts = {"VERSION_NUMBER": VERSION, "LICENSE": "MIT", "ThirdPartyNotices.txt": "notices"}
    for name, text in texts.items():
        (prefix / name).write_text(f"{text}\n")
    with tarfile.open(target, "w:gz") as archive:
        archive.add(prefix, ASSET.removesuffix(".tgz"))


def _pack_wheel(libraries: Path, target: Path) -> None:
    info = "nvidia_small_cu12-1.0.dist-info"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in (*NEEDED, *PARTS):
            wheel.write(libraries / name, f"nvidia/small/lib/{name}")
        for name, text in {
            "METADATA": "Metadata-Version: 2.1\nName: nvidia-small-cu12\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-manylinux2014_x86_64\n",
            "License.txt": "stub\n",
            "RECORD": "",
        }.items():
            wheel.writestr(f"{info}/{name}", text)


def _import_base(root: Path, tar: Path) -> None:
    """C library, C++ run time, zlib and a shell of this machine, without anything of ORT or CUDA."""
    for name, target in (("bin", "usr/bin"), ("sbin", "usr/sbin")):
        (root / name).symlink_to(target)
    (root / "usr/sbin").mkdir()
    for program in _PROGRAMS:
        path = os.path.realpath(str(shutil.which(program)))
        shutil.copy(path, root / "usr/bin" / program)
        told = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"=> (/\S+)", told):
            if not (root / "usr/lib" / Path(library).name).exists():
                shutil.copy(library, root / "usr/lib")
    shutil.copy(os.path.realpath("/sbin/ldconfig"), root / "usr/sbin/ldconfig")
    left_out = {root / path for path in ("opt", "usr/local/cuda-12.2", "usr/share", "etc")}
    with tarfile.open(tar, "w") as archive:
        for path in sorted(root.rglob("*")):
            if not left_out & {path, *path.parents}:
                archive.add(path, str(path.relative_to(root)), recursive=False)
        conf = root / "etc/ld.so.conf"
        archive.add(conf, "etc/ld.so.conf")
    subprocess.run(["docker", "import", str(tar), BASE], check=True, capture_output=True)


def _share_tools(small: Cache) -> None:
    """The tools of this machine's own cache, if it has any: to bootstrap them takes a minute."""
    full = Cache.default()
    for name in full.names():
        entry = full.peek(name)
        if entry is not None and name.startswith("base/tools-"):
            with small.workdir() as work:
                full.place(entry, work / "copy")
                small.adopt(
                    name, work / "copy", sha256=entry.sha256, origin=entry.origin, details=entry.details
                )
