"""Runs warm.sh where the GPU is: on an unpacked root, or inside a container of an image."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ortimg.core.gpu_access import EVERY, Way, docker_options
from ortimg.core.warm import SEED_PATH
from ortimg.engine.client import Engine, RunResult
from ortimg.engine.gpus import by_some_way, no_gpu, refusal_of
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault, ExitCode
from ortimg.verify.binary import Verifier
from ortimg.verify.wish import Places, RunWish, cuda_variables
from ortimg.warming.folder import SCRIPT

_VERIFY = "/run/ortimg-verify"  # where the container sees what it is given
_SCRIPT = "/run/ortimg-warm.sh"
_OUT = "/run/ortimg-out"
_SEEN = "/run/ortimg-out-read-only"
_MODELS = "/run/ortimg-models"
_ANYONE = "12345:12345"  # a user that owns nothing
_STOP = 20  # seconds that the script has to tidy up


@dataclass(frozen=True)
class Course:
    """How a warm-up goes."""

    wish: RunWish  # the user's model
    starts: int = 3
    cold_starts: int = 1
    seconds: int = 600  # limit of one start
    force: bool = False  # also where the GPU needs no cache

    def words(self, model: str | None) -> list[str]:
        """warm.sh's own words; `model`: the path at which it sees the model."""
        words = [f"--starts={self.starts}", f"--cold-starts={self.cold_starts}", f"--timeout={self.seconds}"]
        words += ["--force"] if self.force else []
        return words + self.wish.words(Places(model=model))

    @property
    def limit(self) -> int:
        """Seconds for all of it: each start is a few attempts."""
        return 8 * self.seconds * (5 * self.starts + self.cold_starts + 11)


def warm_root(root: Path, out: Path, verifier: Verifier, course: Course) -> None:
    """Warms an unpacked root on this machine; `out` gets the record. What it does is told on stderr.

    Raises CheckFailed where a start fails, EnvironmentFault where there is no GPU, ConfigError for a wish
    that cannot be.
    """
    model = course.wish.model
    command = ["sh", str(SCRIPT), f"--verify={verifier.program}", f"--stub={verifier.stub}"]
    command += [f"--root={root}", f"--out={out}", *course.words(str(model.resolve()) if model else None)]
    sys.stderr.flush()
    # A group of its own: what ends ortimg must end each process of the script, and leave nothing in the root.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), start_new_session=True
    )
    try:
        code = process.wait(course.limit)
    except subprocess.TimeoutExpired:
        _stop(process)
        raise CheckFailed("hang: the warm-up did not end in time", "See what it waits for.") from None
    except BaseException:
        _stop(process)
        raise
    _judge(code, out, "see the lines above")


def warm_image(engine: Engine, reference: str, out: Path, verifier: Verifier, course: Course) -> None:
    """The same inside a container of `reference`, which has all GPUs, no network and no rights."""
    model = course.wish.model.resolve() if course.wish.model else None
    volumes = [
        f"{verifier.folder}:{_VERIFY}:ro",
        f"{SCRIPT}:{_SCRIPT}:ro",
        f"{out.resolve()}:{_OUT}:rw",
        f"{out.resolve()}:{_SEEN}:ro",  # a container may not mount
    ]
    if model:  # with its folder, which may hold its weights
        volumes.append(f"{model.parent}:{_MODELS}:ro")
    words = [_SCRIPT, f"--verify={_VERIFY}/{verifier.program.name}", f"--out={_OUT}"]
    words.append(f"--read-only-out={_SEEN}")
    words += course.words(f"{_MODELS}/{model.name}" if model else None)
    result = _run(engine, reference, words, course.limit, entrypoint="sh", volumes=volumes)
    if result.timed_out:
        raise CheckFailed("hang: the warm-up did not end in time", "See what it waits for.")
    if result.stderr:
        sys.stderr.write(result.stderr)
    _judge(result.exit_code or 0, out, "see the lines above")


def prove_image(
    engine: Engine, reference: str, verifier: Verifier, seconds: int, *, seeded: bool = False
) -> None:
    """Runs the verifier's model in the warmed image as it is, where the driver may compile nothing.

    With the entrypoint it has a place to write to. Without, it cannot write to the cache: once since the root
    is read-only, once since the cache belongs to another user.

    Raises CheckFailed where that fails: the cache in the image is of no use then.
    """
    volumes = [f"{verifier.folder}:{_VERIFY}:ro"]
    words = ["--tier", "run", "--timeout", str(seconds), "--stub", f"{_VERIFY}/{verifier.stub.name}"]
    program = f"{_VERIFY}/{verifier.program.name}"
    start, words = (SEED_PATH, [program, *words]) if seeded else (program, words)
    for changes in ({},) if seeded else ({}, {"user": _ANYONE, "read_only": False}):
        result = _run(
            engine,
            reference,
            words,
            8 * seconds,
            entrypoint=start,
            volumes=volumes,
            more={"CUDA_DISABLE_PTX_JIT": "1"},
            changes=changes,
        )
        if result.exit_code != ExitCode.DONE:
            last = (result.stderr.strip().splitlines() or ["nothing"])[-1]
            other = "report this" if seeded else "try again with --seed, and report this"
            raise CheckFailed(
                f"{reference} does not run its model without compiling, last words: {last}",
                f"Remove it with `docker image rm {reference}`, {other}.",
            )


def _run(
    engine: Engine,
    reference: str,
    words: list[str],
    limit: int,
    *,
    entrypoint: str,
    volumes: list[str],
    more: dict[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RunResult:
    from docker.errors import APIError

    # The user's own settings of the cache would hide the image's.
    variables = {key: value for key, value in cuda_variables().items() if not _is_of_cache(key)}

    def start(way: Way) -> RunResult:
        settings = docker_options(way, EVERY)
        settings["environment"] = settings.get("environment", {}) | variables | (more or {})
        settings |= {
            "volumes": volumes,
            "user": f"{os.getuid()}:{os.getgid()}",  # what it writes is ours
            "tmpfs": {"/tmp": ""},
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
        }
        settings |= changes or {}
        return engine.run(reference, words, limit=limit, entrypoint=entrypoint, **settings)

    try:
        return by_some_way(engine, start)
    except APIError as error:
        if (told := refusal_of(error)) is not None:
            raise no_gpu(error, told) from error
        if entrypoint == "sh" and '"sh"' in str(error.explanation):
            raise CheckFailed(
                f"{reference} has no sh, which the warm-up runs in",
                "Warm the image that it stands on, and use that one's folder: --from FOLDER.",
            ) from error
        raise EnvironmentFault(
            f"the engine cannot start {reference}: {error.explanation}", "See the engine's log."
        ) from error


def _is_of_cache(key: str) -> bool:
    return key.startswith("CUDA_CACHE_") or key.endswith("_JIT")


def _judge(code: int, out: Path, where: str) -> None:
    if code == ExitCode.DONE:
        return
    if code == ExitCode.USAGE:
        raise ConfigError(f"the warm-up refused its options: {where}", hint="See `ortimg warm --help`.")
    if code == ExitCode.ENVIRONMENT:
        raise EnvironmentFault(
            f"this machine cannot warm anything: {where}",
            "Run it on a machine with an NVIDIA GPU and its driver (as root, for an unpacked root).",
        )
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    raise CheckFailed(f"the warm-up failed (exit {code}): {where}", f"The record is in {out}.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
