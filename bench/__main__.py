"""python -m bench [--parts "…"] [--cells "…"] [--again]; `make bench` calls it.

A run that was interrupted goes on where it ended; --again begins anew. The result goes to bench/results,
and the README's lines are written from it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from filelock import FileLock, Timeout

from bench import noise
from bench.daemons import unmount_below
from bench.inputs import choose, fetch_root
from bench.parts import PARTS, Run
from bench.publish import publish
from bench.state import State
from ortimg.errors import EnvironmentFault, OrtimgError
from ortimg.inputs.cache import Cache

_INSIDE = "ORTIMG_BENCH_INSIDE"  # set in the copy of this program that has a network of its own
_CACHE = Path(os.environ.get("ORTIMG_BENCH_CACHE") or Path.home() / ".cache" / "ortimg-bench")


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        if os.environ.get(_INSIDE) == "1":
            _measure(options)
            return 0
        _prepare(options)
        code = _with_own_network()
        if code == 0 and not options.no_publish:
            publish(State(_CACHE / "state"), options.cells, options.parts)
            State(_CACHE / "state").clear()
        return code
    except KeyboardInterrupt:
        return 130
    except OrtimgError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return int(error.exit_code)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--parts", type=str.split, default=list(PARTS), help=f"of: {' '.join(PARTS)}")
    parser.add_argument("--cells", type=str.split, default=["*-cudnn8-debian12", "*-cudnn8-debian13"])
    parser.add_argument("--again", action="store_true", help="forget what an interrupted run has measured")
    parser.add_argument("--no-publish", action="store_true", help="write no result, only the state")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {' '.join(sorted(unknown))}; there are {' '.join(PARTS)}")
    return options


def _prepare(options: argparse.Namespace) -> None:
    """What needs the network or may fail early."""
    cells = [have.cell.identifier for have in choose(options.cells, Cache.default())]
    if os.geteuid() != 0:
        raise EnvironmentFault("the bench starts engines of its own: only root may", "run it as root")
    for program in ("dockerd", "containerd", "ctr", "docker", "docker-registry", "unshare", "ip", "zstd"):
        if shutil.which(program) is None:
            raise EnvironmentFault(
                f"{program} is not here", "run `make engine` and scripts/install-registry.sh"
            )
    print(f"cells: {' '.join(cells)}", file=sys.stderr)
    state = State(_CACHE / "state")
    if options.again or state.read("cells", list[str]) != cells:
        state.clear()
    state.keep("cells", cells)
    if {"naive", "classic"} & set(options.parts):
        fetch_root(_CACHE)


def _with_own_network() -> int:
    """This program once more, with nothing but a loopback network, and mounts of its own."""
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "bench", *sys.argv[1:]]
    process = subprocess.Popen(command, env={**os.environ, _INSIDE: "1"})
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the terminal tells the other one too, and it tidies up
        except SystemExit:
            process.terminate()


def _measure(options: argparse.Namespace) -> None:
    lock = FileLock(_CACHE / "run.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise EnvironmentFault("another run of the bench is under way", "wait until it has ended") from None
    work = _CACHE / "work"
    noise.end_leftovers()  # of a run that was killed
    unmount_below(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    noise.join_group()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    try:
        run = Run(
            work=work, state=State(_CACHE / "state"), inputs=choose(options.cells, Cache.default()),
            fetch_root=fetch_root(_CACHE) if {"naive", "classic"} & set(options.parts) else None,
        )  # fmt: skip
        run.all(options.parts)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
