"""Verifies an image that the engine holds, whoever built it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ortimg.core.gpu_access import EVERY, Device, Fault, Way, docker_options
from ortimg.core.model import Tier
from ortimg.engine.client import Engine, Image, RunResult
from ortimg.engine.gpus import by_some_way, no_gpu, refusal_of
from ortimg.errors import CheckFailed, EnvironmentFault, ExitCode
from ortimg.verify.binary import Verifier
from ortimg.verify.report import (
    Finding,
    FindingVerdict,
    Report,
    Verdict,
    failed,
    parse_report,
    with_target,
)
from ortimg.verify.wish import Places, RunWish, cuda_variables, refused, time_limit

_MOUNT = "/run/ortimg-verify"  # seen by this one container only
_MODELS, _OUTPUTS, _REFERENCE = "/run/ortimg-models", "/run/ortimg-outputs", "/run/ortimg-reference"
_ENVIRONMENT_CHECK = "container.environment"
_DIRECTORY_CHECK = "loader.directory"  # LD_LIBRARY_PATH has the current directory in it
_USER_CHECK = "container.user"
_CELL_LABEL = "ortimg.identifier"  # what is made FROM a cell inherits it
_NO_START = "take a base with glibc for x86-64: Debian, Ubuntu, Rocky"


def verify_image(
    engine: Engine,
    reference: str,
    tier: Tier,
    verifier: Verifier,
    seconds: int | None = None,
    wish: RunWish | None = None,
    device: Device = EVERY,
    image: Image | None = None,
) -> Report:
    """Runs `verifier` inside `reference`: no network, nothing written, no capabilities, the image's own user.

    In tier run the container has the GPU `device`, as with `docker run --gpus`, and runs `wish`. `seconds`
    limit one attempt. `image` is what `reference` was found to be, if that was asked before: a name may have
    moved since. Raises EnvironmentFault where the engine has no such image, or no GPU; ConfigError for a wish
    that cannot be.
    """
    image = image or engine.require(reference)
    limit, wish = time_limit(tier, seconds, wish), wish or RunWish()
    words = [*wish.goal(tier), "--timeout", str(limit), "--stub", f"{_MOUNT}/{verifier.stub.name}"]
    places, volumes = _shown(wish)
    words += wish.words(places)
    volumes[str(verifier.folder)] = {"bind": _MOUNT, "mode": "ro"}
    gpus = wish.needs_gpu(tier)
    identity = image.id

    def start(more: dict[str, Any]) -> RunResult:
        return engine.run(
            identity,
            words,
            limit=8 * limit + 60,  # attempts follow one another
            entrypoint=f"{_MOUNT}/{verifier.program.name}",
            volumes=volumes,
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            **more,
        )

    try:
        with _anyone_may_write(wish.save_outputs):
            result = by_some_way(engine, lambda way: start(_with_gpu(way, device))) if gpus else start({})
    except Exception as error:
        return _not_started(reference, tier, error)
    return _judge(reference, tier, result, wish, image)


def _shown(wish: RunWish) -> tuple[Places, dict[str, dict[str, str]]]:
    """Where a container sees the files of a wish, and docker-py's words for that."""
    volumes = {}
    model = wish.model.resolve() if wish.model else None
    if model:  # with its folder, which may hold its weights
        volumes[str(model.parent)] = {"bind": _MODELS, "mode": "ro"}
    if wish.reference:
        volumes[str(wish.reference.resolve())] = {"bind": _REFERENCE, "mode": "ro"}
    if wish.save_outputs:
        volumes[str(wish.save_outputs.resolve())] = {"bind": _OUTPUTS, "mode": "rw"}
    places = Places(
        model=f"{_MODELS}/{model.name}" if model else None,
        save_outputs=_OUTPUTS if wish.save_outputs else None,
        reference=_REFERENCE if wish.reference else None,
    )
    return places, volumes


@contextmanager
def _anyone_may_write(folder: Path | None) -> Iterator[None]:
    """While it lasts: the image's user is anyone, and root in a container without capabilities is no more."""
    if folder is None:
        yield
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(mode | 0o777)
    try:
        yield
    finally:
        folder.chmod(mode)


