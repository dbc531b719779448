"""examples/python-service, built from a clone as a reader builds it, and run on the CPU.

Its packages come by pip from this machine's own index, whose settings reach the build as secrets. Where Docker
Hub does not answer, python:3.11-slim-bookworm cannot be had, so a stand-in takes its place: the cell's own base
and the pip of this environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
import service_models
from real import MARK, RealCell, make_real_cell, ortimg
from service_container import ROOT, build_from_clone, docker, serving
from service_contract import ServiceContract, long_request

from ortimg.engine.client import Engine
from ortimg.errors import ExitCode

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

CELL = "1.17.1-cuda11.8-cudnn8-debian12-python3.11"
SERVICE = ROOT / "examples" / "python-service"


@pytest.fixture(scope="module")
def cell(tidy_engine: Engine) -> RealCell:
    return make_real_cell(tidy_engine, CELL)


@pytest.fixture(scope="module")
def python_with_pip(cell: RealCell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The stand-in for python:3.11-slim-bookworm."""
    folder, reference = tmp_path_factory.mktemp("pip"), f"localhost/ortimg-test/python-with-pip:{os.getpid()}"
    pip = find_spec("pip")
    assert pip is not None and pip.origin is not None
    shutil.copytree(Path(pip.origin).parent, folder / "pip", ignore=shutil.ignore_patterns("__pycache__"))
    target = "/usr/local/lib/python3.11/dist-packages/pip"
    (folder / "Dockerfile").write_text(f"FROM {cell.base}\nCOPY pip {target}\nLABEL test={MARK}\n")
    docker("build", "--quiet", f"--tag={reference}", str(folder))
    yield reference
    docker("rmi", "--force", reference)


@pytest.fixture(scope="module")
def image(cell: RealCell, python_with_pip: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, reference = tmp_path_factory.mktemp("example"), f"localhost/ortimg-test/example-python:{os.getpid()}"
    settings = [
        f"--build-arg=CELL={cell.reference}",
        f"--build-context=python:3.11-slim-bookworm=docker-image://{python_with_pip}",
        *pip_secrets(folder),
    ]
    build_from_clone("python-service", reference, folder / "clone", *settings)
    yield reference
    docker("rmi", "--force", reference)


def pip_secrets(folder: Path) -> list[str]:
    """This machine's pip configuration as the Dockerfile takes it; a certificate's file goes along."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    settings = dict(re.findall(r"^[^.]+\.([\w-]+)='(.*)'$", listed, re.MULTILINE))
    settings.pop("find-links", None)  # a folder of this machine
    secrets = []
    if certificate := settings.get("cert"):
        secrets.append(f"--secret=id=ca,src={certificate}")
        settings["cert"] = "/run/secrets/ca"
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    (folder / "pip.conf").write_text(f"[global]\n{lines}")
    return [*secrets, f"--secret=id=pip,src={folder / 'pip.conf'}"]


class TestContract(ServiceContract):
    ONNXRUNTIME = "1.17.1"


def test_it_is_a_sound_image(image: str) -> None:
    done = ortimg("verify", image)
    assert done.returncode == ExitCode.DONE, done.stdout


def test_onnx_runtime_and_numpy_are_the_cells_own(image: str) -> None:
    """A second one in the packages would be found first."""
    script = (
        "import importlib.metadata as m, json, numpy, onnxruntime\n"
        "names = sorted(d.metadata['Name'].lower() for d in m.distributions())\n"
        "print(json.dumps([numpy.__file__, onnxruntime.__file__, names]))\n"
    )
    found = json.loads(docker("run", "--rm", "--network=none", "--entrypoint=python3", image, "-c", script))
    numpy, onnxruntime, names = found
    site = "/opt/onnxruntime/1.17.1/python3.11/"
    assert numpy.startswith(site)
    assert onnxruntime.startswith(site)
    assert len(names) == len(set(names)), names
    assert [name for name in names if name.startswith(("onnxruntime", "nvidia", "torch"))] == ["onnxruntime-gpu"]


def test_the_settings_of_pip_are_in_no_layer(image: str) -> None:
    places = ["/etc/pip.conf", "/run/secrets", "/requirements.txt"]
    script = f"import os; print([p for p in {places} if os.path.exists(p)])"
    assert docker("run", "--rm", "--network=none", "--entrypoint=python3", image, "-c", script) == "[]"


def test_more_requests_than_may_wait_are_refused(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    models = tmp_path / "models"
    models.mkdir()
    with serving(image, service_models.loop(models), THREADS=1, WORKERS=1, QUEUE=1) as started:
        body = long_request(started.until_ready())
        with ThreadPoolExecutor(4) as pool:
            answers = [*pool.map(lambda _: started.post(body), range(4))]
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503]
    refused = [answer.json() for answer in answers if answer.status_code == 503]
    assert refused == [{"error": "too many requests are waiting"}] * 2


@pytest.mark.parametrize(
    "setting",
    [{"PORT": "none"}, {"THREADS": "-1"}, {"WARMUP_SHAPES": "1x256"}, {"MAX_BODY_MB": "0"}],
    ids=lambda setting: next(iter(setting)),
)
def test_a_setting_that_cannot_be_is_told_in_a_line(image: str, setting: dict[str, str]) -> None:
    words = [f"--env={key}={value}" for key, value in setting.items()]
    done = subprocess.run(
        ["docker", "run", "--rm", "--network=none", *words, image, "--model=/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.USAGE
    (line,) = done.stderr.splitlines()
    assert next(iter(setting)).lower().replace("_", "-") in line


def test_requirements_hold_neither_onnx_runtime_nor_numpy() -> None:
    pinned = re.findall(r"^([\w.-]+)==", (SERVICE / "requirements.txt").read_text(), re.MULTILINE)
    asked = re.findall(r"^[\w-]+", (SERVICE / "requirements.in").read_text(), re.MULTILINE)
    assert set(asked) <= set(pinned)
    assert not [name for name in pinned if name.startswith(("numpy", "onnx", "nvidia", "torch", "protobuf"))]
