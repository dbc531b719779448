"""Verifies an unpacked root file system on this machine, without an engine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ortimg.core.gpu_access import EVERY, Device
from ortimg.core.model import Tier
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault, ExitCode
from ortimg.verify.binary import Verifier
from ortimg.verify.report import Report, failed, parse_report, with_target
from ortimg.verify.wish import Places, RunWish, refused, time_limit

_FOLDERS = ("run", "tmp", "mnt")  # `ort-verify` mounts in one of them


def verify_root(
    folder: Path,
    tier: Tier,
    verifier: Verifier,
    seconds: int | None = None,
    wish: RunWish | None = None,
    device: Device = EVERY,
) -> Report:
    """Runs `verifier --root folder`: it enters the root in mounts of its own and leaves nothing there.

    Code of the root runs without network and without rights; in tier run with this machine's NVIDIA driver
    and its GPU `device`, on `wish`. `seconds` limit one attempt. Raises EnvironmentFault where this machine
    does not let it (root, or user namespaces, are needed), ConfigError for a wish that cannot be.
    """
    if not any((folder / name).is_dir() for name in _FOLDERS):
        raise ConfigError(
            f"{folder} is no unpacked root: it has neither {' nor '.join(_FOLDERS)}",
            hint="Name a whole unpacked root.",
        )
    limit, wish = time_limit(tier, seconds, wish), wish or RunWish()
    command = [str(verifier.program), "--root", str(folder), *wish.goal(tier), "--timeout", str(limit)]
    files = (wish.model, wish.save_outputs, wish.reference)
    places = Places(*(str(file) if file else None for file in files))
    command += ["--stub", str(verifier.stub), *wish.words(places)]
    try:
        done = subprocess.run(
            command,
            env=os.environ | device.variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=8 * limit + 60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return failed(
            str(folder), tier, "verify", "hang: ort-verify did not end in time", "see what it waits for"
        )
    if done.returncode == ExitCode.USAGE and not done.stdout:
        raise refused(done.stderr, wish)
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    if done.returncode == ExitCode.ENVIRONMENT and not done.stdout:
        raise EnvironmentFault(last.removeprefix("ort-verify: "), "run it as root, on a whole unpacked root")
    try:
        return with_target(parse_report(done.stdout), str(folder))
    except CheckFailed as error:
        evidence = f"{error.message}; exit {done.returncode}, last words on stderr: {last}"
        return failed(str(folder), tier, "verify", evidence, error.hint or "see stderr")
