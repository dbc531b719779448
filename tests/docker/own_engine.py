"""A second, real dockerd on a small disk of its own, so that a test may fill that disk or kill the daemon.

It has a network namespace of its own: the engine that everything else uses keeps its bridge. Its containerd
is its own child.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_START_LIMIT = 60.0  # seconds
_MOUNT = "size=4g"  # of memory, as far as it is used: a build wants to see so much room


@dataclass
class OwnEngine:
    """The daemon, dead or alive, and its folder."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None
    pids: list[int] = field(default_factory=list)  # dockerd and its containerd

    @property
    def host(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.folder}/d.sock"

    @property
    def disk(self) -> Path:
        """Where its images, layers and builds are: a file system of its own."""
        return self.folder / "data"

    def docker(self, *words: str) -> str:
        done = subprocess.run(
            ["docker", "--host", self.host, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def images(self, repository: str) -> set[str]:
        """Tags of `repository`."""
        return set(self.docker("images", "--format", "{{.Tag}}", repository).split())

    def start(self) -> None:
        words = ["dockerd", f"--config-file={self.folder}/daemon.json", f"--pidfile={self.folder}/d.pid"]
        # A killed daemon leaves these, and neither starts while another process has the number in them.
        for left in (self.folder / "d.pid", self.folder / "exec" / "containerd" / "containerd.pid"):
            left.unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        limit = time.monotonic() + _START_LIMIT
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < limit, (self.folder / "log").read_text()
            time.sleep(0.1)
        self.pids = [self.process.pid, *_children(self.process.pid)]

    def answers(self) -> bool:
        command = ["docker", "--host", self.host, "version", "--format", "{{.Server.Version}}"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def kill(self) -> None:
        """As a crash does: nothing is written, nobody is told."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        self.kill()

    def load(self, references: Sequence[str]) -> None:
        """Images of the engine that everything else uses."""
        with subprocess.Popen(["docker", "save", *references], stdout=subprocess.PIPE) as saved:
            command = ["docker", "--host", self.host, "load", "--quiet"]
            subprocess.run(command, stdin=saved.stdout, check=True, capture_output=True)

    def resize(self, size: int) -> None:
        """Give the disk `size` bytes."""
        command = ["mount", "-o", f"remount,size={size}", str(self.disk)]
        subprocess.run(command, check=True, capture_output=True)

    def leave_free(self, size: int) -> None:
        """Make the disk so small that `size` bytes of it are free."""
        self.resize(shutil.disk_usage(self.disk).used + size)

    def _wait(self) -> None:
        if self.process is not None:
            self.process.wait()
        limit = time.monotonic() + 10
        while any(_alive(pid) for pid in self.pids) and time.monotonic() < limit:
            time.sleep(0.05)


@contextmanager
def own_engine(folder: Path) -> Iterator[OwnEngine]:
    """An empty engine until the end of the block. Only root may start one."""
    engine = OwnEngine(folder)
    engine.disk.mkdir()
    settings = {
        "data-root": str(engine.disk),
        "exec-root": f"{folder}/exec",
        "hosts": [engine.host],
        "bridge": "none",
        "iptables": False,
        "features": {"containerd-snapshotter": True},
    }
    (folder / "daemon.json").write_text(json.dumps(settings))
    subprocess.run(["mount", "-t", "tmpfs", "-o", _MOUNT, "tmpfs", str(engine.disk)], check=True)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        for mount in reversed(_mounts_below(folder)):
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [mount for line in lines if (mount := line.split()[1]).startswith(f"{folder}/")]
