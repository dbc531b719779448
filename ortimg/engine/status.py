"""The lines of `ortimg engine status`."""

from __future__ import annotations

import subprocess

from ortimg.engine import daemon
from ortimg.engine.info import EngineFacts, ask_engine
from ortimg.engine.versions import MIN_BUILDX, MIN_ENGINE, at_least, dotted


def status_lines() -> tuple[str, ...]:
    """One line each for client, server, buildx, image store and builder."""
    facts = ask_engine()
    return (
        f"client   {facts.client or 'missing'}",
        f"server   {_server(facts)}",
        f"buildx   {_with_minimum(facts.buildx, dotted(MIN_BUILDX), at_least(facts.buildx, MIN_BUILDX))}",
        f"store    {_store(facts)}",
        f"builder  {_builder(facts)}",
    )


def _server(facts: EngineFacts) -> str:
    if not facts.server:
        return f"none: {facts.fault}"
    ours = f", started by ortimg (process {pid})" if (pid := daemon.our_pid()) and not facts.endpoint else ""
    return _with_minimum(facts.server, dotted(MIN_ENGINE), at_least(facts.server, MIN_ENGINE)) + ours


def _with_minimum(version: str | None, minimum: str, good: bool) -> str:
    return version if version and good else f"{version or 'missing'} (>= {minimum} is needed)"


def _store(facts: EngineFacts) -> str:
    if not facts.server:
        return "unknown"
    return f"{'containerd' if facts.containerd_store else 'classic'} ({facts.data_root})"


def _builder(facts: EngineFacts) -> str:
    if not facts.server or not facts.buildx:
        return "unknown"
    done = subprocess.run(
        ["docker", "buildx", "inspect"], capture_output=True, text=True, timeout=30, check=False
    )
    fields = dict(
        line.split(":", 1) for line in done.stdout.splitlines() if ":" in line and line[0] not in " \t"
    )
    if "Driver" not in fields:
        return f"unknown: {done.stderr.strip()}"
    return f"{fields['Name'].strip()} (driver {fields['Driver'].strip()})"
