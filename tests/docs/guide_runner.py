"""Runs a page's blocks in its folder, in order, up to the first that does not do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from guide import PYTHON, RUN, Kind, Page, Step, output_matches
from installed import BIN
from readme import ROOT

from ortimg.data import read_catalogue
from ortimg.inputs.cache import Cache

LIMIT = 900  # seconds for one block: a bound for hangs; a cold build on a busy machine takes minutes
SHELL = ("bash", "-euo", "pipefail", "-c")
TOGETHER = ("sh", "-c", 'exec "$@" 2>&1', "sh")  # the engine's two streams arrive in any order, one does not
BASES = {"debian:12": "base-debian12", "debian:13": "base-debian13"}
UNITS = "localhost/ortimg/"


class BlockError(AssertionError):
    """A block that did not end or print as its page says."""


@dataclass(frozen=True)
class Said:
    code: int
    text: str  # stdout and stderr, as they came


class Runner:
    """One page's folder and containers; `close` removes both."""

    def __init__(self, page: Page, folder: Path, limit: float = LIMIT) -> None:
        self.page, self.folder, self.limit = page, folder, limit
        self._kept: dict[tuple[str, ...], str] = {}
        self._stack = ExitStack()
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)  # blocks run as any user
        for name in ("images.yaml", "images.lock"):
            shutil.copy(ROOT / name, folder)
        if (ROOT / "examples").is_dir():
            (folder / "examples").symlink_to(ROOT / "examples")
        _place_archives("".join(step.block.text for step in page.steps if step.marker.kind in RUN), folder)

    def close(self) -> None:
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)  # some hold gigabytes; pytest keeps three runs

    def run(self) -> list[tuple[Step, float]]:
        """All blocks, with the seconds each took. Raises BlockError at the first that fails."""
        took = []
        for index, step in enumerate(self.page.steps):
            begin = time.monotonic()
            try:
                self._do(step)
            except BlockError:
                for later in self.page.steps[index + 1 :]:
                    if later.marker.always:
                        self._host(later)
                raise
            took.append((step, time.monotonic() - begin))
        return took

    def _do(self, step: Step) -> None:
        if step.marker.kind is Kind.FILE:
            path = self.folder / step.marker.value
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.block.text, "utf-8")
        elif step.marker.kind is Kind.HOST:
            self._judge(step, self._host(step))
        elif step.marker.kind is Kind.IMAGE:
            self._judge(step, self._image(step))

    def _judge(self, step: Step, said: Said) -> None:
        wrong = None
        if said.code != step.marker.exit:
            wrong = f"exit code {said.code}, the page says {step.marker.exit}"
        elif step.output is not None and not output_matches(step.output.text, said.text):
            wrong = f"it did not print what line {step.output.line} shows:\n{step.output.text}"
        if wrong:
            place = f"{self.page.path}:{step.block.line}"
            raise BlockError(f"{place}: {wrong}\n--- block\n{step.block.text}--- said\n{said.text[-6000:]}")

    def _host(self, step: Step) -> Said:
        gone = ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL")  # as in a new shell
        environment = {name: value for name, value in os.environ.items() if name not in gone}
        environment |= {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "100",
        }
        return _run([*SHELL, step.block.text], self.folder, self.limit, environment)

    def _image(self, step: Step) -> Said:
        command = [*TOGETHER, *(("python3", "-uc") if step.block.info in PYTHON else SHELL)]
        start = self._container(step)
        if step.marker.keep:
            name = self._keep(tuple(start))
            return _run(["docker", "exec", name, *command, step.block.text], self.folder, self.limit)
        name = _name()
        run = ["docker", "run", "--rm", "--name", name, *start, *command, step.block.text]
        return _run(run, self.folder, self.limit, container=name)

    def _container(self, step: Step) -> list[str]:
        """What `docker run` is told of the block's container, up to the image."""
        words = [
            "--network",
            "none",
            "--volume",
            f"{self.folder}:/guide",
            "--workdir",
            "/guide",
            "--pull",
            "never",
        ]
        words += ["--env", "LC_ALL=C.UTF-8"]
        if step.marker.user is not None:
            words += ["--user", step.marker.user]
        if step.marker.read_only:
            words += ["--read-only"]
        return [*words, _image(step.marker.value)]

    def _keep(self, start: tuple[str, ...]) -> str:
        if start not in self._kept:
            name = _name()
            run = ["docker", "run", "--detach", "--rm", "--init", "--name", name, *start, "sleep", "infinity"]
            self._stack.callback(_remove, name)
            said = _run(run, self.folder, self.limit)
            assert said.code == 0, said.text
            self._kept[start] = name
        return self._kept[start]


def _place_archives(text: str, folder: Path) -> None:
    """The archives of ONNX Runtime that blocks name, as the cache has them: the release host may be away."""
    cache = Cache.default()
    for asset in sorted({*re.findall(r"\bonnxruntime-linux-x64-[\w.-]+\.tgz", text)}):
        (release,) = (each for each in read_catalogue().releases if each.asset == asset)
        found = [cache.peek(f"ort/{release.key}/{origin}") for origin in ("upstream", "maven")]
        entry = next((each for each in found if each is not None), None)
        assert entry is not None, (
            f"{asset} is not in the cache; `ortimg fetch '{release.version}-*'` brings it"
        )
        shutil.copyfile(cache.path(entry), folder / asset)  # no link: blocks may write to it


def _name() -> str:
    return f"ortimg-guide-{uuid4().hex[:12]}"


def _remove(container: str) -> None:
    subprocess.run(["docker", "rm", "--force", container], capture_output=True, check=False)


def _run(
    command: list[str],
    folder: Path,
    limit: float,
    environment: dict[str, str] | None = None,
    container: str | None = None,
) -> Said:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that all of a block can be ended
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        if container is not None:
            _remove(container)
        said, _ = process.communicate()
        return Said(-1, f"{said.decode(errors='replace')}\n(no end within {limit} s)")
    return Said(process.returncode, said.decode(errors="replace"))


def _image(reference: str) -> str:
    """The reference; for a distribution's image that is not there, the base that ortimg made instead."""
    if reference not in BASES or _there(reference):
        return reference
    listed = ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}", UNITS + BASES[reference]]
    found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    assert found, (
        f"neither {reference} nor {UNITS}{BASES[reference]} is in the engine; `make images` makes it"
    )
    return found[0]


def _there(reference: str) -> bool:
    inspect = ["docker", "image", "inspect", reference]
    return subprocess.run(inspect, capture_output=True, check=False).returncode == 0
