"""What both example services promise over HTTP. A test module takes the tests over:

@pytest.fixture(scope="module")
def image() -> str: ...  # builds the service's image and gives its reference

class TestContract(ServiceContract):
    pass
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import service_models
from registries import free_port
from service_container import Array, Service, docker, run_command, serving, tensor, until

SIZE = service_models.SIZE
LONG = 3.0  # seconds that the long request takes, about


def waves(*shape: int) -> Array:
    return np.sin(np.arange(np.prod(shape)) * 0.11).astype(np.float32).reshape(shape)


GOOD: dict[str, Any] = tensor(waves(1, SIZE))
WRONG: dict[str, object] = {
    "nothing": b"",
    "no JSON": b'{"inputs": ',
    "no object": [1, 2],
    "no inputs": {"input": {"x": GOOD}},
    "inputs are no object": {"inputs": [GOOD]},
    "an input is missing": {"inputs": {}},
    "an unknown input": {"inputs": {"x": GOOD, "z": GOOD}},
    "no shape": {"inputs": {"x": {"dtype": "float32", "data": [1]}}},
    "another dtype": {"inputs": {"x": GOOD | {"dtype": "int64", "data": [1] * SIZE}}},
    "no dtype at all": {"inputs": {"x": GOOD | {"dtype": "float33"}}},
    "another rank": {"inputs": {"x": GOOD | {"shape": [SIZE]}}},
    "another fixed size": {"inputs": {"x": GOOD | {"shape": [1, 255], "data": [0.5] * 255}}},
    "a size below zero": {"inputs": {"x": GOOD | {"shape": [-1, SIZE]}}},
    "a size that is no whole number": {"inputs": {"x": GOOD | {"shape": [1.5, SIZE]}}},
    "sizes that overflow": {"inputs": {"x": GOOD | {"shape": [2**56, SIZE]}}},
    "too little data": {"inputs": {"x": GOOD | {"data": [0.5] * 255}}},
    "too much data": {"inputs": {"x": GOOD | {"data": [0.5] * 257}}},
    "words for numbers": {"inputs": {"x": GOOD | {"data": ["a"] * SIZE}}},
    "nested data": {"inputs": {"x": GOOD | {"data": [[0.5] * SIZE]}}},
    "data that is no array": {"inputs": {"x": GOOD | {"data": 5}}},
}


def long_request(started: Service) -> dict[str, Any]:
    """A request that takes about LONG seconds on this machine."""
    x = waves(1, SIZE)
    trial = {"inputs": {"x": tensor(x), "trips": tensor(np.array(2000, dtype=np.int64))}}
    seconds = started.post(trial).json()["seconds"]
    trips = np.array(int(2000 * LONG / seconds), dtype=np.int64)
    return {"inputs": {"x": tensor(x), "trips": tensor(trips)}}


def fails(image: str, model: Path, **settings: str) -> tuple[int, str]:
    """Exit code and stderr of one that cannot start."""
    done = subprocess.run(
        ["docker", *run_command(model, "--rm", **{"PORT": str(free_port()), **settings}), image],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


class ServiceContract:
    """To be inherited by a class whose name begins with Test."""

    ONNXRUNTIME = "1.23.2"  # version of the cell that the service stands on

    @pytest.fixture(scope="class")
    @classmethod
    def models(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A folder that any user can read."""
        folder = tmp_path_factory.mktemp("service") / "models"
        folder.mkdir(mode=0o755)
        return folder

    @pytest.fixture(scope="class")
    @classmethod
    def chain(cls, models: Path) -> Path:
        return service_models.chain(models)

    @pytest.fixture(scope="class")
    @classmethod
    def loop(cls, models: Path) -> Path:
        return service_models.loop(models)

    @pytest.fixture(scope="class")
    @classmethod
    def mixed(cls, models: Path) -> Path:
        return service_models.mixed(models)

    @pytest.fixture(scope="class")
    @classmethod
    def service(cls, image: str, chain: Path) -> Iterator[Service]:
        """One that is ready, on the CPU."""
        with serving(image, chain, MAX_BODY_MB=1, WARMUP_SHAPES=f"x=2x{SIZE}") as started:
            yield started.until_ready()

    @pytest.fixture
    def loop_service(self, image: str, loop: Path) -> Iterator[Service]:
        """One that is ready, and whose requests take as long as they ask for."""
        with serving(image, loop, THREADS=1) as started:
            yield started.until_ready()

    # ---- ready ----

    def test_it_is_alive_before_and_ready_after_the_warm_up(self, image: str, chain: Path) -> None:
        before = set()
        with serving(image, chain, WARMUP_RUNS=1500, WARMUP_SHAPES=f"x=256x{SIZE}") as started:

            def ready() -> bool:
                status, alive = started.status("/readyz"), started.status("/healthz")
                if status == 503:
                    before.add((alive, started.metric("ort_ready"), started.check_health().returncode))
                return status == 200

            until(ready, "the warm-up ends")
            assert (200, 0.0, 1) in before, before
            assert started.get("/healthz").status_code == 200
            assert started.metric("ort_ready") == 1
            assert started.metric("ort_warmup_seconds") > 0
            assert started.check_health().returncode == 0

    def test_inferences_are_refused_while_it_warms_up(self, image: str, chain: Path) -> None:
        asked = {"inputs": {"x": tensor(waves(1, SIZE))}}
        with serving(image, chain, WARMUP_RUNS=1500, WARMUP_SHAPES=f"x=256x{SIZE}") as started:
            until(lambda: started.status("/healthz") == 200, "it serves")
            refused = started.post(asked)
            until(lambda: started.post(asked).status_code == 200, "the warm-up ends")
        assert refused.status_code == 503
        assert refused.json()["error"]

    def test_ready_says_which_provider_of_which_version(self, service: Service) -> None:
        answer = service.get("/readyz")
        assert answer.headers["Content-Type"].startswith("application/json")
        assert answer.json() == {
            "status": "ready",
            "provider": "CPUExecutionProvider",
            "onnxruntime": self.ONNXRUNTIME,
            "device": 0,
        }

    def test_the_health_check_tells_cuda_from_the_cpu(self, service: Service) -> None:
        assert service.check_health().returncode == 0
        other = service.check_health(PROVIDER="cuda")
        assert other.returncode == 1
        assert "CPUExecutionProvider" in other.stdout + other.stderr

    def test_the_health_check_fails_where_nobody_answers(self, service: Service) -> None:
        assert service.check_health(PORT="1").returncode == 1

    # ---- inferences ----

    @pytest.mark.parametrize("rows", [1, 2, 7])
    def test_outputs_are_those_of_the_reference(self, service: Service, chain: Path, rows: int) -> None:
        x = waves(rows, SIZE)
        wanted = service_models.reference(chain, {"x": x})["y"]
        found = service.infer(x=x)
        assert [*found] == ["y"]
        assert found["y"].dtype == np.float32
        assert found["y"].shape == (rows, SIZE)
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-4, atol=1e-5)

    def test_an_answer_says_the_provider_and_the_time(self, service: Service) -> None:
        answer = service.post({"inputs": {"x": tensor(waves(1, SIZE))}}).json()
        assert {*answer} == {"outputs", "provider", "seconds"}
        assert answer["provider"] == "CPUExecutionProvider"
        assert 0 < answer["seconds"] < 10

    def test_requests_at_the_same_time_get_their_own_outputs(self, service: Service, chain: Path) -> None:
        inputs = [waves(1, SIZE) * scale for scale in np.linspace(0.5, 2, 24, dtype=np.float32)]
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(lambda x: service.infer(x=x)["y"], inputs)]
        for x, y in zip(inputs, found, strict=True):
            np.testing.assert_allclose(
                y, service_models.reference(chain, {"x": x})["y"], rtol=1e-4, atol=1e-5
            )

    def test_whole_numbers_and_truth_values_go_in_and_come_out(self, image: str, mixed: Path) -> None:
        ids = np.array([[0, 1, 2], [3, 3, 0]], dtype=np.int64)
        mask = np.array([[True, True, False], [True, False, True]])
        wanted = service_models.reference(mixed, {"ids": ids, "mask": mask})
        with serving(image, mixed) as started:
            found = started.until_ready().infer(ids=ids, mask=mask)
        assert {name: values.dtype for name, values in found.items()} == {
            "sums": np.float32,
            "best": np.int64,
        }
        np.testing.assert_allclose(found["sums"], wanted["sums"], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found["best"], wanted["best"])

    # ---- wrong requests ----

    @pytest.mark.parametrize("what", WRONG)
    def test_wrong_inputs_are_told(self, service: Service, what: str) -> None:
        answer = service.post(WRONG[what])
        assert answer.status_code == 400, answer.text
        assert {*answer.json()} == {"error"}
        assert answer.json()["error"]
        assert "Traceback" not in answer.text
        assert service.post({"inputs": {"x": GOOD}}).status_code == 200

    def test_a_body_that_is_too_large_is_refused(self, service: Service) -> None:
        body = json.dumps({"inputs": {"x": GOOD}}).encode()
        assert service.post(body + b" " * (2**20 - len(body))).status_code == 200
        answer = service.post(body + b" " * (3 * 2**20))
        assert answer.status_code == 413
        assert answer.json()["error"]

    def test_what_is_not_there_is_not_found(self, service: Service) -> None:
        assert service.status("/v2/infer") == 404
        assert service.status("/v1/infer") == 405

    # ---- metrics ----

    def test_metrics_are_prometheus_text_and_count(self, service: Service) -> None:
        assert service.get("/metrics").headers["Content-Type"].startswith("text/plain; version=0.0.4")
        before = service.metrics()
        for _ in range(5):
            service.infer(x=waves(1, SIZE))
        service.post(b"no JSON")
        after = service.metrics()

        def more(name: str, **labels: str) -> float:
            key = (name, tuple(sorted(labels.items())))
            return after[key] - before.get(key, 0.0)

        assert more("ort_requests_total", code="200") >= 5
        assert more("ort_requests_total", code="400") == 1
        assert more("ort_inference_seconds_count") == 5
        assert more("ort_inference_seconds_sum") > 0
        assert more("ort_inference_seconds_bucket", le="+Inf") == 5
        assert more("ort_request_seconds_count") >= 5
        assert more("ort_request_seconds_sum") >= more("ort_inference_seconds_sum")
        assert after[("ort_in_flight", ())] in (0, 1)  # 1: the request for the metrics may count itself
        assert after[("ort_ready", ())] == 1
        provider = (("onnxruntime", self.ONNXRUNTIME), ("provider", "CPUExecutionProvider"))
        assert after[("ort_provider_info", provider)] == 1

    def test_histograms_are_cumulative(self, service: Service) -> None:
        service.infer(x=waves(1, SIZE))
        found = service.metrics()
        for name in ("ort_request_seconds", "ort_inference_seconds"):
            steps = {
                float(dict(labels)["le"]): value
                for (n, labels), value in found.items()
                if n == f"{name}_bucket"
            }
            counts = [steps[limit] for limit in sorted(steps)]
            assert counts == sorted(counts)
            assert counts[-1] == found[(f"{name}_count", ())]

    # ---- the end ----

    def test_a_running_request_ends_after_sigterm_and_then_it_exits(self, loop_service: Service) -> None:
        body = long_request(loop_service)
        idle = loop_service.metric("ort_in_flight")
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(loop_service.post, body)
            until(lambda: loop_service.metric("ort_in_flight") > idle, "the request runs")
            loop_service.signal("TERM")
            until(lambda: loop_service.status("/readyz") != 200, "it is told")
            assert loop_service.status("/readyz") == 503
            assert loop_service.status("/healthz") == 200
            assert not running.done(), "the request was too short to see anything"
            assert loop_service.post(body).status_code == 503
            answer = running.result()
        assert answer.status_code == 200
        assert np.isfinite(answer.json()["outputs"]["y"]["data"]).all()
        assert loop_service.exit_code() == 0
        assert "Traceback" not in loop_service.said

    def test_without_a_request_sigterm_ends_it_at_once(self, image: str, chain: Path) -> None:
        with serving(image, chain) as started:
            started.until_ready().signal("TERM")
            assert started.exit_code() == 0

    def test_sigterm_ends_the_warm_up(self, image: str, chain: Path) -> None:
        with serving(image, chain, WARMUP_RUNS=100_000_000) as started:
            until(lambda: started.status("/healthz") == 200, "it serves")
            started.signal("TERM")
            assert started.exit_code() == 0

    # ---- what cannot start ----

    def test_without_a_gpu_it_says_so_in_one_line_and_does_not_fall_back(
        self, image: str, chain: Path
    ) -> None:
        code, said = fails(image, chain)  # nothing else is asked for, so CUDA
        assert code == 3
        assert len(said.splitlines()) == 1, said
        assert "CUDA" in said
        assert fails(image, chain, PROVIDER="cuda") == (code, said)

    def test_a_provider_that_does_not_exist_is_told(self, image: str, chain: Path) -> None:
        code, said = fails(image, chain, PROVIDER="tpu")
        assert code == 2
        assert "tpu" in said

    def test_a_model_that_is_not_there_is_told(self, image: str, chain: Path) -> None:
        code, said = fails(image, chain.parent / "none.onnx", PROVIDER="cpu")
        assert code == 2
        assert "none.onnx" in said

    # ---- the image ----

    def test_it_does_not_run_as_root_and_needs_no_shell(self, image: str) -> None:
        config = json.loads(docker("inspect", "--format={{json .Config}}", image))
        assert config["User"].split(":")[0] == "10001"
        assert config["Healthcheck"]["Test"][0] == "CMD"
        assert config.get("Entrypoint") or config.get("Cmd")
        assert "/bin/sh" not in (config.get("Entrypoint") or []) + (config.get("Cmd") or [])

    def test_any_user_can_run_it(self, image: str, chain: Path) -> None:
        with serving(image, chain, options=["--user=4711:4711"]) as started:
            assert started.until_ready().infer(x=waves(1, SIZE))["y"].shape == (1, SIZE)
            assert started.check_health().returncode == 0
