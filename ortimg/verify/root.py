"""Verifies an unpacked root file system on this machine, without an engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ortimg.core.model import Tier
from ortimg.errors import CheckFailed, EnvironmentFault, ExitCode
from ortimg.verify.binary import Verifier
from ortimg.verify.report import Report, failed, parse_report, with_target


def verify_root(folder: Path, tier: Tier, verifier: Verifier, seconds: int = 120) -> Report:
    """Runs `verifier --root folder`: it enters the root in mounts of its own and leaves nothing there.

    Tier load runs code of the root, without network and without rights. Raises EnvironmentFault where this
    machine does not let it (root, or user namespaces, are needed).
    """
    command = [str(verifier.program), "--root", str(folder), "--tier", tier.value, "--timeout", str(seconds)]
    command += ["--stub", str(verifier.stub)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=8 * seconds + 60, check=False
        )
    except subprocess.TimeoutExpired:
        return failed(
            str(folder), tier, "verify", "hang: ort-verify did not end in time", "see what it waits for"
        )
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    if done.returncode in (ExitCode.USAGE, ExitCode.ENVIRONMENT) and not done.stdout:
        raise EnvironmentFault(last.removeprefix("ort-verify: "), "run it as root, on a whole unpacked root")
    try:
        return with_target(parse_report(done.stdout), str(folder))
    except CheckFailed as error:
        evidence = f"{error.message}; exit {done.returncode}, last words on stderr: {last}"
        return failed(str(folder), tier, "verify", evidence, error.hint or "see stderr")
