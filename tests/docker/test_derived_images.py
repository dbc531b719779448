"""docs/derived.md: the images that pip and packages of the distribution break, built for real.

Those that need no network are built by the page's own blocks (tests/docs). Here the page's Dockerfiles run
with the real wheel of onnxruntime and the real first library of cuDNN; its other gigabyte says nothing more.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pip_here import pip_secrets, python_with_pip
from real import MARK, RealCell, make_real_cell, ortimg
from service_container import ROOT, docker

from ortimg.data import read_catalogue
from ortimg.engine.client import Engine
from ortimg.errors import ExitCode
from ortimg.inputs.cache import Cache
from ortimg.inputs.wheels import cached_wheel

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

PYTHON_CELL = "1.17.1-cuda11.8-cudnn8-debian12-python3.11"
PAGE = (ROOT / "docs" / "derived.md").read_text("utf-8")
_BLOCK = re.compile(r"```dockerfile\n# ([\w-]+)\.Dockerfile\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
DOCKERFILES = {match[1]: match[2] for match in _BLOCK.finditer(PAGE)}
SAID = {match[1]: match[3] for match in _BLOCK.finditer(PAGE) if match[3]}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        return None


@pytest.fixture(scope="module")
def python_cell(tidy_engine: Engine) -> RealCell:
    return make_real_cell(tidy_engine, PYTHON_CELL)


@pytest.fixture(scope="module")
def wheels(python_cell: RealCell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a folder with the two wheels that the page's Dockerfiles install."""
    assert python_cell.reference  # cuDNN's wheel is in the cache since it was built
    folder = tmp_path_factory.mktemp("wheels")
    words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, "onnxruntime==1.17.1"], check=True)
    _first_library_of_cudnn(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def _first_library_of_cudnn(folder: Path) -> None:
    """The cell's own cuDNN wheel, cut to libcudnn.so.8, and changed in a note of it: another release."""
    (row,) = (row for row in read_catalogue().cuda_sets if (row.cuda, row.cudnn) == ("11.8", "8"))
    (wheel,) = (wheel for wheel in row.wheels if "cudnn" in wheel.filename)
    cache = Cache.default()
    entry = cached_wheel(cache, wheel.filename, wheel.sha256)
    assert entry is not None, f"{wheel.filename} is not in the cache: `ortimg fetch` brings it"
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with (
        zipfile.ZipFile(cache.path(entry)) as whole,
        zipfile.ZipFile(folder / wheel.filename, "w", zipfile.ZIP_DEFLATED) as cut,
    ):
        for name in whole.namelist():
            if name.endswith("/RECORD"):
                place = name
            elif name.endswith("/libcudnn.so.8") or ".dist-info/" in name:
                content = whole.read(name) + (b"\0" if name.endswith(".so.8") else b"")
                cut.writestr(name, content)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                rows.writerow([name, f"sha256={digest}", len(content)])
        cut.writestr(place, record.getvalue() + f"{place},,\n")


@pytest.fixture(scope="module")
def python_words(
    python_cell: RealCell, wheels: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """Words for `docker build` of the page's Dockerfiles that use pip."""
    folder = tmp_path_factory.mktemp("pip")
    with python_with_pip(python_cell.base, folder) as context:
        settings = {"no-index": "true", "find-links": wheels, "no-deps": "true"}
        yield [context, "--network=host", *pip_secrets(folder, settings)]


def verdict(dockerfile: str, folder: Path, *words: str) -> tuple[int, list[str]]:
    """`ortimg verify` of what the Dockerfile makes: exit code, and the lines of what failed."""
    reference = f"localhost/ortimg-test/derived:{os.getpid()}-{folder.name}"
    path = folder / "Dockerfile"
    path.write_text(f"{dockerfile}LABEL test={MARK}\n")
    docker("build", "--quiet", f"--tag={reference}", f"--file={path}", *words, str(folder))
    try:
        done = ortimg("verify", reference)
    finally:
        docker("rmi", "--force", reference)
    lines = done.stdout.splitlines()
    failed = [number for number, line in enumerate(lines) if line.startswith("  fail ")]
    return done.returncode, [line for number in failed for line in lines[number : number + 2]]


@pytest.mark.parametrize("name", ["pip-cudnn", "pip-onnxruntime"])
def test_what_pip_brings_is_one_finding(python_words: list[str], tmp_path: Path, name: str) -> None:
    assert verdict(DOCKERFILES[name], tmp_path, *python_words) == (
        ExitCode.FAILED,
        SAID[name].splitlines(),
    )


def test_onnxruntime_over_onnxruntime_gpu_in_its_own_folder(python_words: list[str], tmp_path: Path) -> None:
    """What `pip install --upgrade --target` into the cell's folder does."""
    site = "/opt/onnxruntime/1.17.1/python3.11"
    text = DOCKERFILES["pip-onnxruntime"].replace("/packages /opt/program/packages", f"/packages {site}")
    text = text.replace("ENV PYTHONPATH=/opt/program/packages\n", "")
    assert site in text
    assert "ENV" not in text
    code, failed = verdict(text, tmp_path, *python_words)
    assert code == ExitCode.FAILED
    assert "onnxruntime-1.17.1.dist-info: the CPU package was installed over onnxruntime-gpu" in failed[0]
    assert "cure: keep onnxruntime out of pip's list" in failed[1]
    assert len(failed) == 2


def test_packages_of_a_program_alone_pass(python_cell: RealCell, tmp_path: Path) -> None:
    text = f"FROM {python_cell.reference}\nCOPY Dockerfile /opt/program/\n"
    text += 'ENV PYTHONPATH=/opt/program\nUSER 10001\nENTRYPOINT ["python3"]\nCMD ["-m", "program"]\n'
    assert verdict(text, tmp_path) == (ExitCode.DONE, [])


def test_a_package_of_the_distribution_is_one_finding(real_cell: RealCell, tmp_path: Path) -> None:
    """A package with the files that NVIDIA's libcudnn8 has, and the real library of another release."""
    assert real_cell.reference in DOCKERFILES["apt-cudnn"]
    folder = tmp_path / "package"
    library = folder / "usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7"
    library.parent.mkdir(parents=True)
    (folder / "DEBIAN").mkdir()
    (folder / "DEBIAN" / "control").write_text(
        "Package: libcudnn8\nVersion: 8.9.7.29-1+cuda12.2\nArchitecture: amd64\n"
        "Maintainer: nobody <nobody@example.com>\nDescription: as NVIDIA's\n"
    )
    other = "/usr/local/cuda-11.8/lib64/libcudnn.so.8"
    content = subprocess.run(
        ["docker", "run", "--rm", "--network=none", real_cell.reference, "cat", other],
        capture_output=True,
        check=True,
    ).stdout
    library.write_bytes(content + b"\0")  # of another release, as far as its bytes say
    library.with_name("libcudnn.so.8").symlink_to(library.name)
    context = tmp_path / "context"
    context.mkdir()
    build = ["dpkg-deb", "--build", "--root-owner-group", str(folder), str(context / "libcudnn8.deb")]
    subprocess.run(build, capture_output=True, check=True)
    assert verdict(DOCKERFILES["apt-cudnn"], context) == (ExitCode.FAILED, SAID["apt-cudnn"].splitlines())


def test_the_page_has_them_all() -> None:
    """Each Dockerfile of the page is built by a block of it, or here."""
    here = {"pip-cudnn", "pip-onnxruntime", "apt-cudnn"}
    assert here < {*DOCKERFILES}
    assert [name for name in DOCKERFILES if name not in here and f"-f {name}.Dockerfile" not in PAGE] == []
