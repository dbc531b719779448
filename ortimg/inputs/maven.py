"""Jars by the `mvn` client: mirrors, proxies and credentials of the user's Maven settings hold.

Maven's local repository is not made for several processes, and a JVM takes memory: one `mvn` at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path

import msgspec

from ortimg.core.model import MavenSource, Origin, OrtRelease
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, Entry, Say, sha256_of
from ortimg.inputs.download import HashMismatch, Progress, Unreachable
from ortimg.inputs.process import ProgramFailedError, folder_size, last_lines, need, run
from ortimg.inputs.repack import repack

JAR_BYTES = 500_000_000  # more than any jar measured (446 MB)
# -C: a jar whose checksum file disagrees is an error, not a warning
_MVN = ("-B", "-q", "-C", "dependency:get", "-Dtransitive=false")
_JVM = "-Xmx64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # starts sooner, stays small; the jar is streamed


class Turns(msgspec.Struct, frozen=True, kw_only=True):
    """Whose turn it is: downloading and repacking overlap, each no more often than the machine bears."""

    mvn: threading.Semaphore
    unpack: threading.Semaphore


def name(release: OrtRelease) -> str:
    """Name of the repacked archive in the cache."""
    return f"ort/{release.key}/maven"


def fetch_maven(
    cache: Cache,
    release: OrtRelease,
    source: MavenSource,
    *,
    stop: threading.Event,
    say: Say,
    progress: Progress | None = None,
    turns: Turns,
) -> Entry:
    """The jar's libraries in the release archive's layout.

    The jar itself is not kept: it is larger than what is taken from it, and its hash is in the entry.
    Raises `Unreachable`, `HashMismatch`, `WrongFile`, `EnvironmentFault`.
    """
    with cache.workdir(JAR_BYTES * 4) as work:
        jar = work / "package.jar"
        download_jar(cache, source.coordinates, jar, stop=stop, say=say, progress=progress, turns=turns)
        found = sha256_of(jar)
        if source.sha256 is not None and found != source.sha256:
            raise HashMismatch(source.coordinates, source.sha256, found)
        with turns.unpack:
            return repack(cache, name(release), jar, found, release, Origin.MAVEN)


def download_jar(
    cache: Cache,
    coordinates: str,
    target: Path,
    *,
    stop: threading.Event,
    say: Say,
    progress: Progress | None = None,
    turns: Turns,
) -> None:
    """Bring the jar `group:artifact:version` to `target`, in a `workdir`. Raises `Unreachable`."""
    group, artifact, version = coordinates.split(":")
    repository = cache.root / "m2"  # keeps Maven's own plug-ins for the next jar
    folder = repository.joinpath(*group.split("."), artifact, version)

    def tick() -> None:
        if progress is not None:
            progress(folder_size(folder), None)

    with turns.mvn, cache.locked("maven", stop):
        try:
            mvn = need("mvn", "maven", cache=cache, say=say, stop=stop)
        except EnvironmentFault as error:  # the wheel may still be had
            raise Unreachable(error.message, error.hint) from error
        command = (mvn, *_MVN, f"-Dartifact={coordinates}", f"-Dmaven.repo.local={repository}")
        options = f"{os.environ.get('MAVEN_OPTS', '')} {_JVM}".strip()
        try:
            run(command, stop=stop, env={"MAVEN_OPTS": options}, tick=tick)
            (folder / f"{artifact}-{version}.jar").replace(target)
        except ProgramFailedError as error:
            raise Unreachable(
                f"mvn cannot get {coordinates}: {_told(error.output)}",
                "check the network and the mirrors in ~/.m2/settings.xml",
            ) from error
        except FileNotFoundError as error:
            raise Unreachable(f"mvn ended well, and brought no jar for {coordinates}") from error
        finally:
            # also what a failure or a kill left there: Maven would remember a failure for a day
            shutil.rmtree(folder, ignore_errors=True)


def _told(output: str) -> str:
    """The one line of Maven's many that names the cause: its first error, without the path to it."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    match = re.search(r"^\[ERROR\] (?:Failed to execute goal .*? on project \S+: )?(.+)", plain, re.MULTILINE)
    return match[1][:400] if match else last_lines(plain)
