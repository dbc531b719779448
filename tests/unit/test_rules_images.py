"""Tags of nvidia/cuda: looked up, with the nearest one that there is."""

from __future__ import annotations

import re

import pytest
from hosts import FACTS
from hypothesis import given
from hypothesis import strategies as st

from ortimg.core.nvidia_images import NoImage, find_image

IMAGES = FACTS.images
TAG = re.compile(r"nvidia/cuda:[0-9.]+-cudnn[0-9]?-(runtime|devel)-[a-z]+[0-9.]+")


@pytest.mark.parametrize(
    ("cuda", "cudnn", "distro", "tag"),
    [
        ("11.8.0", "8", "ubuntu22.04", "nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04"),
        ("11.8", "8", "rockylinux8", "nvidia/cuda:11.8.0-cudnn8-runtime-rockylinux8"),
        ("12.2.2", "8", "rockylinux9", "nvidia/cuda:12.2.2-cudnn8-runtime-rockylinux9"),
        ("12.3.2", "9", "ubuntu22.04", "nvidia/cuda:12.3.2-cudnn9-runtime-ubuntu22.04"),
        ("12.4.1", "9", "ubuntu22.04", "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04"),
        ("12.6", "9", "ubuntu24.04", "nvidia/cuda:12.6.3-cudnn-runtime-ubuntu24.04"),
        ("13.0", "9", "ubuntu24.04", "nvidia/cuda:13.0.2-cudnn-runtime-ubuntu24.04"),
    ],
)
def test_tags_that_exist(cuda: str, cudnn: str, distro: str, tag: str) -> None:
    assert find_image(IMAGES, cuda, cudnn, distro) == tag
    assert find_image(IMAGES, cuda, cudnn, distro, "devel") == tag.replace("runtime", "devel")


@pytest.mark.parametrize(
    ("cuda", "cudnn", "distro", "words", "nearest"),
    [
        ("12.2.2", "9", "ubuntu22.04", "none holds cuDNN 9", "12.3.2-cudnn9-runtime-ubuntu22.04"),
        ("12.4.1", "8", "ubuntu22.04", "none holds cuDNN 8", "12.2.2-cudnn8-runtime-ubuntu22.04"),
        ("11.8", "9", "ubuntu22.04", "none holds cuDNN 9", "12.3.2-cudnn9-runtime-ubuntu22.04"),
        ("11.8", "8", "rockylinux9", "not there for rockylinux9", "12.2.2-cudnn8-runtime-rockylinux9"),
        ("12.4", "9", "ubuntu24.04", "not there for ubuntu24.04", "12.6.3-cudnn-runtime-ubuntu24.04"),
        ("13.0", "9", "ubuntu20.04", "not there for ubuntu20.04", "12.9.1-cudnn-runtime-ubuntu20.04"),
        ("12.0.0", "9", "ubuntu20.04", "no image of nvidia/cuda", "12.3.2-cudnn9-runtime-ubuntu20.04"),
        ("12.7", "9", "ubuntu22.04", "no image of nvidia/cuda", "12.6.3-cudnn-runtime-ubuntu22.04"),
        ("12.6", "9", "debian12", "not there for debian12", "12.6.3-cudnn-runtime-ubuntu20.04"),
        ("12.6", "10", "ubuntu22.04", "none holds cuDNN 10", None),
    ],
)
def test_tags_that_do_not(cuda: str, cudnn: str, distro: str, words: str, nearest: str | None) -> None:
    found = find_image(IMAGES, cuda, cudnn, distro)
    assert isinstance(found, NoImage)
    assert words in found.reason
    assert found.nearest == (f"nvidia/cuda:{nearest}" if nearest else None)


def test_no_image_crosses_the_step_of_cudnn() -> None:
    for row in IMAGES:
        old = tuple(int(part) for part in row.cuda.split(".")) <= (12, 2, 2)
        assert row.cudnn.startswith("8." if old else "9.")
        assert row.suffix == ("cudnn8" if old else "cudnn9" if row.cuda == "12.3.2" else "cudnn")


@given(
    st.sampled_from(["11.8", "12.0", "12.2", "12.2.2", "12.4", "12.7", "13.0", "14.1"]),
    st.sampled_from(["8", "9", "7"]),
    st.sampled_from(["ubuntu20.04", "ubuntu22.04", "ubuntu24.04", "debian12", "rockylinux9", "ubi7"]),
)
def test_a_nearest_tag_exists(cuda: str, cudnn: str, distro: str) -> None:
    found = find_image(IMAGES, cuda, cudnn, distro)
    tag = found.nearest if isinstance(found, NoImage) else found
    if tag is None:
        assert cudnn == "7"
        return
    assert TAG.fullmatch(tag)
    version, _, _, distro = tag.removeprefix("nvidia/cuda:").split("-")
    assert any(row.cuda == version and distro in row.distros for row in IMAGES)
