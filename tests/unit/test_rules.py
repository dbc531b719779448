"""What can exist: computed from facts, each refusal with its reason and the nearest cell that works."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wishes import CATALOGUE, INDEX, RULES

from ortimg.core.distance import nearest_version
from ortimg.core.model import Confidence
from ortimg.core.rules import Refusal, lacking, number

VERSIONS = INDEX.versions()
BASES = [row.name for row in CATALOGUE.bases]


def reason(ort: str, cuda: str, cudnn: str, base: str = "debian12") -> str:
    found = RULES.resolve(ort, cuda, cudnn, base)
    assert isinstance(found, Refusal), "this combination was to be refused"
    return found.reason


@pytest.mark.parametrize(
    ("ort", "cuda", "cudnn", "base"),
    [
        ("1.14.1", "11.8", "8", "debian12"),  # built with CUDA 11.6
        ("1.16.2", "11.8", "8", "debian12"),
        ("1.16.3", "11.8", "8", "centos7"),
        ("1.17.1", "12.2", "8", "rocky9"),
        ("1.18.1", "11.8", "8", "ubuntu18.04"),
        ("1.18.1", "12.6", "9", "debian13"),
        ("1.20.0", "12.6", "9", "debian12"),  # links to nvrtc and to every cuDNN library
        ("1.22.0", "12.6", "9", "rocky8"),
        ("1.23.2", "12.6", "9", "debian12"),
        ("1.30.0", "12.6", "9", "debian12"),
        ("1.20.0", "12.8", "9", "debian12"),
        ("1.30.0", "12.8", "9", "debian12"),
    ],
)
def test_possible(ort: str, cuda: str, cudnn: str, base: str) -> None:
    found = RULES.resolve(ort, cuda, cudnn, base)
    assert not isinstance(found, Refusal)
    release, cuda_set, row = found
    assert (release.version, cuda_set.cuda, cuda_set.cudnn, row.name) == (ort, cuda, cudnn, base)
    assert RULES.nearest(ort, cuda, cudnn, base) == f"{ort}-cuda{cuda}-cudnn{cudnn}-{base}"


REFUSED = [
    # wrong CUDA major
    (
        "1.16.2 12.2 8 debian12",
        "no release archive for CUDA 12",
        "1.16.2-cuda11.8-cudnn8-debian12",
    ),
    (
        "1.16.3 12.4.1 9 debian12",
        "no release archive for CUDA 12",
        "1.16.3-cuda11.8-cudnn8-debian12",
    ),
    (
        "1.20.1 11.8.0 8 rocky9",
        "no release archive for CUDA 11",
        "1.20.1-cuda12.8-cudnn9-rocky9",
    ),
    (
        "1.18.1 13.0 9 debian12",
        "it has one for CUDA 11 (cuDNN 8) and CUDA 12 (cuDNN 9)",
        "1.18.1-cuda12.6-cudnn9-debian12",
    ),
    # wrong cuDNN major
    (
        "1.18.1 12.2 8 debian12",
        "built with cuDNN 9, which cuDNN 8 does not replace",
        "1.18.1-cuda12.6-cudnn9-debian12",
    ),
    (
        "1.18.0 12.6 9 debian12",
        "built with cuDNN 8, which cuDNN 9 does not replace",
        "1.18.0-cuda12.2-cudnn8-debian12",
    ),
    (
        "1.16.2 11.8 8.9.6 debian12",
        '"8.9.6" is no cuDNN major version',
        "1.16.2-cuda11.8-cudnn8-debian12",
    ),
    # no such CUDA set
    (
        "1.23.2 12.4 9 debian12",
        "no set of CUDA 12.4 and cuDNN 9 libraries; there are 11.8 (cuDNN 8), 12.2 (cuDNN 8), 12.6 (cuDNN 9)",
        "1.23.2-cuda12.6-cudnn9-debian12",
    ),
    (
        "1.17.1 11.8.0 8 debian12",
        "no set of CUDA 11.8.0",
        "1.17.1-cuda11.8-cudnn8-debian12",
    ),
    (
        "1.27.0 13.1 9 debian12",
        "no set of CUDA 13.1",
        "1.27.0-cuda13.0-cudnn9-debian12",
    ),
    (
        "1.16.2 11 8 debian12",
        '"11" is no CUDA version such as "12.2"',
        "1.16.2-cuda11.8-cudnn8-debian12",
    ),
    # no such release
    (
        "1.17.2 11.8 8 debian12",
        "1.17.2 has no release archive for Linux and GPUs (no release with binaries); 1.17.3 has",
        "1.17.3-cuda11.8-cudnn8-debian12",
    ),
    (
        "1.22.1 12.6 9 debian12",
        "(only for Windows); 1.22.0 has",
        "1.22.0-cuda12.6-cudnn9-debian12",
    ),
    (
        "1.16.9 11.8 8 debian12",
        "those of 1.14.0 to 1.31.1 are",
        "1.16.3-cuda11.8-cudnn8-debian12",
    ),
    (
        "1.20 12.6 9 debian12",
        'ONNX Runtime "1.20" is known',
        "1.20.0-cuda12.6-cudnn9-debian12",
    ),
    (
        "latest 12.6 9 debian12",
        '"latest" is no version: an image is made of exact versions',
        "1.30.0-cuda12.6-cudnn9-debian12",
    ),
    (
        "1.20.1+cu12 12.6 9 debian12",
        "is known",
        "1.20.1-cuda12.6-cudnn9-debian12",
    ),
    (
        "1.19.0 11.8 8 debian12",
        "is not sure: announced as CUDA 12",
        "1.19.2-cuda12.8-cudnn9-debian12",
    ),
    # archives that nobody can vouch for
    (
        "1.21.0 12.6 9 debian12",
        "microsoft/onnxruntime#23953",
        "1.22.0-cuda12.6-cudnn9-debian12",
    ),
    (
        "1.21.1 11.8 8 debian12",
        "microsoft/onnxruntime#24520",
        "1.22.0-cuda12.8-cudnn9-debian12",
    ),
    (
        "1.31.0 12.6 9 debian12",
        "nobody has seen the archive",
        "1.31.0-cuda13.0-cudnn9-debian12",
    ),
    (
        "1.20.1 12.6 9 centos7",
        "needs glibc 2.27, CentOS 7 has 2.17",
        "1.20.1-cuda12.6-cudnn9-ubuntu18.04",
    ),
    # base too old, or none of glibc
    (
        "1.30.0 12.6 9 ubuntu18.04",
        "needs glibc 2.28, Ubuntu 18.04 has 2.27",
        "1.30.0-cuda12.6-cudnn9-ubuntu20.04",
    ),
    (
        "1.16.3 11.8 8 alpine3.20",
        "musl instead of glibc",
        "1.16.3-cuda11.8-cudnn8-debian12",
    ),
    (
        "1.16.3 11.8 8 debian21",
        'did you mean "debian13"?',
        "1.16.3-cuda11.8-cudnn8-debian13",
    ),
    # images with CUDA inside
    (
        "1.20.1 12.6 9 nvidia/cuda:12.4.1-runtime-ubuntu22.04",
        'are added to that; write "ubuntu22.04"',
        "1.20.1-cuda12.6-cudnn9-ubuntu22.04",
    ),
    (
        "1.18.0 12.2 8 nvidia/cuda:12.2.2-cudnn8-runtime-rockylinux9",
        'write "rocky9"',
        "1.18.0-cuda12.2-cudnn8-rocky9",
    ),
    (
        "1.31.1 13.0 any debian12",
        '"any" is no cuDNN major version such as "8", nor "none"',
        "1.31.1-cuda13.0-cudnn9-debian12",
    ),
]


@pytest.mark.parametrize(("wish", "words", "nearest"), REFUSED)
def test_refused(wish: str, words: str, nearest: str) -> None:
    ort, cuda, cudnn, base = wish.split()
    assert words in reason(ort, cuda, cudnn, base)
    assert RULES.nearest(ort, cuda, cudnn, base) == nearest


@pytest.mark.parametrize("name", ["centos7", "ubuntu18.04"])
def test_new_releases_do_not_load_on_old_distributions(name: str) -> None:
    assert isinstance(RULES.resolve("1.31.1", "12.6", "9", name), Refusal)
    assert isinstance(RULES.resolve("1.20.1", "12.6", "9", "centos7"), Refusal)


@pytest.mark.parametrize(
    ("ort", "cuda", "cudnn", "base"),
    [
        ("1.16.2", "11.8", "8", "debian12-arm64"),
        ("1.16.2", "11.8", "8", "arm64"),
        ("1.16.2", "11.8", "8", "arm64/v8"),
        ("1.16.2", "11.8", "8", "ubuntu22.04-aarch64"),
        ("1.16.2", "11.8", "8", "linux/arm64"),
        ("1.16.2-aarch64", "11.8", "8", "debian12"),
        ("1.16.2", "11.8-arm64", "8", "debian12"),
        ("1.16.2", "11.8", "8-aarch64", "debian12"),
    ],
)
def test_arm_is_refused_in_the_same_words(ort: str, cuda: str, cudnn: str, base: str) -> None:
    assert reason(ort, cuda, cudnn, base) == reason("1.16.2", "11.8", "8", "aarch64")
    assert RULES.flavour("devel-arm64") == Refusal(reason("1.16.2", "11.8", "8", "aarch64"))
    assert RULES.nearest(ort, cuda, cudnn, base) is not None


def test_flavours() -> None:
    assert RULES.flavour("runtime") == "runtime"
    found = RULES.flavour("devl")
    assert isinstance(found, Refusal)
    assert "there is runtime" in found.reason


def test_a_cuda_set_must_hold_what_the_provider_links_to() -> None:
    release = next(row for row in CATALOGUE.releases if row.version == "1.22.0")
    without_nvrtc = INDEX.sets["12.2", "8"]
    assert "libnvrtc.so.12" in lacking(release, without_nvrtc)
    assert lacking(release, INDEX.sets["12.6", "9"]) == []
    driver = next(row for row in CATALOGUE.releases if row.key == "1.27.0-cuda12")
    assert "libcuda.so.1" in driver.needed
    assert lacking(driver, INDEX.sets["12.6", "9"]) == [], "the driver's library comes from the host"


def test_versions_are_numbers_not_text() -> None:
    assert number("2.4") < number("2.36")
    assert RULES.nearest("1.9.0", "11.8", "8", "debian12") == "1.14.1-cuda11.8-cudnn8-debian12"


@pytest.mark.parametrize(
    ("wished", "nearest"),
    [
        ("1.16", "1.16.0"),
        ("1.17.2", "1.17.3"),
        ("1.20.5", "1.20.1"),
        ("1.32.0", "1.31.1"),
        ("2.0.0", "1.31.1"),
    ],
)
def test_the_nearest_version_is_the_last_patch_of_the_nearest_minor(wished: str, nearest: str) -> None:
    assert nearest_version(wished, INDEX.versions()) == nearest


wishes = st.tuples(
    st.sampled_from([*VERSIONS, "1.17.2", "latest", "9.9.9", ""]),
    st.sampled_from(["11.8", "12.2", "12.6", "12.8", "12.4", "13.0", "10", "x", ""]),
    st.sampled_from(["8", "9", "7", "8.9", ""]),
    st.sampled_from([*BASES, "debian99", "", "arm64"]),
)


@given(wishes)
@settings(max_examples=200)
def test_each_refusal_names_a_cell_that_works(wish: tuple[str, str, str, str]) -> None:
    found = RULES.resolve(*wish)
    if isinstance(found, Refusal):
        assert found.reason
        assert "\n" not in found.reason
    nearest = RULES.nearest(*wish)
    assert nearest is not None
    version, cuda, cudnn, base = nearest.split("-")
    near = RULES.resolve(version, cuda.removeprefix("cuda"), cudnn.removeprefix("cudnn"), base)
    assert not isinstance(near, Refusal)


@given(wishes)
@settings(max_examples=200)
def test_what_is_resolved_holds_together(wish: tuple[str, str, str, str]) -> None:
    found = RULES.resolve(*wish)
    if isinstance(found, Refusal):
        return
    release, cuda_set, base = found
    assert release.cuda_major == cuda_set.major
    assert str(release.cudnn_major) == cuda_set.cudnn
    assert base.glibc is not None
    assert number(base.glibc) >= number(release.glibc)
    assert lacking(release, cuda_set) == []
    assert release.cuda_confidence in (Confidence.MEASURED, Confidence.ONE_SOURCE)
