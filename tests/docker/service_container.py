"""The example services in containers: built from a clone, started, asked, ended.

They run as a careful operator would have them: no capability, a root file system that cannot be written. They
listen on 127.0.0.1 of this machine.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import requests
from prometheus_client.parser import text_string_to_metric_families
from registries import free_port

ROOT = Path(__file__).parents[2]
CAREFUL = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")
LIMIT = 60.0  # seconds, for what takes a moment
_NUMBERS = itertools.count()

Array = np.ndarray[Any, Any]


def build_from_clone(
    folder: str, reference: str, clone: Path, *arguments: str, network: str = "host"
) -> None:
    """`docker build` of examples/`folder` in a fresh clone of the repository, as a reader does it.

    `network`: the one that packages come through; this machine's own may reach more than the engine's.
    """
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    docker(
        "build",
        "--quiet",
        f"--network={network}",
        f"--tag={reference}",
        *arguments,
        str(clone / "examples" / folder),
    )


def docker(*words: str) -> str:
    """What the command prints; AssertionError with what it said where it fails."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


def until(condition: Callable[[], bool], what: str, limit: float = LIMIT) -> None:
    """Wait for `condition`; `what`: it in words."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"not within {limit:.0f} s: {what}"
        time.sleep(0.01)


def tensor(values: Array) -> dict[str, Any]:
    """An array as the services' JSON has it."""
    return {
        "shape": list(values.shape),
        "dtype": values.dtype.name,
        "data": values.reshape(-1).tolist(),
    }


def array(found: Mapping[str, Any]) -> Array:
    """The services' JSON as an array."""
    return np.array(found["data"], dtype=found["dtype"]).reshape(found["shape"])


@dataclass(frozen=True)
class Service:
    """A container that serves."""

    name: str
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> requests.Response:
        return requests.get(self.url + path, timeout=LIMIT)

    def status(self, path: str) -> int | None:
        """Of a GET; None: nobody answers yet, or any more."""
        try:
            return self.get(path).status_code
        except requests.ConnectionError:
            return None

    def post(self, body: object) -> requests.Response:
        """Ask for an inference; `body`: bytes as they are, or what becomes JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"}
        return requests.post(f"{self.url}/v1/infer", data=data, headers=kind, timeout=LIMIT)

    def infer(self, **inputs: Array) -> dict[str, Array]:
        """The outputs by name."""
        answer = self.post({"inputs": {name: tensor(values) for name, values in inputs.items()}})
        assert answer.status_code == 200, answer.text
        return {name: array(found) for name, found in answer.json()["outputs"].items()}

    def metrics(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Samples by name and sorted labels, read by Prometheus' own parser."""
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(self.get("/metrics").text)
            for sample in family.samples
        }

    def metric(self, name: str, **labels: str) -> float:
        """One sample; 0 where there is none."""
        return self.metrics().get((name, tuple(sorted(labels.items()))), 0.0)

    def until_ready(self) -> Service:
        until(lambda: self.status("/readyz") == 200 or not self.runs, f"{self.name} is ready")
        assert self.runs, self.said
        return self

    def check_health(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """The image's own health check, as the engine runs it. `environment`: other settings for it alone."""
        kind, *command = json.loads(
            docker("inspect", "--format={{json .Config.Healthcheck.Test}}", self.name)
        )
        assert kind == "CMD", f"a shell is needed: {kind}"
        words = ["docker", "exec", *(f"--env={key}={value}" for key, value in environment.items()), self.name]
        return subprocess.run([*words, *command], capture_output=True, text=True, check=False)

    def signal(self, name: str) -> None:
        docker("kill", f"--signal={name}", self.name)

    @property
    def runs(self) -> bool:
        return docker("inspect", "--format={{.State.Running}}", self.name) == "true"

    @property
    def said(self) -> str:
        """Both of its streams."""
        done = subprocess.run(["docker", "logs", self.name], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    def exit_code(self) -> int:
        """Waits for its end."""
        done = subprocess.run(
            ["docker", "wait", self.name], capture_output=True, text=True, check=True, timeout=LIMIT
        )
        return int(done.stdout)


@contextmanager
def serving(
    image: str, model: Path, *, options: Sequence[str] = (), **settings: str | int
) -> Iterator[Service]:
    """A container of `image` until the end of the block; it may not be ready yet.

    `options`: further ones of `docker run`; `settings`: of the service, such as WARMUP_RUNS. On the CPU where
    nothing else is asked for.
    """
    service = Service(f"ortimg-test-service-{os.getpid()}-{next(_NUMBERS)}", free_port())
    command = run_command(model, *options, PORT=service.port, **{"PROVIDER": "cpu", **settings})
    docker(*command, "--detach", f"--name={service.name}", image)
    try:
        yield service
    finally:
        subprocess.run(["docker", "rm", "--force", service.name], capture_output=True, check=False)


def run_command(model: Path, *options: str, **settings: str | int) -> tuple[str, ...]:
    """`run …`, up to the image's name."""
    words = {"HOST": "127.0.0.1", "MODEL": f"/models/{model.name}", **settings}
    environment = (f"--env={key}={value}" for key, value in words.items())
    # Not the folder that pytest made, which is this user's alone.
    mount = f"--mount=type=bind,source={model.parent},target=/models,readonly"
    return ("run", "--network=host", *CAREFUL, *options, mount, *environment)


def added_bytes(image: str, cell: str) -> int:
    """Bytes, unpacked, of the layers that `image` has over `cell`; all of the cell's must be below them."""
    own, below = (
        json.loads(docker("inspect", "--format={{json .RootFS.Layers}}", name)) for name in (image, cell)
    )
    assert own[: len(below)] == below, f"{image} does not stand upon {cell}"
    sizes = [
        int(line) for line in docker("history", "--human=false", "--format={{.Size}}", image).splitlines()
    ]
    rest = [int(line) for line in docker("history", "--human=false", "--format={{.Size}}", cell).splitlines()]
    return sum(sizes) - sum(rest)
