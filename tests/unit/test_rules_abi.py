"""What libraries ask of glibc and libstdc++, against what a base or a host has."""

from __future__ import annotations

import msgspec
import pytest
from wishes import CATALOGUE, INDEX, RULES

from ortimg.core.abi import host_too_old, stack_warning, too_old
from ortimg.core.model import OrtRelease
from ortimg.core.rules import Refusal


def release(version: str, major: int) -> OrtRelease:
    row = INDEX.release(version, major)
    assert row is not None
    return row


CUDA_11, CUDA_12 = INDEX.sets["11.8", "8"], INDEX.sets["12.6", "9"]
BASES = INDEX.bases


def test_bases() -> None:
    assert too_old(release("1.16.3", 11), CUDA_11, BASES["centos7"]) is None
    assert too_old(release("1.20.1", 12), CUDA_12, BASES["centos7"]) == (
        "ONNX Runtime 1.20.1 needs glibc 2.27, CentOS 7 has 2.17"
    )
    assert too_old(release("1.31.1", 13), INDEX.sets["13.0", "9"], BASES["ubuntu18.04"]) == (
        "ONNX Runtime 1.31.1 needs glibc 2.28, Ubuntu 18.04 has 2.27"
    )


def test_glibcxx_counts_too() -> None:
    needy = msgspec.structs.replace(release("1.16.3", 11), glibcxx="3.4.99")
    assert too_old(needy, CUDA_11, BASES["debian12"]) == (
        "ONNX Runtime 1.16.3 needs GLIBCXX 3.4.99, Debian 12 (bookworm) has 3.4.30"
    )
    assert host_too_old(needy, CUDA_11, "2.36") is None, "a host's libstdc++ is not told"


def test_the_sets_need_counts() -> None:
    hungry = msgspec.structs.replace(CUDA_11, glibc="2.38")
    assert too_old(release("1.16.3", 11), hungry, BASES["debian11"]) == (
        "the CUDA 11.8 set needs glibc 2.38, Debian 11 (bullseye) has 2.31"
    )


@pytest.mark.parametrize(
    ("glibc", "warned"), [("2.36", False), ("2.40", False), ("2.41", True), ("2.42", True)]
)
def test_executable_stacks(glibc: str, warned: bool) -> None:
    text = stack_warning(release("1.16.3", 11), glibc, "Debian 13")
    assert (text is not None) is warned
    if text:
        assert "executable stack, which glibc 2.41 and later refuse; Debian 13 has" in text
        assert text.endswith("the C libraries ask for none")
    assert stack_warning(release("1.16.2", 11), glibc, "Debian 13") is None
    own = msgspec.structs.replace(release("1.16.2", 11), executable_stack=("libonnxruntime.so.1.16.2",))
    assert ("the C libraries" in str(stack_warning(own, glibc, "x"))) is False


def test_a_library_of_another_number_is_named() -> None:
    needy = msgspec.structs.replace(release("1.17.1", 12), needed=("libcublasLt.so.11", "libcudart.so.12"))
    catalogue = msgspec.structs.replace(
        CATALOGUE, releases=tuple(needy if row.key == needy.key else row for row in CATALOGUE.releases)
    )
    from ortimg.core.catalogue import Index
    from ortimg.core.rules import Rules

    found = Rules(Index(catalogue)).resolve("1.17.1", "12.2", "8", "debian12")
    assert isinstance(found, Refusal)
    assert found.reason == (
        "the CUDA 12.2 set lacks libcublasLt.so.11 (it has libcublasLt.so.12), "
        "which ONNX Runtime 1.17.1 links to"
    )


def test_musl() -> None:
    found = RULES.resolve("1.16.3", "11.8", "8", "alpine3.20")
    assert isinstance(found, Refusal)
    assert "musl instead of glibc" in found.reason
