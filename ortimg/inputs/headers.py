"""Headers of ONNX Runtime where its release archive cannot be reached: Debian's, of the same version.

Debian builds its library without CUDA, but the headers are the same for every build. apt gets lists of its
own for the one package, from the machine's own mirror; it is unpacked and never installed.
"""

from __future__ import annotations

import re
import tarfile
import threading
from pathlib import Path, PurePosixPath

from ortimg.core.model import DebianHeaders, Origin, OrtRelease
from ortimg.engine.apt import machine_configuration, one_suite, private_options
from ortimg.inputs.bootstrap import host_codename
from ortimg.inputs.cache import Cache, Entry, Say, sha256_of
from ortimg.inputs.download import Unreachable, WrongFile
from ortimg.inputs.process import ProgramFailedError, run
from ortimg.inputs.repack import Member, write_archive

LISTS_BYTES = 200_000_000  # a suite's lists, packed and unpacked
C_API = "include/onnxruntime_c_api.h"
_INSIDE = PurePosixPath("usr/include/onnxruntime")
_API = re.compile(rb"^#define ORT_API_VERSION (\d+)\s*$", re.MULTILINE)


def name(row: OrtRelease) -> str:
    """Name in the cache."""
    return f"headers/{row.version}/debian"


def fetch_debian_headers(
    cache: Cache, row: OrtRelease, source: DebianHeaders, stop: threading.Event, say: Say
) -> Entry:
    """An archive like the release's own, with nothing but its `include` folder.

    Raises `Unreachable` where this machine has no Debian mirror or the mirror another version, `WrongFile`
    where the headers are not those of the release.
    """
    sources = one_suite(machine_configuration(), host_codename(), source.suite)
    if not sources:
        raise Unreachable("this machine's apt has no Debian mirror", None)
    with cache.workdir(LISTS_BYTES) as work:
        options = private_options(work / "apt")
        (work / "apt" / "sources" / "debian.sources").write_text(sources)
        (work / "apt" / "preferences").write_text("")
        say(f"debian: reading the lists of {source.suite}")
        try:
            package = _download(row, source, options, work, stop)
        except (ProgramFailedError, FileNotFoundError) as error:
            tail = error.tail if isinstance(error, ProgramFailedError) else str(error)
            raise Unreachable(f"apt cannot bring {source.package}: {tail}", None) from error
        members = _headers(package, row, work, stop)
        packed = write_archive(work / "headers.tgz", f"onnxruntime-headers-{row.version}", members)
        return cache.adopt(
            name(row),
            work / "headers.tgz",
            sha256=packed.sha256,
            origin=Origin.DEBIAN,
            details={
                "tar_sha256": packed.tar_sha256,
                "source_sha256": sha256_of(package),
                "package": package.name,
            },
        )


def _download(
    row: OrtRelease, source: DebianHeaders, options: tuple[str, ...], work: Path, stop: threading.Event
) -> Path:
    """The .deb, checked by apt against the archive's signature."""
    env = {"LC_ALL": "C"}
    # The program runs as this user, so that it can write where nobody else can.
    apt = ("apt-get", "-q", "-o", "APT::Sandbox::User=", *options)
    run((*apt, "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=no", "update"), stop=stop, env=env)
    listed = run(("apt-cache", *options, "madison", source.package), stop=stop, env=env)
    versions = [fields[1].strip() for line in listed.splitlines() if len(fields := line.split("|")) > 2]
    wanted = next((version for version in versions if upstream_part(version) == row.version), None)
    if wanted is None:
        there = ", ".join(versions) or "none"
        raise Unreachable(
            f"Debian {source.suite} has {source.package} {there}, not {row.version}",
            "the release archive has the headers",
        )
    folder = work / "package"
    folder.mkdir()
    script = 'cd "$0" && exec "$@"'  # apt-get writes to the working directory
    run(("sh", "-c", script, str(folder), *apt, "download", f"{source.package}={wanted}"), stop=stop, env=env)
    return next(folder.glob("*.deb"))


def upstream_part(version: str) -> str:
    """`1.23.2` of `1:1.23.2+dfsg-6.1` (deb-version(7))."""
    return re.split(r"[+~-]", version.rpartition(":")[2], maxsplit=1)[0]


def _headers(package: Path, row: OrtRelease, work: Path, stop: threading.Event) -> list[Member]:
    tar = work / "files.tar"
    script = 'exec dpkg-deb --fsys-tarfile "$0" >"$1"'
    run(("sh", "-c", script, str(package), str(tar)), stop=stop)
    members: list[Member] = []
    with tarfile.open(tar) as archive:
        for info in archive:
            path = PurePosixPath(info.name)
            if info.isreg() and path.is_relative_to(_INSIDE):
                stream = archive.extractfile(info)
                data = stream.read() if stream is not None else b""
                members.append(Member(name=f"include/{path.relative_to(_INSIDE)}", data=data))
    api = next((member.data for member in members if member.name == C_API), None)
    found = _API.search(api or b"")
    if found is None or found[1].decode() != row.version.split(".")[1]:
        raise WrongFile(f"{package.name}: its headers are not those of ONNX Runtime {row.version}")
    return members
