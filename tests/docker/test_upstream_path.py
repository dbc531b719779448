"""The road over an open network, with an HTTP server on 127.0.0.1 in the release host's place.

The builder itself downloads what a Dockerfile ADDs: it runs in the daemon, on this machine's own loopback.
Docker Hub cannot be stood in for, so the stages `base` and `tools` are handed over; every other line of the
committed Dockerfile runs as it stands, `pip download` of NVIDIA's wheels too.
"""

from __future__ import annotations

import ensurepip
import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from real import IDENTIFIER, ROOT, RealCell, changed, compile_library, ortimg

from ortimg.core.lock import parse
from ortimg.core.model import Cell
from ortimg.core.render import dockerfile_path, render
from ortimg.engine.buildx import BuildOutcome, run_build
from ortimg.engine.cache import CacheRecord, cache_records, prune_cache
from ortimg.engine.client import Engine
from ortimg.factory.disk import builder_name
from ortimg.factory.images import root_reference
from ortimg.inputs.cache import Cache, sha256_of
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.result import Fetched
from ortimg.inputs.wheels import name as wheel_name
from ortimg.project import load_project
from ortimg.sources import read_sources

pytestmark = [pytest.mark.engine, pytest.mark.inputs]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        return None


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """URL of a server for the files in `folder`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the URL where its files are served."""
    folder = tmp_path / "web"
    folder.mkdir()
    with serving(folder) as url:
        yield folder, url


# `ortimg fetch` from a mirror of the release host

# A release whose archive has no known hash, for the CUDA set of the real cell.
VERSION, ASSET = "1.14.1", "onnxruntime-linux-x64-gpu-1.14.1.tgz"
COMMIT = "c57cf374b67f72575546d7b4c69a1af4972e2b54"
NEEDED = (
    *("libcublasLt.so.11", "libcublas.so.11", "libcudnn.so.8"),
    *("libcurand.so.10", "libcufft.so.10", "libcudart.so.11.0"),
)


def release(folder: Path) -> Path:
    """A small archive in the layout of the official one, of libraries made by `cc`."""
    top = folder / ASSET.removesuffix(".tgz")
    (top / "include").mkdir(parents=True)
    (top / "include" / "onnxruntime_c_api.h").write_text("// small\n")
    for file, text in (("VERSION_NUMBER", VERSION), ("GIT_COMMIT_ID", COMMIT), ("LICENSE", "MIT")):
        (top / file).write_text(f"{text}\n")
    (top / "ThirdPartyNotices.txt").write_text("notices\n")
    stubs = [
        compile_library(f"int f_{number};", folder / "stubs" / soname, f"-Wl,-soname,{soname}")
        for number, soname in enumerate(NEEDED)
    ]
    core = f"libonnxruntime.so.{VERSION}"
    compile_library("int OrtGetApiBase;", top / "lib" / core, f"-Wl,-soname,{core}")
    (top / "lib" / "libonnxruntime.so").symlink_to(core)
    compile_library("int shared;", top / "lib" / "libonnxruntime_providers_shared.so")
    compile_library(
        "int cuda;",
        top / "lib" / "libonnxruntime_providers_cuda.so",
        *("-Wl,--no-as-needed", "-x", "none", *(str(stub) for stub in stubs)),
    )
    archive = folder / ASSET
    subprocess.run(["tar", "-czf", archive, "-C", folder, top.name], check=True)
    return archive


@pytest.fixture
def cache_with_the_rest(real_cell: RealCell, tmp_path: Path) -> Path:
    """A cache that holds the real cell's wheels and base, and no ORT archive."""
    full, small = Cache.default(), Cache(tmp_path / "cache")
    wheels = {wheel_name(wheel.filename) for wheel in real_cell.image.cell.cuda_set.wheels}
    for name in full.names():
        if name in wheels or name.startswith("base/debian12/"):
            entry = full.peek(name)
            assert entry is not None
            with small.workdir() as work:
                full.place(entry, work / "copy")
                small.adopt(
                    name, work / "copy", sha256=entry.sha256, origin=entry.origin, details=entry.details
                )
    return small.root


