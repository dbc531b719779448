"""examples/compose.yaml: what it asks for, and both services run by Compose on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_python import CELL, python_service
from real import make_real_cell, ortimg
from registries import free_port
from service_container import ROOT, Service, build_from_clone, docker, until

from ortimg.engine.client import Engine

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

EXAMPLES = ROOT / "examples"
SERVICES = ("cpp-service", "python-service")
ON_THE_CPU = ("-f", "compose.yaml", "-f", "compose.cpu.yaml")
CPP_CELL = "1.23.2-cuda12.6-cudnn9-debian13"
PROJECT = f"ortimg-test-{os.getpid()}"


@pytest.fixture(scope="module")
def compose() -> str:
    """Path of Compose: the plugin is no package of Debian 12, so it is built once, from Go's module proxy."""
    subprocess.run([ROOT / "scripts" / "go-tools.sh", "docker-compose"], check=True)
    tools = os.environ.get("ORTIMG_TOOLS") or Path.home() / ".cache" / "ortimg-tools"
    return str(Path(tools) / "bin" / "docker-compose")


def run(compose: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [compose, "-p", PROJECT, *words],
        cwd=EXAMPLES,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def config(compose: str, *files: str) -> dict[str, Any]:
    done = run(compose, *files, "config", "--format=json")
    assert done.returncode == 0, done.stderr
    services: dict[str, Any] = json.loads(done.stdout)["services"]
    return services


def test_the_gpu_is_reserved(compose: str) -> None:
    services = config(compose)
    assert tuple(sorted(services)) == SERVICES
    for service in services.values():
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
        assert service["environment"]["PROVIDER"] == "cuda"


def test_the_cpu_must_be_asked_for(compose: str) -> None:
    for service in config(compose, *ON_THE_CPU).values():
        assert "deploy" not in service
        assert service["environment"]["PROVIDER"] == "cpu"
        assert service["environment"]["MODEL"] == "/models/verify.onnx"


@pytest.mark.parametrize("files", [(), ON_THE_CPU], ids=["gpu", "cpu"])
def test_services_may_write_nowhere_but_into_their_volumes(compose: str, files: tuple[str, ...]) -> None:
    for service in config(compose, *files).values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {port["host_ip"] for port in service["ports"]} == {"127.0.0.1"}
        writable = [mount["target"] for mount in service["volumes"] if not mount.get("read_only")]
        assert writable == ["/var/cache/cuda"]


@pytest.fixture(scope="module")
def images(tidy_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings that name both images, which were built from a clone."""
    folder, cpp = tmp_path_factory.mktemp("images"), f"localhost/ortimg-test/compose-cpp:{os.getpid()}"
    done = ortimg("build", CPP_CELL, f"{CPP_CELL}-devel")
    assert done.returncode == 0, done.stdout + done.stderr
    build_from_clone("cpp-service", cpp, folder / "clone")
    (folder / "python").mkdir()
    try:
        with python_service(make_real_cell(tidy_engine, CELL), folder / "python") as python:
            yield {"CPP_SERVICE": cpp, "PYTHON_SERVICE": python}
    finally:
        docker("rmi", "--force", cpp)


def test_both_run_on_the_cpu_and_agree(compose: str, images: dict[str, str]) -> None:
    ports = {"CPP_PORT": free_port(), "PYTHON_PORT": free_port()}
    settings = images | {name: str(port) for name, port in ports.items()}
    try:
        started = run(compose, *ON_THE_CPU, "up", "--no-build", "--detach", "--wait", **settings)
        assert started.returncode == 0, started.stdout + started.stderr  # --wait: both are healthy
        services = [Service(name, port) for name, port in ports.items()]
        for service in services:
            assert service.get("/readyz").json()["provider"] == "CPUExecutionProvider"
        image = np.sin(np.arange(384, dtype=np.float32)).reshape(1, 3, 8, 16)
        one, other = (service.infer(image=image)["out"] for service in services)
        np.testing.assert_allclose(one, other, rtol=1e-4)
    finally:
        ended = run(compose, *ON_THE_CPU, "down", "--volumes", **settings)
    assert ended.returncode == 0, ended.stderr


def test_without_a_gpu_it_says_so(compose: str, images: dict[str, str]) -> None:
    """The file as it stands, where the engine has no GPU to give."""
    settings = images | {"PYTHON_PORT": str(free_port())}
    try:
        started = run(compose, "up", "--no-build", "--detach", "python-service", **settings)
        if started.returncode == 0:  # there is one: then the service must come to use it
            shown = run(compose, "port", "python-service", "8080", **settings)
            service = Service("python-service", int(shown.stdout.rpartition(":")[2]))
            until(lambda: service.status("/readyz") == 200, "it is ready", limit=300)
            assert service.get("/readyz").json()["provider"] == "CUDAExecutionProvider"
        else:
            assert "nvidia" in started.stderr
            assert "gpu" in started.stderr
    finally:
        run(compose, "down", "--volumes", **settings)
