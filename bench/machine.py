"""What a run ran on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

import msgspec

from bench.daemons import Engine
from bench.disk import write_rate


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that move the seconds."""

    cpu: str
    cores: int
    memory: int  # bytes
    disk_write: int  # bytes a second, one stream, until they are on the disk
    kernel: str
    system: str
    python: str
    engine: dict[str, str]  # version by name: docker, buildx, containerd, runc, registry


def ask(folder: Path, engine: Engine | None) -> Machine:
    """`folder`: on the disk that is used; None: the engine is not asked."""
    return Machine(
        cpu=_field("/proc/cpuinfo", "model name"),
        cores=os.cpu_count() or 1,
        memory=int(_field("/proc/meminfo", "MemTotal").split()[0]) * 1024,
        disk_write=int(write_rate(folder)),
        kernel=platform.release(),
        system=platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        python=platform.python_version(),
        engine=_versions(engine) if engine else {},
    )


def _versions(engine: Engine) -> dict[str, str]:
    answer = json.loads(engine.docker("version", "--format", "{{json .Server}}"))
    found = {"docker": answer["Version"]}
    found |= {row["Name"]: row["Version"] for row in answer.get("Components", []) if row["Name"] != "Engine"}
    found["client"] = engine.docker("version", "--format", "{{.Client.Version}}").strip()
    found["buildx"] = engine.docker("buildx", "version").split()[1]
    registry = subprocess.run(["docker-registry", "--version"], capture_output=True, text=True, check=False)
    found["docker-registry"] = (registry.stdout.split() or ["unknown"])[-1]
    return found


def _field(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"