def test_fetch_from_a_mirror_of_the_release_host(
    web: tuple[Path, str], tmp_path: Path, cache_with_the_rest: Path
) -> None:
    folder, url = web
    archive = release(tmp_path)
    (folder / f"v{VERSION}").mkdir()
    shutil.copy(archive, folder / f"v{VERSION}" / ASSET)
    project = tmp_path / "project"
    project.mkdir()
    wish = {"ort": VERSION, "cuda": "11.8", "cudnn": "8", "base": "debian12"}
    (project / "images.yaml").write_text(json.dumps({"repository": "r", "include": [wish]}))
    environment = {**os.environ, "ORTIMG_CACHE": str(cache_with_the_rest), "ORTIMG_RELEASE_MIRROR": url}

    done = ortimg("-C", str(project), "fetch", "--json", env=environment)
    assert done.returncode == 0, done.stderr
    rows = {row["kind"]: row for row in json.loads(done.stdout)["inputs"]}
    assert (rows["ort"]["origin"], rows["ort"]["result"]) == ("upstream", "fetched")
    assert rows["ort"]["reasons"] == []
    assert rows["ort"]["files"][0] == {
        "name": ASSET,
        "sha256": sha256_of(archive),
        "bytes": archive.stat().st_size,
    }
    assert rows["cuda"]["result"] == "cached"
    lock = parse((project / "images.lock").read_text())
    assert lock.ort[f"{VERSION}-cuda11"].upstream == sha256_of(archive), "what was seen is a pin now"

    (folder / f"v{VERSION}" / ASSET).unlink()
    again = ortimg("-C", str(project), "fetch", env=environment)
    assert again.returncode == 0, again.stderr
    assert "upstream" in next(line for line in again.stdout.splitlines() if line.startswith("ort"))

    # The pin is rendered: the next `docker build` checks it.
    assert ortimg("-C", str(project), "render", env=environment).returncode == 0
    text = (project / "dockerfiles" / f"{VERSION}-cuda11.8-cudnn8-debian12" / "Dockerfile").read_text()
    assert f"ADD --checksum=sha256:{sha256_of(archive)} \\\n" in text


# the rendered stages


def cell(**release: str | None) -> Cell:
    """The real cell, its release changed."""
    found = next(row for row in load_project(ROOT).plan.cells if row.identifier == IDENTIFIER)
    return msgspec.structs.replace(found, release=msgspec.structs.replace(found.release, **release))


def rendered(wanted: Cell) -> str:
    return render("onnxruntime-gpu", [wanted], read_sources())[dockerfile_path(wanted)]


def build(
    text: str,
    folder: Path,
    contexts: Mapping[str, str] | None = None,
    *options: str,
    output: Path | None = None,
) -> BuildOutcome:
    """Plain `docker buildx build` of a Dockerfile's text with the committed context; files go to `output`."""
    path = folder / "Dockerfile"
    path.write_text(text)
    args = ["build", f"--builder={builder_name()}", f"--file={path}", *options]
    args += [f"--build-context={stage}={source}" for stage, source in (contexts or {}).items()]
    args += [f"--output=type=local,dest={output}" if output else "--output=type=cacheonly"]
    return run_build(
        [*args, str(ROOT / "dockerfiles")],
        on_event=lambda _event: None,
        log=folder / "build.log",
        cancel=threading.Event(),
    )


