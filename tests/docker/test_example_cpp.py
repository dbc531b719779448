"""examples/cpp-service: built as a reader builds it, and what its image promises."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import service_models
from real import ortimg
from registries import free_port
from service_container import (
    ROOT,
    Service,
    added_bytes,
    build_from_clone,
    docker,
    run_command,
    serving,
    tensor,
    until,
)
from service_contract import GOOD, SIZE, ServiceContract, fails, long_request, waves

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

RUNTIME = "1.23.2-cuda12.6-cudnn9-debian13"
IMAGE = f"localhost/ortimg-test/cpp-service:{os.getpid()}"
BINARY = "/usr/local/bin/ort-service"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Built upon the two cells, from a clone."""
    done = ortimg("build", RUNTIME, f"{RUNTIME}-devel")
    assert done.returncode == 0, done.stdout + done.stderr
    # the network that its README's command has, so that what was built for either is there for the other
    build_from_clone("cpp-service", IMAGE, tmp_path_factory.mktemp("clone") / "ortimg", network="default")
    yield IMAGE
    subprocess.run(["docker", "rmi", IMAGE], capture_output=True, check=False)


def load(service: Service, body: object, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "body.json").write_text(json.dumps(body))
    command = [str(ROOT / "examples" / "load.sh"), service.url, str(folder / "body.json"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class TestContract(ServiceContract):
    """What both services promise."""

    # ---- beyond the contract ----

    def test_requests_are_counted_one_by_one(self, service: Service) -> None:
        before = service.metrics()
        service.infer(x=waves(1, SIZE))
        service.get("/healthz")
        after = service.metrics()
        for name, labels in (("ort_requests_total", (("code", "200"),)), ("ort_request_seconds_count", ())):
            assert after[(name, labels)] == before.get((name, labels), 0) + 1

    def test_one_connection_carries_many_requests(self, service: Service) -> None:
        body = json.dumps({"inputs": {"x": GOOD}}).encode()
        head = f"POST /v1/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(60)
            connection.sendall(
                (head + body) * 3 + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            said = b"".join(iter(lambda: connection.recv(65536), b""))
        assert said.count(b"HTTP/1.1 200 OK") == 4

    @pytest.mark.parametrize(
        "sent",
        [
            b"this is no HTTP\r\n\r\n",
            b"POST /v1/infer HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
            b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n",
        ],
        ids=["no HTTP", "a wrong length", "a long header"],
    )
    def test_nonsense_is_answered_and_the_connection_ended(self, service: Service, sent: bytes) -> None:
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(60)
            connection.sendall(sent)
            said = b"".join(iter(lambda: connection.recv(65536), b""))
        assert said.startswith(b"HTTP/1.1 400 ")
        assert service.status("/healthz") == 200

    def test_a_body_in_chunks_of_unknown_length_is_bounded_too(self, service: Service) -> None:
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        head = b"POST /v1/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(60)
            connection.sendall(head + chunk * 32)
            assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")

    def test_a_body_for_another_path_is_not_waited_for(self, service: Service) -> None:
        """Only requests with a place may take memory."""
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(60)
            connection.sendall(b"POST /v2/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n{")
            assert connection.recv(65536).startswith(b"HTTP/1.1 405 ")
        assert service.status("/healthz") == 200

    def test_curl_s_question_before_a_large_body_is_answered(self, service: Service) -> None:
        body = json.dumps({"inputs": {"x": GOOD}}).encode()
        head = "POST /v1/infer HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.settimeout(60)
            connection.sendall(head.encode())
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            connection.sendall(body)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")

    def test_more_requests_than_places_are_refused_while_health_checks_are_answered(
        self, image: str, loop: Path
    ) -> None:
        with serving(image, loop, THREADS=1, WORKERS=1, QUEUE=1) as started:
            body = long_request(started.until_ready())
            with ThreadPoolExecutor(2) as pool:
                inside = [pool.submit(started.post, body) for _ in range(2)]
                until(lambda: started.metric("ort_in_flight") == 2, "both places are taken")
                refused = started.post(body)
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
                assert started.status("/readyz") == 200
                assert not any(request.done() for request in inside)
                assert [request.result().status_code for request in inside] == [200, 200]

    def test_a_slow_client_keeps_nobody_else_waiting(self, service: Service) -> None:
        slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(20)]
        try:
            for connection in slow:
                connection.sendall(b"POST /v1/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            until(lambda: service.metric("ort_in_flight") == 20, "they are inside")
            assert service.infer(x=waves(1, SIZE))["y"].shape == (1, SIZE)
        finally:
            for connection in slow:
                connection.close()
        until(lambda: service.metric("ort_in_flight") == 0, "their places are free again")

    def test_a_client_that_goes_away_leaves_its_place(self, loop_service: Service) -> None:
        body = json.dumps(long_request(loop_service)).encode()
        head = f"POST /v1/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", loop_service.port)) as connection:
            connection.sendall(head + body)
            until(lambda: loop_service.metric("ort_in_flight") == 1, "it is inside")
        until(lambda: loop_service.metric("ort_in_flight") == 0, "its place is free again")

    def test_open_sizes_of_one_name_must_agree(self, image: str, mixed: Path) -> None:
        with serving(image, mixed) as started:
            started.until_ready()
            ids, mask = np.zeros((2, 3), dtype=np.int64), np.ones((2, 4), dtype=bool)
            answer = started.post({"inputs": {"ids": tensor(ids), "mask": tensor(mask)}})
            assert answer.status_code == 400
            assert "length" in answer.json()["error"]
            numbers = {"shape": [1, 1], "dtype": "int64", "data": [2**63]}
            truth = {"shape": [1, 1], "dtype": "bool", "data": [True]}
            assert started.post({"inputs": {"ids": numbers, "mask": truth}}).status_code == 400
            numbers["data"] = [1]
            assert started.post({"inputs": {"ids": numbers, "mask": truth}}).status_code == 200
            truth["data"] = [1]
            assert started.post({"inputs": {"ids": numbers, "mask": truth}}).status_code == 400

    def test_an_inference_that_fails_is_an_error_of_the_server(self, image: str, mixed: Path) -> None:
        ids, mask = np.full((1, 1), 99, dtype=np.int64), np.ones((1, 1), dtype=bool)  # there are 4 tokens
        with serving(image, mixed) as started:
            answer = started.until_ready().post({"inputs": {"ids": tensor(ids), "mask": tensor(mask)}})
            assert answer.status_code == 500
            assert {*answer.json()} == {"error"}
            assert started.metric("ort_requests_total", code="500") == 1
            assert "error: an inference failed" in started.said
            assert started.status("/readyz") == 200

    def test_numbers_that_json_does_not_have_come_out_as_words(self, image: str, models: Path) -> None:
        with serving(image, service_models.logarithm(models)) as started:
            x = {"shape": [4], "dtype": "float32", "data": [-1.0, 0.0, 1.0, 1e38]}
            found = started.until_ready().post({"inputs": {"x": x}}).json()["outputs"]
            assert found["y"]["data"][:3] == ["NaN", "-Infinity", 0]
            assert found["y"]["data"][3] == pytest.approx(np.log(1e38), rel=1e-6)
            x["data"] = [3.4028235e38] * 4  # the largest float32, as the service itself writes it
            assert started.post({"inputs": {"x": x}}).status_code == 200
            x["data"] = [1e39] * 4
            assert started.post({"inputs": {"x": x}}).status_code == 400

    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            ({"PORT": "http"}, "PORT"),
            ({"PORT": "70000"}, "65535"),
            ({"THREADS": "-1"}, "THREADS"),
            ({"HOST": "localhost"}, "HOST"),
            ({"WARMUP_SHAPES": "x"}, "WARMUP_SHAPES"),
            ({"WARMUP_SHAPES": "x=1x0"}, "WARMUP_SHAPES"),
            ({"WARMUP_SHAPES": "z=1x256"}, "z"),
            ({"WARMUP_SHAPES": "x=1x255"}, "256"),
            ({"WARMUP_SHAPES": "x=1073741824x256"}, "no memory"),  # a TiB
        ],
        ids=str,
    )
    def test_wrong_settings_are_told_in_one_line(
        self, image: str, chain: Path, settings: dict[str, str], told: str
    ) -> None:
        code, said = fails(image, chain, PROVIDER="cpu", **settings)
        assert code == 2
        assert said.startswith("error: ")
        assert len(said.splitlines()) == 1
        assert told in said

    def test_a_file_that_is_no_model_is_told_in_one_line(self, image: str, models: Path) -> None:
        path = models / "text.onnx"
        path.write_text("this is no model")
        code, said = fails(image, path, PROVIDER="cpu")
        assert code == 2
        assert len(said.splitlines()) == 1
        assert "text.onnx" in said

    def test_a_port_that_is_taken_is_told(self, image: str, chain: Path, service: Service) -> None:
        code, said = fails(image, chain, PROVIDER="cpu", PORT=str(service.port))
        assert code == 3
        assert str(service.port) in said

    @pytest.mark.parametrize(
        ("hidden", "told"),
        [
            ("/dev/null:/usr/share/none", "CUDA failure 35: "),
            ("/dev/null:/usr/local/cuda-12.6/lib64/libcublasLt.so.12", "libcublasLt.so.12: "),
        ],
        ids=["no driver", "a library that is broken"],
    )
    def test_why_cuda_cannot_be_used_is_told_without_where_in_the_source(
        self, image: str, chain: Path, hidden: str, told: str
    ) -> None:
        words = run_command(chain, "--rm", f"--volume={hidden}", PORT=free_port())
        done = subprocess.run(["docker", *words, image], capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert done.stderr.startswith("error: CUDA cannot be used: ")
        assert told in done.stderr
        assert "onnxruntime_src" not in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "PROVIDER=cpu" in done.stderr

    def test_the_engine_runs_the_health_check(self, service: Service) -> None:
        until(
            lambda: docker("inspect", "--format={{.State.Health.Status}}", service.name) == "healthy",
            "the engine says healthy",
        )

    # ---- load.sh ----

    def test_load_is_put_on_it_and_told(self, service: Service, tmp_path: Path) -> None:
        done = load(service, {"inputs": {"x": GOOD}}, tmp_path, "1", "1", "3")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["ready"]["provider"] == "CPUExecutionProvider"
        assert [run["connections"] for run in told["runs"]] == [1, 3]
        for run in told["runs"]:
            assert run["report"]["status_codes"] == {"200": run["report"]["requests"]}
            assert 0 < run["inference_seconds"] < run["report"]["latencies"]["mean"] / 1e9
        assert service.metric("ort_in_flight") == 0

    def test_load_that_is_not_answered_is_a_failure(self, service: Service, tmp_path: Path) -> None:
        assert load(service, {"inputs": {}}, tmp_path, "1", "1").returncode == 1

    def test_load_on_nobody_ends_at_once(self, service: Service, tmp_path: Path) -> None:
        done = load(replace(service, port=free_port()), {"inputs": {}}, tmp_path)
        assert done.returncode == 3
        assert "Connection refused" in done.stderr
        assert done.stdout == ""

    # ---- the image ----

    def test_one_small_file_and_an_empty_folder_are_added(self, image: str) -> None:
        assert added_bytes(image, f"onnxruntime-gpu:{RUNTIME}") < 10_000_000
        differences = [
            "find",
            "/usr/local/bin",
            "/var/cache/cuda",
            "-newer",
            "/usr/share/ortimg/manifest.json",
        ]
        found = docker(
            "run", "--rm", "--network=none", f"--entrypoint={differences[0]}", image, *differences[1:]
        )
        assert sorted(found.split()) == ["/usr/local/bin", BINARY, "/var/cache/cuda"]

    def test_what_the_driver_compiles_can_be_kept_in_a_volume(self, image: str) -> None:
        script = "touch $CUDA_CACHE_PATH/it && find $CUDA_CACHE_PATH -name it"
        volume = ("--read-only", "--mount=type=volume,target=/var/cache/cuda")
        words = ("run", "--rm", "--network=none", *volume, "--entrypoint=sh", image, "-ec", script)
        assert docker(*words) == "/var/cache/cuda/it"

    def test_it_is_linked_to_the_cell_s_own_onnx_runtime_and_to_no_boost(self, image: str) -> None:
        linked = docker("run", "--rm", "--network=none", "--entrypoint=ldd", image, BINARY)
        assert "not found" not in linked
        found = re.search(r"libonnxruntime\.so\.1 => (\S+)", linked)
        assert found
        assert found[1].startswith("/opt/onnxruntime/")
        assert "boost" not in linked

    def test_ortimg_verifies_the_image(self, image: str) -> None:
        done = ortimg("verify", image)
        assert done.returncode == 0, done.stdout + done.stderr
