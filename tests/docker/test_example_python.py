"""examples/python-service, built from a clone as a reader builds it, and run on the CPU."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import service_models
from example_python import CELL, SERVICE, python_service
from real import RealCell, make_real_cell, ortimg
from service_container import docker, serving, until
from service_contract import GOOD, ServiceContract, fails, long_request

from ortimg.engine.client import Engine
from ortimg.errors import ExitCode

pytestmark = [pytest.mark.engine, pytest.mark.inputs]


@pytest.fixture(scope="module")
def cell(tidy_engine: Engine) -> RealCell:
    return make_real_cell(tidy_engine, CELL)


@pytest.fixture(scope="module")
def image(cell: RealCell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with python_service(cell, tmp_path_factory.mktemp("example")) as reference:
        yield reference


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
    assert [name for name in names if name.startswith(("onnxruntime", "nvidia", "torch"))] == [
        "onnxruntime-gpu"
    ]


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


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "nobody.invalid"])
def test_why_it_cannot_listen_is_told(image: str, tmp_path: Path, host: str) -> None:
    tmp_path.chmod(0o755)
    models = tmp_path / "models"
    models.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = {"HOST": host, "PORT": str(taken.getsockname()[1])}
        code, said = fails(image, service_models.chain(models), PROVIDER="cpu", **place)
    assert code == 1
    assert said.startswith("ERROR: ")


def test_a_client_that_sends_slowly_loses_its_place(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    models = tmp_path / "models"
    models.mkdir()
    limits = {"WORKERS": 1, "QUEUE": 0, "RECEIVE_SECONDS": 1}
    with serving(image, service_models.chain(models), **limits) as started:
        started.until_ready()
        with socket.create_connection(("127.0.0.1", started.port)) as slow:
            slow.settimeout(60)
            slow.sendall(b"POST /v1/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            said = b"".join(iter(lambda: slow.recv(65536), b""))  # until the service ends the connection
        assert said.startswith(b"HTTP/1.1 408 ")
        assert started.post({"inputs": {"x": GOOD}}).status_code == 200


def test_a_client_that_goes_away_is_counted_and_no_error(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    models = tmp_path / "models"
    models.mkdir()
    with serving(image, service_models.chain(models)) as started:
        started.until_ready()
        with socket.create_connection(("127.0.0.1", started.port)) as gone:
            gone.sendall(b"POST /v1/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            until(lambda: started.metric("ort_in_flight") == 1, "it is inside")
        until(lambda: started.metric("ort_requests_total", code="499") == 1, "it is counted")
        assert "Traceback" not in started.said


@pytest.mark.parametrize(
    ("shape", "code", "told"),
    [("z=1x256", 2, "z"), ("x=100000000000x256", 1, "the warm-up failed")],
    ids=["no such input", "no such memory"],
)
def test_a_warm_up_that_cannot_be_ends_the_service(
    image: str, tmp_path: Path, shape: str, code: int, told: str
) -> None:
    tmp_path.chmod(0o755)
    models = tmp_path / "models"
    models.mkdir()
    found = fails(image, service_models.chain(models), PROVIDER="cpu", WARMUP_SHAPES=shape)
    assert found[0] == code
    assert told in found[1]


@pytest.mark.parametrize(
    "setting",
    [
        {"PORT": "none"},
        {"THREADS": "-1"},
        {"WARMUP_SHAPES": "1x256"},
        {"MAX_BODY_MB": "0"},
        {"RECEIVE_SECONDS": "0"},
    ],
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
