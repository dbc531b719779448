"""Is there an engine that can build? Asked once, before anything is built."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ortimg.engine.info import EngineFacts, ask_engine, unanswered
from ortimg.engine.versions import MIN_BUILDX, MIN_ENGINE, WHY, at_least, dotted, parse_version
from ortimg.errors import EnvironmentFault

_GB = 1_000_000_000


@dataclass(frozen=True)
class EngineInfo:
    """A good engine."""

    client: str
    server: str
    buildx: str
    containerd_store: bool  # layers are kept as they are stored and pushed; any compression
    data_root: Path | None
    free_bytes: int | None  # on the data root's disk; None: the engine is on another machine


def check_engine() -> EngineInfo:
    """Gives the engine's facts, or raises EnvironmentFault: what is wrong, then the next step."""
    return judge(ask_engine(), os.environ.get("DOCKER_BUILDKIT"))


def check_client() -> None:
    """Raises EnvironmentFault unless there is a client with a good buildx: enough for a builder elsewhere."""
    facts = ask_engine()
    _judge_client(facts, os.environ.get("DOCKER_BUILDKIT"))
    _judge_buildx(facts)


def judge(facts: EngineFacts, buildkit: str | None = None) -> EngineInfo:
    """Judges `facts`; `buildkit` is the value of DOCKER_BUILDKIT."""
    _judge_client(facts, buildkit)
    if not facts.server:
        raise unanswered("no container engine answers", facts.fault or "", facts.endpoint)
    if not at_least(facts.server, MIN_ENGINE):
        raise EnvironmentFault(
            f"Docker Engine {facts.server} is too old, >= {dotted(MIN_ENGINE)} is needed: {WHY}",
            "upgrade it, or stop it and run `make engine`",
        )
    _judge_buildx(facts)
    root = Path(facts.data_root) if facts.data_root else None
    return EngineInfo(
        client=facts.client or "",
        server=facts.server,
        buildx=facts.buildx or "",
        containerd_store=facts.containerd_store,
        data_root=root,
        free_bytes=_free_bytes(root) if root and _is_local(facts.endpoint) else None,
    )


def _judge_client(facts: EngineFacts, buildkit: str | None) -> None:
    if facts.client is None:
        raise EnvironmentFault(
            "there is no docker command on PATH", "install it (as root on Debian or Ubuntu: `make engine`)"
        )
    if facts.podman or _served_by_podman(facts):
        raise EnvironmentFault(
            f"`docker` here is Podman {facts.server or facts.client}, which has no buildx",
            "put Docker's own client first on PATH, unset DOCKER_HOST, then run `make engine`",
        )
    if buildkit is not None and buildkit.lower() in ("0", "false"):
        raise EnvironmentFault(
            f"DOCKER_BUILDKIT={buildkit} asks for the classic builder, ortimg needs BuildKit: {WHY}",
            "unset DOCKER_BUILDKIT",
        )


def _judge_buildx(facts: EngineFacts) -> None:
    if not at_least(facts.buildx, MIN_BUILDX):
        found = (
            f"buildx {facts.buildx} is too old"
            if facts.buildx
            else "the docker client finds no buildx plugin"
        )
        raise EnvironmentFault(f"{found}, >= {dotted(MIN_BUILDX)} is needed: {WHY}", "run `make engine`")


def require_free_space(path: Path, need_bytes: int, what: str = "") -> None:
    """Raises EnvironmentFault, with need and have in the message, where `path` has less free bytes."""
    have = _free_bytes(path)
    if have is not None and have < need_bytes:
        raise EnvironmentFault(
            f"{what or path} needs {need_bytes / _GB:.1f} GB free, {path} has {have / _GB:.1f} GB",
            "free some (`ortimg prune` gives back what ortimg keeps), or put it on a larger disk",
        )


def _free_bytes(path: Path) -> int | None:
    """Free bytes on the disk of `path` or of the nearest parent that exists; None where nobody may look."""
    for folder in (path, *path.parents):
        try:
            return shutil.disk_usage(folder).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None


def _is_local(endpoint: str | None) -> bool:
    return endpoint is None or endpoint.startswith("unix://")


def _served_by_podman(facts: EngineFacts) -> bool:
    """Whether Podman's service answers Docker's client. Only asked where the version looks like Podman's."""
    version = parse_version(facts.server or "")
    if version is None or version[0] >= 17:  # Docker Engine went from 1.13 to 17.03; Podman is at 1 to 6
        return False
    done = subprocess.run(
        ["docker", "version", "--format", "{{json .Server}}"], capture_output=True, text=True, check=False
    )
    return "podman" in done.stdout.lower()
