"""Jars by the `mvn` client: mirrors, proxies and credentials of the user's Maven settings hold.

Maven's local repository is not made for several processes, and a JVM takes memory: one `mvn` at a time.
"""

from __future__ import annotations

import os
import threading

import msgspec

from ortimg.core.model import MavenSource, Origin, OrtRelease
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, Entry, Say, sha256_of
from ortimg.inputs.download import HashMismatch, Progress, Unreachable
from ortimg.inputs.process import ProgramFailedError, folder_size, need, run
from ortimg.inputs.repack import repack

JAR_BYTES = 500_000_000  # more than any jar measured (446 MB)
# -C: a jar whose checksum file disagrees is an error, not a warning
_MVN = ("-B", "-q", "-C", "dependency:get", "-Dtransitive=false")
_JVM = "-Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # starts sooner, stays small; the jar is streamed


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
    group, artifact, version = source.coordinates.split(":")
    file = f"{artifact}-{version}.jar"
    with cache.workdir(JAR_BYTES * 4) as work:
        with turns.mvn, cache.locked("maven"):
            try:
                mvn = need("mvn", "maven", cache=cache, say=say, stop=stop)
            except EnvironmentFault as error:  # the wheel may still be had
                raise Unreachable(error.message, error.hint) from error
            repository = cache.root / "m2"  # keeps Maven's own plug-ins for the next jar
            folder = repository.joinpath(*group.split("."), artifact, version)
            command = (
                mvn,
                *_MVN,
                f"-Dartifact={source.coordinates}",
                f"-Dmaven.repo.local={repository}",
            )

            def tick() -> None:
                if progress is not None:
                    progress(folder_size(folder), None)

            options = f"{os.environ.get('MAVEN_OPTS', '')} {_JVM}".strip()
            try:
                run(command, stop=stop, env={"MAVEN_OPTS": options}, tick=tick)
            except ProgramFailedError as error:
                raise Unreachable(
                    f"mvn cannot get {source.coordinates}: {error.tail}",
                    "check the network and the mirrors in ~/.m2/settings.xml",
                ) from error
            jar = work / file
            try:
                (folder / file).replace(jar)
            except FileNotFoundError as error:
                raise EnvironmentFault(f"mvn ended well, and {folder / file} is not there") from error
        found = sha256_of(jar)
        if source.sha256 is not None and found != source.sha256:
            raise HashMismatch(source.coordinates, source.sha256, found)
        with turns.unpack:
            return repack(cache, name(release), jar, found, release, Origin.MAVEN)
