"""Does the engine hand a GPU to a container, and how is it asked?"""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ortimg.core.gpu_access import Device, Refusal, Way, builder_devices, podman_command, refusal_in, ways
from ortimg.data import read_refusals
from ortimg.engine.client import Engine
from ortimg.engine.info import ANSWER_LIMIT, ask_engine
from ortimg.errors import EnvironmentFault

T = TypeVar("T")
_NOTHING = "/nothing-to-run"
_LIMIT = 60  # seconds for a start that must fail at its program


def refusal_of(error: Exception) -> Refusal | None:
    """What an engine's error says of GPUs; None: it speaks of something else."""
    return refusal_in(words(error), read_refusals())


def words(error: Exception) -> str:
    """An engine's own text."""
    return str(getattr(error, "explanation", None) or error).strip()


def no_gpu(error: Exception, told: Refusal) -> EnvironmentFault:
    """The error for an engine that gives no GPU to a container."""
    return EnvironmentFault(
        f"the engine gives no GPU to a container: {told.cause} ({words(error)})", told.cure
    )


def by_some_way(engine: Engine, start: Callable[[Way], T]) -> T:
    """The result of `start` by the first way of asking for a GPU that the engine knows.

    Raises what `start` raised: by a way that the engine knows, else by the first.
    """
    from docker.errors import APIError

    first: APIError | None = None
    for way in ways(engine.info()):
        try:
            return start(way)
        except APIError as error:
            told = refusal_of(error)
            if told is None or not told.other_way:
                raise
            first = first or error
    assert first is not None
    raise first


def require_gpu(engine: Engine, options: Callable[[Way], dict[str, Any]]) -> None:
    """Raise EnvironmentFault where no container gets a GPU: told by a container that has nothing to run.

    Its image is empty, so nothing is pulled. A GPU is handed in before the program is looked for, so an error
    about the program means that there is one.
    """
    from docker.errors import APIError

    with _empty_image(engine) as image:
        try:
            by_some_way(engine, lambda way: engine.run(image, [_NOTHING], limit=_LIMIT, **options(way)))
        except APIError as error:
            told = refusal_of(error)
            if told is not None and not told.reached:
                raise no_gpu(error, told) from error
            if told is None and _NOTHING not in words(error):
                raise EnvironmentFault(
                    f"the engine cannot start a container: {words(error)}", "see the engine's log"
                ) from error


@contextmanager
def _empty_image(engine: Engine) -> Iterator[str]:
    reference = f"localhost/ortimg/gpu-probe:{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="ortimg-") as folder:
        tar = Path(folder) / "empty.tar"
        tarfile.open(tar, "w").close()
        engine.import_root(tar, reference)
    try:
        yield reference
    finally:
        engine.remove(reference)


def refuse_podman(reference: str, device: Device) -> None:
    """Raise EnvironmentFault, with Podman's own command, where `docker` here is Podman."""
    if ask_engine().podman:
        raise EnvironmentFault(
            "`docker` here is Podman, to which --gpu does not speak",
            f"run: {podman_command(reference, device)}",
        )


def devices_of(builder: str) -> tuple[str, ...]:
    """CDI devices that a builder has for its steps; none where it does not say."""
    command = ["docker", "buildx", "inspect", builder]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWER_LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return builder_devices(done.stdout)
