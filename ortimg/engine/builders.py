"""The buildx builder of a build: what kind it is, and whether it can do what the Dockerfiles ask.

A builder of the driver `docker` is the engine's own and sees its images by name. Any other one
(docker-container, remote, kubernetes) has a store of its own: https://docs.docker.com/build/builders/drivers/
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from ortimg.core.problems import quote
from ortimg.engine.versions import MIN_BUILDKIT, WHY, at_least, dotted, parse_version
from ortimg.errors import EnvironmentFault

BOOT_LIMIT = 180.0  # seconds: a container or a pod may have to be started, its image pulled
OWN_DRIVER = "docker"
PLATFORM = "linux/amd64"


@dataclass(frozen=True)
class BuilderInfo:
    """What `docker buildx inspect` says of a builder."""

    name: str
    driver: str
    buildkit: str | None  # None: no node runs
    platforms: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    fault: str | None = None  # why no node runs, in buildx's own words

    @property
    def own(self) -> bool:
        """Whether it is the engine's own, which shares the engine's images."""
        return self.driver == OWN_DRIVER


def ask_builder(name: str) -> BuilderInfo:
    """Starts the builder if need be and asks it. Raises EnvironmentFault where there is none of that name."""
    command = ["docker", "buildx", "inspect", "--bootstrap", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOOT_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(
            f"builder {name} did not start within {BOOT_LIMIT:.0f} s", f"see `docker buildx inspect {name}`"
        ) from None
    info = read_inspect(done.stdout)
    if info is None:
        # Where starting fails, some drivers print the error alone.
        again = subprocess.run([*command[:3], name], capture_output=True, text=True, timeout=60, check=False)
        info, said = read_inspect(again.stdout), _last(done.stderr) or _last(again.stderr)
        if info is None:
            raise EnvironmentFault(f"builder {quote(name)}: {said}", "`docker buildx ls` shows the builders")
        return BuilderInfo(info.name, info.driver, None, fault=info.fault or said)
    return info


def read_inspect(text: str) -> BuilderInfo | None:
    """Reads the output of `docker buildx inspect`; None where it tells of no builder.

    Versions before 0.13 write `Buildkit:`, later ones `BuildKit version:`. The oldest node counts.
    """
    rows = re.findall(r"^(\w[\w ]*?):[ \t]+(\S.*?)[ \t]*$", text, re.MULTILINE)
    fields: dict[str, list[str]] = {}
    for key, value in rows:
        fields.setdefault(key.lower(), []).append(value)
    if "driver" not in fields or "name" not in fields:
        return None
    versions = fields.get("buildkit version") or fields.get("buildkit") or []
    return BuilderInfo(
        name=fields["name"][0],
        driver=fields["driver"][0],
        buildkit=min(versions, key=lambda text: [int(n) for n in re.findall(r"\d+", text)][:3], default=None),
        platforms=tuple(name.strip(" *") for row in fields.get("platforms", ()) for name in row.split(",")),
        endpoints=tuple(fields.get("endpoint", ())),
        fault=next(iter(fields.get("error", ())), None),
    )


def judge_builder(info: BuilderInfo) -> BuilderInfo:
    """Raises EnvironmentFault, before anything is built, for a builder that cannot do it."""
    if info.buildkit is None:
        raise EnvironmentFault(
            f"builder {info.name} ({info.driver}) does not run: {info.fault or 'it gives no version'}",
            f"see `docker buildx inspect --bootstrap {info.name}`",
        )
    # A build without version information, such as Debian's, calls itself v0.0.0+unknown: it is tried.
    if not at_least(info.buildkit, MIN_BUILDKIT) and parse_version(info.buildkit) != (0, 0, 0):
        raise EnvironmentFault(
            f"builder {info.name} is BuildKit {info.buildkit}, >= {dotted(MIN_BUILDKIT)} is needed: {WHY}",
            "make one with a newer BuildKit: `docker buildx create --driver-opt image=moby/buildkit:…`",
        )
    if info.platforms and not any(name.startswith(PLATFORM) for name in info.platforms):
        raise EnvironmentFault(
            f"builder {info.name} builds for {', '.join(info.platforms)}, ortimg's images are {PLATFORM}",
            f"choose one of `docker buildx ls` that has {PLATFORM}",
        )
    return info


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else ""
