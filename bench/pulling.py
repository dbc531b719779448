"""From an empty node to the first load: `ctr` pulls, unpacks, runs `ort-verify`; then a second image.

A plain containerd with an empty root each time, the registry on the loopback. The verifier's stand-in for the
driver is mounted, since no machine of this kind has a GPU: the load ends where a GPU would be asked for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.daemons import Containerd, containerd
from bench.disk import bytes_below
from bench.noise import GROUP, Stopwatch, Timing
from bench.ours import REPOSITORY, Place
from ortimg.errors import EnvironmentFault


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """One packing of one image, and the second image on the same node."""

    packed_bytes: int  # of the first image, as sent
    pull: Timing  # and unpack
    load: Timing
    second_bytes: int | None  # that the second image added to the node's store of packed layers
    second: Timing | None  # pull and unpack of it

    @property
    def seconds(self) -> float:
        """Until the first load has ended."""
        return self.pull.seconds + self.load.seconds


def run(own: Place, cells: Sequence[str], path: str, folder: Path, stub: Path) -> Pull:
    """`cells`: the first image, then the second, if there is one; `path`: where the registry has them."""
    images = [f"{own.registry.host}/{path}/{REPOSITORY}:{cell}" for cell in cells]
    try:
        with containerd(folder) as node:
            with Stopwatch() as pulling:
                _pull(node, images[0])
            packed = _content(node)
            with Stopwatch() as loading:
                _load(node, images[0], stub)
            second = None
            if len(images) > 1:
                with Stopwatch() as watch:
                    _pull(node, images[1])
                second = watch.timing
            return Pull(
                packed_bytes=packed,
                pull=pulling.timing,
                load=loading.timing,
                second_bytes=_content(node) - packed if second else None,
                second=second,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pull(node: Containerd, image: str) -> None:
    node.ctr("images", "pull", "--plain-http", image)


def _content(node: Containerd) -> int:
    return bytes_below(node.root / "io.containerd.content.v1.content")


def _load(node: Containerd, image: str, stub: Path) -> None:
    mount = f"type=bind,src={stub},dst=/run/cuda-stub/libcuda.so.1,options=rbind:ro"
    verify = ("ort-verify", "--tier", "load", "--stub", "/run/cuda-stub/libcuda.so.1")
    told = node.ctr("run", "--rm", "--cgroup", f"/{GROUP}/load", "--mount", mount, image, "load", *verify)
    if json.loads(told)["verdict"] != "pass":
        raise EnvironmentFault(f"{image} does not load in containerd")