def test_the_archive_stage_takes_the_file_with_the_right_hash(web: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = web
    (folder / ASSET).write_bytes(os.urandom(10_000))
    wanted = cell(url=f"{url}/{ASSET}", sha256=sha256_of(folder / ASSET))
    outcome = build(rendered(wanted), tmp_path, None, "--target=ort-archive", output=tmp_path / "out")
    assert outcome.ok, outcome.failure
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["onnxruntime.tgz"]  # still packed
    assert sha256_of(tmp_path / "out" / "onnxruntime.tgz") == wanted.release.sha256


def test_one_changed_byte_fails_with_both_hashes(web: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = web
    data = bytearray(os.urandom(10_000))
    wanted = cell(url=f"{url}/{ASSET}", sha256=hashlib.sha256(data).hexdigest())
    data[5_000] ^= 1
    (folder / ASSET).write_bytes(data)
    outcome = build(rendered(wanted), tmp_path, None, "--target=ort-archive", output=tmp_path / "out")
    assert not outcome.ok
    assert outcome.failure is not None
    told = str(outcome.failure)
    assert str(wanted.release.sha256) in told
    assert hashlib.sha256(data).hexdigest() in told
    assert not outcome.failure.environment
    assert not (tmp_path / "out" / "onnxruntime.tgz").exists()


def test_an_archive_without_a_known_hash_is_taken_and_the_file_says_so(
    web: tuple[Path, str], tmp_path: Path
) -> None:
    folder, url = web
    (folder / ASSET).write_bytes(b"anything")
    text = rendered(cell(url=f"{url}/{ASSET}", sha256=None))
    assert "# No public source states this archive's sha256" in text
    outcome = build(text, tmp_path, None, "--target=ort-archive", output=tmp_path / "out")
    assert outcome.ok, outcome.failure
    assert (tmp_path / "out" / "onnxruntime.tgz").read_bytes() == b"anything"


def test_an_archive_that_is_not_there(web: tuple[Path, str], tmp_path: Path) -> None:
    _, url = web
    outcome = build(rendered(cell(url=f"{url}/{ASSET}", sha256=None)), tmp_path, None, "--target=ort-archive")
    assert not outcome.ok
    assert "404" in str(outcome.failure)
    assert f"{url}/{ASSET}" in str(outcome.failure)


def test_a_pinned_archive_that_is_not_there(web: tuple[Path, str], tmp_path: Path) -> None:
    """BuildKit 0.13 looks at no status where it knows the hash: it is the error page's hash that is wrong."""
    _, url = web
    pinned = cell(url=f"{url}/{ASSET}", sha256="a" * 64)
    outcome = build(rendered(pinned), tmp_path, None, "--target=ort-archive")
    assert not outcome.ok
    assert "404" in str(outcome.failure) or "a" * 64 in str(outcome.failure)


# the whole Dockerfile


@pytest.fixture(scope="module")
def tools(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands in for the image of the `tools` stage: none where Docker Hub has it.

    The bootstrapped root has no pip, since `ortimg build` brings the wheels itself; the official Python image
    has one. It gets the certificates that this machine trusts: behind a company's proxy, pip needs them.
    """
    requirements = ROOT / "dockerfiles" / "tools" / "requirements.txt"
    image = rendered(cell()).partition(" AS tools\n")[0].rpartition("FROM ")[2]
    with Fetcher(Cache.default(), lock=read_lock(ROOT)) as fetcher:
        root = fetcher.tools(image, requirements).result()
    assert isinstance(root, Fetched), str(root)
    if not root.files:
        yield {}
        return
    reference = root_reference("tools", root.identity)
    if engine.inspect(reference) is None:
        subprocess.run(["docker", "import", root.files[0].path, reference], check=True, capture_output=True)
    folder = tmp_path_factory.mktemp("tools")
    (pip,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    shutil.copy(pip, folder)
    certificates = Path(os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt"))
    shutil.copy(certificates, folder / "certificates.crt")
    (folder / "Dockerfile").write_text(
        f"FROM {reference}\n"
        "COPY pip-*.whl certificates.crt /opt/\n"
        "RUN python3 -m zipfile -e /opt/pip-*.whl /usr/local/lib/python3.11/dist-packages\n"
        "ENV PIP_CERT=/opt/certificates.crt\n"
    )
    name = f"localhost/ortimg-test/tools-with-pip:{os.getpid()}"
    subprocess.run(
        ["docker", "buildx", "build", f"--builder={builder_name()}", "--tag", name, str(folder)],
        check=True,
        capture_output=True,
    )
    yield {"tools": f"docker-image://{name}"}
    engine.remove(name)


@pytest.fixture
def tidy(engine: Engine) -> Iterator[None]:
    """Give back the gigabytes that the steps of a test leave in the builder's cache."""
    before = {record.id for record in cache_records(engine)}
    words = ("pip download", "from=cuda-unpack", "pick_libraries.py", "from=ort-unpack", "cut_runpath.py")

    def ours(record: CacheRecord) -> bool:
        return record.id not in before and any(word in record.description for word in words)

    yield
    prune_cache(engine, ours)


@pytest.mark.usefixtures("tidy")
def test_pip_fails_where_a_wheel_is_not_the_pinned_one(tools: dict[str, str], tmp_path: Path) -> None:
    """The smallest wheel alone, so that this is quick."""
    wanted = cell()
    wheel = min(wanted.cuda_set.wheels, key=lambda row: row.size)
    small = msgspec.structs.replace(
        wanted,
        cuda_set=msgspec.structs.replace(
            wanted.cuda_set, wheels=(msgspec.structs.replace(wheel, sha256="0" * 64),)
        ),
    )
    outcome = build(rendered(small), tmp_path, tools, "--target=cuda-archive", "--network=host")
    assert not outcome.ok
    told = str(outcome.failure)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in told
    assert "0" * 64 in told
    assert wheel.sha256 in told


@pytest.mark.usefixtures("tidy")
def test_the_committed_dockerfile_alone_makes_the_image(
    web: tuple[Path, str],
    tools: dict[str, str],
    real_cell: RealCell,
    tmp_path: Path,
) -> None:
    """Whole: the archive by ADD, the wheels by pip, compiled, unpacked, put together and verified."""
    folder, url = web
    served = folder / "archive.tgz"
    served.symlink_to(real_cell.archive)
    release = cell().release
    text = changed(real_cell.dockerfile, release.url, f"{url}/archive.tgz")
    text = changed(text, str(release.sha256), sha256_of(real_cell.archive))
    # A further stage takes out of the image what is to be looked at.
    stages = sum(line.startswith("FROM ") for line in text.splitlines())
    text += f"\nFROM scratch\nCOPY --from={stages - 1} /usr/share/ortimg/ /\n"
    base = {} if "/" not in real_cell.base else {"base": f"docker-image://{real_cell.base}"}
    outcome = build(text, tmp_path, {**tools, **base}, "--network=host", output=tmp_path / "out")
    assert outcome.ok, f"{outcome.failure}\n{outcome.log}"
    report = json.loads((tmp_path / "out" / "verify.json").read_text())
    assert (report["tier"], report["verdict"]) == ("load", "pass")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["identifier"] == IDENTIFIER
    log = (tmp_path / "build.log").read_text()
    for wheel in cell().cuda_set.wheels:
        assert f"Saved /wheels/{wheel.filename}" in log