def _with_gpu(way: Way, device: Device) -> dict[str, Any]:
    """docker-py's words for the GPU, and what a run needs besides: its profile is written to /tmp."""
    options = docker_options(way, device)
    variables = cuda_variables()
    if not device.every:  # inside, the one GPU has number 0
        variables.pop("CUDA_VISIBLE_DEVICES", None)
    return options | {"environment": variables | options.get("environment", {}), "tmpfs": {"/tmp": ""}}


def _not_started(reference: str, tier: Tier, error: Exception) -> Report:
    from docker.errors import APIError

    if not isinstance(error, APIError):
        raise error
    text = str(error.explanation or error)
    told = refusal_of(error)
    if told is not None and told.fault is Fault.IMAGE:
        return failed(reference, tier, "container.start", f"{told.cause}: {text}", told.cure)
    if told is not None:
        raise no_gpu(error, told) from error
    if "exec format error" in text:
        return failed(
            reference, tier, "base.libraries", "the image is for another machine, not x86-64", _NO_START
        )
    if "no such file or directory" in text and verifier_is_named(text):
        return failed(
            reference,
            tier,
            "base.libraries",
            "no /lib64/ld-linux-x86-64.so.2: not a glibc system for x86-64",
            _NO_START,
        )
    raise EnvironmentFault(f"the engine cannot start {reference}: {text}", "see the engine's log") from error


def verifier_is_named(text: str) -> bool:
    """Does an engine's message speak of our program, so that its loader is what is missing?"""
    return _MOUNT in text


def _judge(reference: str, tier: Tier, result: RunResult, wish: RunWish, image: Image) -> Report:
    if result.timed_out:
        return failed(
            reference,
            tier,
            "verify",
            "hang: ort-verify did not end in time and was stopped",
            "see what it waits for",
        )
    if result.exit_code == ExitCode.USAGE:
        raise refused(result.stderr, wish)
    # 255 and "exec …: no such file" on stderr: a start that failed after the engine said yes.
    if (
        not result.stdout
        and "no such file or directory" in result.stderr
        and verifier_is_named(result.stderr)
    ):
        return failed(
            reference,
            tier,
            "base.libraries",
            "no /lib64/ld-linux-x86-64.so.2: not a glibc system for x86-64",
            _NO_START,
        )
    try:
        report = parse_report(result.stdout)
    except CheckFailed as error:
        evidence = f"{error.message}; exit {result.exit_code}, last words on stderr: {_last(result.stderr)}"
        return failed(reference, tier, "verify", evidence, error.hint or "see stderr")
    return with_target(_with_user(_with_environment(report, image), image), reference)


def _with_user(report: Report, image: Image) -> Report:
    """A word about an image that stands on a cell, has a program of its own, and runs it as root."""
    words = (*image.entrypoint, *image.command)
    own = _CELL_LABEL in image.labels and words and not any("ort-verify" in word for word in words)
    if not own or image.user.split(":")[0] not in ("", "0", "root"):
        return report
    finding = Finding(
        check=_USER_CHECK,
        verdict=FindingVerdict.WARNING,
        evidence=f"{words[0]} runs as root",
        cure="write USER 10001:10001 after the last RUN; the libraries are readable for every user",
    )
    return msgspec.structs.replace(report, findings=(*report.findings, finding))


def _with_environment(report: Report, image: Image) -> Report:
    """The container had the image's own environment: what the verifier could only warn of is a fault.

    That the loader searches the current directory is one in an image that stands on a cell: the cell did not.
    """
    faults = {_ENVIRONMENT_CHECK, *([_DIRECTORY_CHECK] if _CELL_LABEL in image.labels else [])}

    def sharper(finding: Finding) -> Finding:
        if finding.check not in faults or finding.verdict is not FindingVerdict.WARNING:
            return finding
        return msgspec.structs.replace(finding, verdict=FindingVerdict.FAIL)

    findings = tuple(sharper(finding) for finding in report.findings)
    if findings == report.findings:
        return report
    return msgspec.structs.replace(report, findings=findings, verdict=Verdict.FAIL)


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "nothing"
