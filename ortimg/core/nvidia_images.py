"""Tags of nvidia/cuda that exist. Looked up, never written by rule: the suffix changed twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ortimg.core.drivers import minor_of
from ortimg.core.host_facts import NvidiaImage
from ortimg.core.versions import number

REPOSITORY = "nvidia/cuda"
KINDS = ("runtime", "devel")


class NoImage(msgspec.Struct, frozen=True):
    """Why there is no such image, and the nearest tag that there is."""

    reason: str
    nearest: str | None


def find_image(
    images: Sequence[NvidiaImage], cuda: str, cudnn: str, distro: str, kind: str = "runtime"
) -> str | NoImage:
    """`nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04` for a CUDA version, a cuDNN major and a distro.

    That the tag existed in December 2025 is known, not that it still does.
    """
    row = next((row for row in images if cuda in (row.cuda, minor_of(row.cuda))), None)
    if row is None:
        known = ", ".join(row.cuda for row in images)
        reason = f"no image of {REPOSITORY} with CUDA {cuda} and cuDNN is known; there are {known}"
    elif _major(row.cudnn) != cudnn:
        there = f"cuDNN {_major(row.cudnn)} ({row.cuda}-{row.suffix})"
        reason = f"{REPOSITORY} with CUDA {minor_of(cuda)} holds {there}, none holds cuDNN {cudnn}"
    elif distro not in row.distros:
        there = ", ".join(row.distros) or "not known"
        what = f"{REPOSITORY} with CUDA {row.cuda} and cuDNN {cudnn}"
        reason = f"{what} is not there for {distro}; it is for {there}"
    else:
        return _tag(row, kind, distro)
    return NoImage(reason, _nearest(images, cuda, cudnn, distro, kind))


def _nearest(images: Sequence[NvidiaImage], cuda: str, cudnn: str, distro: str, kind: str) -> str | None:
    """The tag with the wished cuDNN whose CUDA and distro are nearest, in this order."""
    wished = _flat(cuda)

    good = [row for row in images if _major(row.cudnn) == cudnn and row.distros]
    if not good:
        return None
    with_distro = [row for row in good if distro in row.distros]
    best = min(with_distro or good, key=lambda row: abs(_flat(row.cuda) - wished))
    return _tag(best, kind, distro if distro in best.distros else best.distros[0])


def _flat(cuda: str) -> int:
    """12.4.1 as 124: the minors of CUDA go up to 9, and 13.0 comes next to 12.9."""
    major, minor = (*number(cuda), 0)[:2]
    return major * 10 + minor


def _major(version: str) -> str:
    return version.partition(".")[0]


def _tag(row: NvidiaImage, kind: str, distro: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"no kind of image: {kind!r}")
    return f"{REPOSITORY}:{row.cuda}-{row.suffix}-{kind}-{distro}"
