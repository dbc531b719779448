"""Debian root file systems made on this machine with mmdebstrap, where Docker Hub does not answer.

Packages come from the machine's own apt configuration: the same mirrors, proxies and keys.
A bootstrapped root is recorded (its package list), not pinned: Debian's archive moves.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import threading
from pathlib import Path

from ortimg.core.model import Origin
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, Entry, Say, sha256_of
from ortimg.inputs.process import ProgramFailedError, need, run
from ortimg.inputs.wheels import pip

ROOT_BYTES = 1_500_000_000  # while it is made: the folder, the packages and the tar of the largest one
EPOCH = 1_735_689_600  # 2025-01-01: files that the bootstrap itself wrote get this time
BASE_PACKAGES = ("ca-certificates", "libgcc-s1", "libstdc++6", "zlib1g")
# bookworm's init-system-helpers asks for usrmerge, which brings all of Perl; this one does too, and is empty.
SUITE_PACKAGES = {"bookworm": ("usr-is-merged",)}
MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"
TOOLS_SUITE, TOOLS_PYTHON = "bookworm", "3.11"
TOOLS_PACKAGES = ("ca-certificates", "gzip", "python3", "tar")
# What Debian's own slim images leave out too; copyright files stay.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*")
_ENTRY = re.compile(r"^'(?P<uri>[^']+?)/?dists/(?P<suite>[^/']+)/InRelease'")
_KEPT_OPTIONS = (
    "Acquire::http",
    "Acquire::https",
    "Acquire::Check-",
    "Acquire::ForceIPv",
    "Acquire::Retries",
)


def base_root(
    cache: Cache, name: str, suite: str, packages: tuple[str, ...], stop: threading.Event, say: Say
) -> Entry:
    """A slim root of `suite` with what ONNX Runtime's libraries need of a distribution, and `packages`."""
    wanted = (*BASE_PACKAGES, *(package for package in packages if package not in BASE_PACKAGES))
    return _bootstrap(cache, name, suite, wanted, (), stop, say)


def tools_name(requirements: Path) -> str:
    """Name in the cache of a tools root with these requirements."""
    return tools_name_of(sha256_of(requirements))


def tools_name_of(sha256: str) -> str:
    """Name in the cache of a tools root whose requirements have this hash."""
    return f"base/tools-{sha256[:16]}/bootstrap"


def tools_root(cache: Cache, name: str, requirements: Path, stop: threading.Event, say: Say) -> Entry:
    """A root with Python and the hashed requirements: stands in for the image of the `tools` stage."""
    target = f'"$1/usr/local/lib/python{TOOLS_PYTHON}/dist-packages"'
    install = (
        f"{shlex.join(pip())} install --quiet --no-compile --no-cache-dir --disable-pip-version-check "
        f"--require-hashes --only-binary=:all: --python-version {TOOLS_PYTHON} "
        f"--target {target} -r {shlex.quote(str(requirements.resolve()))}"
    )
    return _bootstrap(cache, name, TOOLS_SUITE, TOOLS_PACKAGES, (install,), stop, say)


def _bootstrap(
    cache: Cache,
    name: str,
    suite: str,
    packages: tuple[str, ...],
    hooks: tuple[str, ...],
    stop: threading.Event,
    say: Say,
) -> Entry:
    if os.geteuid() != 0:
        raise EnvironmentFault(
            f"a {suite} root file system can only be made as root",
            "run as root, or let the engine reach Docker Hub",
        )
    sources = machine_sources(suite, stop)
    mmdebstrap = need("mmdebstrap", "mmdebstrap", cache=cache, say=say, stop=stop)
    with cache.workdir(ROOT_BYTES) as work:
        target, listing, options = work / "root.tar", work / "packages.tsv", work / "apt.conf"
        options.write_text(machine_options(stop))
        temporary = work / "tmp"
        temporary.mkdir(mode=0o755)
        command = (
            # /proc and /sys are mounted in the root meanwhile: not where a kill could leave them behind
            *("unshare", "--mount"),
            mmdebstrap,
            *("--mode=root", "--variant=minbase", "--format=tar", "--quiet"),
            f"--include={','.join((*packages, *SUITE_PACKAGES.get(suite, ())))}",
            f"--hook-dir={MERGED_USR}",
            f"--aptopt={options}",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            # proxies and the like are this machine's own affair and must not travel in an image
            '--customize-hook=rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"',
            '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"',
            r"""--customize-hook=sed -i -E 's#(://)[^/@ ]+@#\1#' "$1/etc/apt/sources.list" """.strip(),
            *(f"--customize-hook={hook}" for hook in hooks),
            f'--customize-hook=dpkg-query --admindir="$1/var/lib/dpkg" -W > {shlex.quote(str(listing))}',
            suite,
            str(target),
            *sources,
        )
        say(f"bootstrapping {suite} with mmdebstrap")
        env = {"SOURCE_DATE_EPOCH": str(EPOCH), "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"}
        try:
            run(command, stop=stop, env=env)
        except ProgramFailedError as error:
            raise EnvironmentFault(
                f"mmdebstrap cannot make {suite}: {error.tail}", "check apt's sources and the network"
            ) from error
        rows = [line.split("\t") for line in listing.read_text().splitlines()]
        record = json.dumps({"suite": suite, "packages": dict(rows)}, indent=1, sort_keys=True) + "\n"
        packages_file = work / "packages.json"
        packages_file.write_text(record)
        cache.adopt(f"{name}-packages", packages_file, sha256=None, origin=Origin.BOOTSTRAP)
        return cache.adopt(name, target, sha256=None, origin=Origin.BOOTSTRAP, details={"suite": suite})


def machine_sources(suite: str, stop: threading.Event) -> tuple[str, ...]:
    """Lines of a sources.list for `suite`, made from this machine's own: main, updates and security.

    Raises `EnvironmentFault` where the machine has no Debian sources.
    """
    try:
        listed = run(("apt-get", "update", "--print-uris"), stop=stop, env={"LC_ALL": "C"})
    except (ProgramFailedError, FileNotFoundError) as error:
        raise EnvironmentFault(
            f"{suite} can only be bootstrapped on Debian", "let the engine reach Docker Hub"
        ) from error
    lines = derive_sources(listed, host_codename(), suite)
    if not lines:
        raise EnvironmentFault(
            f"apt has no source of {host_codename() or 'Debian'} to make {suite} from",
            "see /etc/apt/sources.list*",
        )
    return lines


def derive_sources(listed: str, codename: str, suite: str) -> tuple[str, ...]:
    """`apt-get update --print-uris` of a `codename` machine as sources.list lines for `suite`.

    Entries of other suites (third parties) are left out.
    """
    lines: list[str] = []
    for row in listed.splitlines():
        match = _ENTRY.match(row)
        if match is None:
            continue
        name, _, pocket = match["suite"].partition("-")
        if name != codename or pocket not in ("", "updates", "security"):
            continue
        line = f"deb {match['uri']} {suite}{'-' if pocket else ''}{pocket} main"
        if line not in lines:
            lines.append(line)
    return tuple(lines)


def machine_options(stop: threading.Event) -> str:
    """The machine's apt settings about proxies and checks, in apt.conf's own form."""
    dump = run(("apt-config", "dump"), stop=stop)
    return "".join(f"{line}\n" for line in dump.splitlines() if line.startswith(_KEPT_OPTIONS))


def host_codename() -> str:
    """VERSION_CODENAME of this machine, empty where unknown."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    match = re.search(r"^VERSION_CODENAME=\"?(\w+)", text, re.MULTILINE)
    return match[1] if match else ""
