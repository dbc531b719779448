"""One question to the `docker` client: which client, engine, buildx and image store are there?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from ortimg.errors import EnvironmentFault

ANSWER_LIMIT = 20.0  # seconds; a healthy engine answers in 0.1 s, one that is starting may need some


@dataclass(frozen=True)
class EngineFacts:
    """What `docker info` says. A version is None where the part is absent."""

    client: str | None = None
    server: str | None = None
    buildx: str | None = None
    containerd_store: bool = False
    data_root: str | None = None
    endpoint: str | None = None  # DOCKER_HOST, if set
    fault: str | None = None  # why no engine answers, in the client's own words
    podman: bool = False

    @property
    def forbidden(self) -> bool:
        """Whether an engine is there and this user may not talk to it."""
        return "permission denied" in (self.fault or "").lower()


def facts_from(info: dict[str, Any], endpoint: str | None = None, said: str = "") -> EngineFacts:
    """Reads the object that `docker info --format '{{json .}}'` prints; `said` is what it wrote to stderr."""
    if "host" in info and "store" in info:  # podman's own shape of the same command
        version = (info.get("version") or {}).get("Version")
        return EngineFacts(client=version, server=version, endpoint=endpoint, podman=True)
    client = info.get("ClientInfo") or {}
    plugins = {p.get("Name"): p for p in client.get("Plugins") or () if not p.get("Err")}
    status = {str(row[0]): str(row[1]) for row in info.get("DriverStatus") or () if len(row) == 2}
    errors = "; ".join(info.get("ServerErrors") or ())
    server = info.get("ServerVersion") or None
    return EngineFacts(
        client=client.get("Version") or None,
        server=server,
        buildx=(plugins.get("buildx") or {}).get("Version") or None,
        # https://docs.docker.com/engine/storage/containerd/: the driver's type is what tells the store
        containerd_store=status.get("driver-type") == "io.containerd.snapshotter.v1",
        data_root=info.get("DockerRootDir") or None,
        endpoint=endpoint,
        fault=None if server else errors or said or "the engine gave no version",
        podman="podman" in errors.lower(),
    )


def unanswered(what: str, fault: str, endpoint: str | None) -> EnvironmentFault:
    """The error for an engine that does not answer; `endpoint` is the value of DOCKER_HOST."""
    where = f"DOCKER_HOST={endpoint}: " if endpoint else ""
    if "permission denied" in fault.lower():
        return EnvironmentFault(
            f"{where}this user may not use the container engine",
            "run: sudo usermod -aG docker $USER, and log in again (or run as root)",
        )
    if endpoint:
        hint = "start that engine or unset DOCKER_HOST"
    elif "context not found" in fault:
        hint = "unset DOCKER_CONTEXT, or choose one of `docker context ls`"
    else:
        hint = "run `make engine`"
    return EnvironmentFault(f"{what}: {where}{fault}", hint)


def ask_engine() -> EngineFacts:
    """Asks once; never raises for an absent or silent engine."""
    endpoint = os.environ.get("DOCKER_HOST") or None
    if shutil.which("docker") is None:
        return EngineFacts(endpoint=endpoint, fault="there is no docker command on PATH")
    try:
        done = subprocess.run(
            ["docker", "info", "--format", "{{json .}}"],
            capture_output=True,
            text=True,
            timeout=ANSWER_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return EngineFacts(client="?", endpoint=endpoint, fault=f"no answer within {ANSWER_LIMIT:.0f} s")
    except OSError as error:  # a file of another machine, or of none
        return EngineFacts(client="?", endpoint=endpoint, fault=f"docker cannot be run: {error.strerror}")
    said = (done.stderr.strip() or "docker info printed nothing").splitlines()[-1]
    try:
        info = json.loads(done.stdout)
    except ValueError:
        return EngineFacts(client="?", endpoint=endpoint, fault=said)
    return facts_from(info, endpoint, said)
