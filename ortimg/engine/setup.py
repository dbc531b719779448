"""`make engine`: use a good engine as it is, install and start a missing one, and end only what was started.

Installing happens as root on Debian and Ubuntu (x86-64). Anywhere else a person is told what to run.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ortimg.engine import apt, daemon
from ortimg.engine.check import judge
from ortimg.engine.info import EngineFacts, ask_engine
from ortimg.engine.versions import MIN_BUILDX, MIN_ENGINE, at_least, dotted
from ortimg.errors import EnvironmentFault

Say = Callable[[str], None]

_NEEDED = f"Docker Engine >= {dotted(MIN_ENGINE)} with buildx >= {dotted(MIN_BUILDX)}"
_NEWER = {"bookworm": "trixie"}  # Debian whose own Docker is too old, and the one to take it from
_POLICY = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True)
class Machine:
    """What decides whether ortimg may install an engine here."""

    distribution: str  # ID of os-release
    codename: str
    architecture: str
    root: bool

    @property
    def installable(self) -> bool:
        return self.root and self.distribution in ("debian", "ubuntu") and self.architecture == "x86_64"


def this_machine(os_release: Path = Path("/etc/os-release")) -> Machine:
    """Reads os-release(5), the architecture and the user."""
    try:
        pairs = (line.partition("=")[::2] for line in os_release.read_text().splitlines())
        release = {key: value.strip("\"'") for key, value in pairs}
    except OSError:
        release = {}
    return Machine(
        distribution=release.get("ID", "unknown"),
        codename=release.get("VERSION_CODENAME", ""),
        architecture=platform.machine(),
        root=os.geteuid() == 0,
    )


def start_engine(say: Say) -> EngineFacts:
    """Sees to a good engine; idempotent. Raises EnvironmentFault with the commands a person must run."""
    facts = ask_engine()
    if _good(facts):
        say(f"engine {facts.server} with buildx {facts.buildx} is used as it is")
        return facts
    if facts.podman or facts.forbidden:
        judge(facts)
    if facts.endpoint:
        state = f"it is engine {facts.server}, buildx {facts.buildx}" if facts.server else facts.fault
        raise EnvironmentFault(
            f"DOCKER_HOST={facts.endpoint} is set and gives no {_NEEDED}: {state}",
            "start that engine, or unset DOCKER_HOST and run `make engine` again",
        )
    if facts.server and not at_least(facts.server, MIN_ENGINE):
        raise EnvironmentFault(
            f"engine {facts.server} is running, {_NEEDED} is needed",
            "stop it (`systemctl stop docker docker.socket`), then run `make engine` again",
        )
    machine = this_machine()
    packages = missing_packages(facts, _dockerd_version())
    if not machine.root or (packages and not machine.installable):
        raise EnvironmentFault(*what_a_person_must_run(machine, bool(packages)))
    if packages:
        install(packages, machine, say)
        facts = ask_engine()
    if not facts.server:
        pid = daemon.start_daemon(lambda: ask_engine().server is not None)
        say(f"started dockerd (process {pid}, log {daemon.LOG_FILE})")
    facts = ask_engine()
    if not _good(facts):
        raise EnvironmentFault(
            f"engine {facts.server}, buildx {facts.buildx} are there, {_NEEDED} is needed",
            "an older one may come first on PATH or among the docker plugins",
        )
    return facts


def stop_engine(say: Say) -> None:
    """Ends the engine if ortimg started it; says so and leaves it alone if not."""
    pid = daemon.our_pid()
    if pid is not None:
        daemon.stop_daemon(pid)
        say(f"ended dockerd (process {pid})")
    elif (facts := ask_engine()).server:
        say(f"engine {facts.server} is running, but ortimg did not start it: left alone")
    else:
        say("no engine is running")


def missing_packages(facts: EngineFacts, dockerd: str | None) -> tuple[str, ...]:
    """The Debian packages that would make `facts` a good engine; `dockerd` is the installed one's version."""
    wanted = {
        "docker.io": not facts.server and not at_least(dockerd, MIN_ENGINE),
        "docker-cli": facts.client is None,
        "docker-buildx": not at_least(facts.buildx, MIN_BUILDX),
    }
    return tuple(package for package in apt.DOCKER_PACKAGES if wanted[package])


def what_a_person_must_run(machine: Machine, install_needed: bool) -> tuple[str, str]:
    """Message and commands for a machine on which ortimg installs nothing."""
    if not install_needed:
        return "the engine is installed but not running, and only root may start it", "run: sudo make engine"
    if machine.distribution in ("debian", "ubuntu") and machine.architecture == "x86_64":
        return f"{_NEEDED} is needed, and only root may install it", "run: sudo make engine"
    where = f"{machine.distribution} {machine.architecture}"
    commands = {
        "fedora": "sudo dnf install moby-engine docker-buildx && sudo systemctl start docker",
        "arch": "sudo pacman -S docker docker-buildx && sudo systemctl start docker",
        "alpine": "sudo apk add docker docker-cli-buildx && sudo rc-service docker start",
        "debian": "sudo apt-get install docker.io docker-buildx && sudo systemctl start docker",
        "ubuntu": "sudo apt-get install docker.io docker-buildx && sudo systemctl start docker",
    }
    known = commands.get(machine.distribution)
    how = (
        f"run: {known}"
        if known
        else "install it as https://docs.docker.com/engine/install/ says and start it"
    )
    return f"{_NEEDED} is needed; ortimg installs it on x86-64 Debian and Ubuntu only, this is {where}", how


def install(packages: Sequence[str], machine: Machine, say: Say) -> None:
    """Installs `packages` by apt; takes them from the next Debian where the own ones are too old."""
    newer = _NEWER.get(machine.codename) if machine.distribution == "debian" else None
    say(
        f"installing {' '.join(packages)}"
        + (f" of Debian {newer}, the rest from {machine.codename}" if newer else "")
    )
    with tempfile.TemporaryDirectory(prefix="ortimg-apt-") as name, _services_stay_down():
        folder = Path(name)
        folder.chmod(0o755)  # apt downloads as the user _apt
        options: tuple[str, ...] = ()
        if newer:
            sources = apt.derive_sources(apt.machine_configuration(), machine.codename, newer)
            if not sources:
                raise EnvironmentFault(
                    f"apt has no source for Debian {machine.codename} main, so no mirror is known",
                    "add one under /etc/apt/sources.list.d, then run `make engine` again",
                )
            options = apt.private_options(folder)
            (folder / "sources" / "ortimg.sources").write_text(sources)
            (folder / "preferences").write_text(apt.derive_pins(newer))
        _apt_get((*options, "update"))
        _apt_get((*options, "install", "--yes", "--no-install-recommends", *packages))


def _apt_get(arguments: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["apt-get", "-q", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith(("E:", "Err"))]
        raise EnvironmentFault(
            f"apt-get {arguments[-1] if 'update' in arguments else 'install'} failed: "
            + "; ".join(said[:3] or done.stderr.splitlines()[-1:])
        )


@contextmanager
def _services_stay_down() -> Iterator[None]:
    """Keeps the package from starting a dockerd of its own, which would lack the containerd store.

    https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt: status 101 forbids the action.
    """
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)


def _good(facts: EngineFacts) -> bool:
    return at_least(facts.server, MIN_ENGINE) and at_least(facts.buildx, MIN_BUILDX) and not facts.podman


def _dockerd_version() -> str | None:
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin")
    if program is None:
        return None
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
