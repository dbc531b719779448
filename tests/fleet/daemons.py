"""Real builders on this machine that share nothing."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process until the end of the block, ended by its own id."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def builder(folder: Path, name: str, buildkitd: Path) -> Iterator[str]:
    """A buildkitd with an empty root, as a buildx builder of the driver `remote`; gives its name."""
    folder.mkdir()
    socket_path = folder / "buildkitd.sock"
    # Two daemons on one machine: each needs a socket of its own for traces too.
    (folder / "buildkitd.toml").write_text(
        f'root = "{folder}/root"\n'
        f'[grpc]\naddress = ["unix://{socket_path}"]\n'
        f'[otel]\nsocketPath = "{folder}/otel.sock"\n'
        '[worker.oci]\nenabled = true\nnetworkMode = "host"\n'
        "[worker.containerd]\nenabled = false\n"
    )
    command = [str(buildkitd), "--config", str(folder / "buildkitd.toml")]
    with running(command, folder / "log"):
        wait_for(socket_path.exists, "buildkitd")
        create = ["docker", "buildx", "create", "--name", name, "--driver", "remote", f"unix://{socket_path}"]
        subprocess.run(create, check=True, capture_output=True)
        try:
            yield name
        finally:
            subprocess.run(["docker", "buildx", "rm", "--force", name], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


def wait_for(there: Callable[[], bool], what: str, seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < limit, f"{what} did not come up"
        time.sleep(0.1)
