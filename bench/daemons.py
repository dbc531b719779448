"""Daemons of a run's own: an engine, a registry, a containerd. Each ends with its block, by its number."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bench.noise import GROUP
from ortimg.errors import EnvironmentFault

_START_LIMIT = 60.0  # seconds


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A dockerd with a data folder of its own."""

    folder: Path

    @property
    def host(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.folder}/d.sock"

    @property
    def data(self) -> Path:
        """Images, layers, builds."""
        return self.folder / "data"

    def environment(self) -> dict[str, str]:
        """For programs that are to use this engine."""
        return {
            **os.environ,
            "DOCKER_HOST": self.host,
            "BUILDX_NO_DEFAULT_ATTESTATIONS": "1",  # a digest of its own with each build otherwise
            "CI": "true",
        }

    def docker(self, *words: str) -> str:
        """What `docker` prints. Raises EnvironmentFault with its words."""
        return call(["docker", *words], self.environment())


class Containerd(msgspec.Struct, frozen=True, kw_only=True):
    """A plain containerd, as a node of a cluster runs it."""

    folder: Path

    @property
    def root(self) -> Path:
        """Contents and snapshots."""
        return self.folder / "root"

    def ctr(self, *words: str) -> str:
        """What `ctr` prints. Raises EnvironmentFault with its words."""
        return call(["ctr", "--address", f"{self.folder}/c.sock", *words], dict(os.environ))


class Registry(msgspec.Struct, frozen=True, kw_only=True):
    """Debian's docker-registry."""

    folder: Path
    port: int

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def stored(self) -> dict[str, int]:
        """Bytes of each blob that it holds, by digest."""
        blobs = (self.folder / "data/docker/registry/v2/blobs").glob("*/*/*/data")
        return {f"sha256:{path.parent.name}": path.stat().st_size for path in blobs}


@contextmanager
def engine(folder: Path, *, containerd_store: bool = True) -> Iterator[Engine]:
    """An empty engine. Raises EnvironmentFault where it does not come up."""
    own = Engine(folder=folder)
    own.data.mkdir(parents=True)
    settings = {
        "data-root": str(own.data),
        "exec-root": f"{folder}/exec",
        "hosts": [own.host],
        "bridge": "none",
        "iptables": False,
        "features": {"containerd-snapshotter": containerd_store},
        "cgroup-parent": f"/{GROUP}",
    }
    (folder / "daemon.json").write_text(json.dumps(settings))
    command = ["dockerd", f"--config-file={folder}/daemon.json", f"--pidfile={folder}/d.pid"]
    with _running(command, folder, lambda: _answers(own)):
        yield own


@contextmanager
def containerd(folder: Path) -> Iterator[Containerd]:
    """An empty containerd."""
    own = Containerd(folder=folder)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'version = 2\nroot = "{own.root}"\nstate = "{folder}/state"\n'
        f'[grpc]\naddress = "{folder}/c.sock"\n[ttrpc]\naddress = "{folder}/c.sock.ttrpc"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
    )
    command = ["containerd", "--config", f"{folder}/config.toml"]
    with _running(command, folder, lambda: _works(own)):
        yield own


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """An empty registry on 127.0.0.1."""
    program = shutil.which("docker-registry")
    if program is None:
        raise EnvironmentFault("docker-registry is not here", "run scripts/install-registry.sh")
    folder.mkdir(parents=True)
    own = Registry(folder=folder, port=free_port())
    settings = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": own.host, "secret": "of the bench"},
    }
    (folder / "config.yml").write_text(json.dumps(settings))  # JSON is YAML
    with _running([program, "serve", str(folder / "config.yml")], folder, lambda: _listens(own.port)):
        yield own


def call(command: Sequence[str], environment: dict[str, str]) -> str:
    """What a program prints on stdout. Raises EnvironmentFault with its last words where it fails."""
    return call_both(command, environment)[0]


def call_both(command: Sequence[str], environment: dict[str, str]) -> tuple[str, str]:
    """What it prints on stdout, and on stderr."""
    done = subprocess.run(command, env=environment, text=True, check=False, capture_output=True)
    if done.returncode != 0:
        words = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise EnvironmentFault(f"{' '.join(command[:4])} … ended with {done.returncode}: {words}")
    return done.stdout, done.stderr


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _running(command: list[str], folder: Path, ready: Callable[[], bool]) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    pids: list[int] = []
    try:
        limit = time.monotonic() + _START_LIMIT
        while not ready():
            if process.poll() is not None or time.monotonic() > limit:
                last = (folder / "log").read_text("utf-8", "replace").splitlines()[-5:]
                raise EnvironmentFault(f"{command[0]} does not come up", "\n".join(last))
            time.sleep(0.1)
        pids = _below(process.pid)
        yield
    finally:
        pids = [*pids, *_below(process.pid)]
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        for pid in (process.pid, *pids):
            if _is_ours(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        process.wait()
        unmount_below(folder)


def _is_ours(pid: int) -> bool:
    """Alive, and of this run's control group: a number may have gone to somebody else meanwhile."""
    try:
        return f"/{GROUP}" in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False


def unmount_below(folder: Path) -> None:
    """What a daemon that ended in a hurry left mounted."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    for mount in reversed([line.split()[1] for line in lines]):
        if mount.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)


def _below(pid: int) -> list[int]:
    """Processes that `pid` started, and those that they started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_below(child)]
    return found


def _answers(own: Engine) -> bool:
    command = ["docker", "--host", own.host, "version", "--format", "{{.Server.Version}}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _works(own: Containerd) -> bool:
    command = ["ctr", "--address", f"{own.folder}/c.sock", "version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
