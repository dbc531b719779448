"""GPUs: names and compute capabilities, and which GPU code runs where."""

from __future__ import annotations

import pytest
from hosts import FACTS, NAMES
from hypothesis import given
from hypothesis import strategies as st

from ortimg.core.gpu import Capability, Match, architecture, match, read_capability, sm_order
from ortimg.core.gpu_names import key_of
from ortimg.core.model import GpuArchitectures
from ortimg.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Tesla T4", "7.5"),
        ("T4", "7.5"),
        ("NVIDIA T4", "7.5"),
        ("GRID T4-16Q", "7.5"),
        ("A100-SXM4-80GB", "8.0"),
        ("NVIDIA A100-PCIE-40GB", "8.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("a100", "8.0"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("RTX 4090", "8.9"),
        ("rtx4090", "8.9"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "8.6"),
        ("NVIDIA GeForce RTX 2080 Super with Max-Q Design", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA RTX A6000", "8.6"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        ("L4", "8.9"),
        ("L40S", "8.9"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA H100 NVL", "9.0"),
        ("H200", "9.0"),
        ("B200", "10.0"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("Tesla P100-PCIE-16GB", "6.0"),
        ("NVIDIA GeForce GTX 1080 Ti", "6.1"),
        ("GeForce GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("Tesla K80", "3.7"),
        ("8.9", "8.9"),
        ("sm_90", "9.0"),
        ("SM90", "9.0"),
        ("sm_90a", "9.0"),
        ("compute_120", "12.0"),
        ("75", "7.5"),
    ],
)
def test_names(name: str, capability: str) -> None:
    gpu = NAMES.find(name)
    assert str(gpu.capability) == capability
    assert not gpu.arm64


@pytest.mark.parametrize(
    "name",
    [
        "GB200",
        "GH200 480GB",
        "NVIDIA GB10",
        "Jetson AGX Orin",
        "Orin (nvgpu)",
        "8.7",
        "11.0",
        "12.1",
        "sm_72",
    ],
)
def test_gpus_beside_an_arm_processor(name: str) -> None:
    assert NAMES.find(name).arm64


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("T5", "T4"),
        ("RTX 6000", "RTX 6000 Ada, Quadro RTX 6000"),
        ("Testla T4x", "near: "),
        ("H201", "H200"),
        ("4.2", "near: 3.2, 3.5, 3.7, 5.0"),
        ("sm_95", "near: "),
    ],
)
def test_unknown_names_get_near_ones(name: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NAMES.find(name)
    assert near in caught.value.message
    assert "is known" in caught.value.message


@pytest.mark.parametrize("name", ["", "NVIDIA", "GeForce RTX", "Radeon RX 7900 XTX", "   ", "1.2.3", "🤖"])
def test_what_is_no_gpu(name: str) -> None:
    with pytest.raises(ConfigError, match="no GPU"):
        NAMES.find(name)


def test_every_listed_name_is_found_and_means_one_gpu() -> None:
    listed = [(name, row.capability) for row in FACTS.gpus for name in (*row.names, *row.more, *row.arm64)]
    assert len(listed) > 150
    for name, capability in listed:
        assert str(NAMES.find(name).capability) == capability, name
        assert str(NAMES.find(f"NVIDIA {name}").capability) == capability
    keys = [key_of(name) for name, _ in listed]
    assert len(keys) == len(set(keys)), "two names of the list are the same to a reader"


def test_every_capability_has_its_driver_facts() -> None:
    known = {capability for row in FACTS.drivers.architectures for capability in row.capabilities}
    assert {row.capability for row in FACTS.gpus} <= known


# which code runs where


@pytest.mark.parametrize(
    ("sass", "ptx", "gpu", "expected"),
    [
        (["80"], [], "8.0", Match.NATIVE),
        (["80"], [], "8.6", Match.NATIVE),  # a later minor of the same major
        (["80"], [], "8.9", Match.NATIVE),
        (["86"], [], "8.0", Match.NONE),  # not an earlier one
        (["80"], [], "9.0", Match.NONE),
        (["80"], ["80"], "9.0", Match.JIT),
        (["80"], ["80"], "12.0", Match.JIT),
        (["80"], ["90"], "8.0", Match.NATIVE),
        (["75"], ["90"], "8.0", Match.NONE),
        (["90a"], [], "9.0", Match.NATIVE),
        (["90a"], ["90a"], "10.0", Match.NONE),  # ONNX Runtime 1.23.0: no Blackwell
        (["90a"], ["90"], "10.0", Match.JIT),  # 1.23.2
        (["100a"], [], "10.3", Match.NONE),
        (["100"], [], "10.3", Match.NATIVE),
        (["100f"], [], "10.3", Match.NATIVE),
        ([], ["100f"], "10.3", Match.JIT),
        ([], ["100f"], "12.0", Match.NONE),
        (["120a"], [], "12.1", Match.NONE),
        ([], ["120"], "10.3", Match.NONE),
        ([], [], "7.5", Match.NONE),
    ],
)
def test_match(sass: list[str], ptx: list[str], gpu: str, expected: Match) -> None:
    capability = read_capability(gpu)
    assert capability is not None
    assert match(GpuArchitectures(sass=tuple(sass), ptx=tuple(ptx)), capability) is expected


NAME = st.sampled_from(
    ["50", "60", "61", "70", "75", "80", "86", "89", "90", "90a", "100", "100a", "120", "120a"]
)
CODE = st.builds(
    lambda sass, ptx: GpuArchitectures(sass=tuple(sass), ptx=tuple(ptx)), st.lists(NAME), st.lists(NAME)
)
GPU = st.builds(Capability, st.integers(3, 13), st.integers(0, 9))


@given(CODE, CODE, GPU)
def test_more_code_never_runs_on_less(
    code: GpuArchitectures, more: GpuArchitectures, gpu: Capability
) -> None:
    both = GpuArchitectures(sass=code.sass + more.sass, ptx=code.ptx + more.ptx)
    order = [Match.NATIVE, Match.JIT, Match.NONE]
    assert order.index(match(both, gpu)) <= min(order.index(match(code, gpu)), order.index(match(more, gpu)))


@given(GPU)
def test_a_capability_reads_back(gpu: Capability) -> None:
    assert read_capability(str(gpu)) == gpu
    assert read_capability(f"sm_{gpu.major}{gpu.minor}") == gpu
    assert architecture(f"{gpu.major}{gpu.minor}").capability == gpu


def test_order() -> None:
    assert sorted(["120", "90a", "75", "90", "100"], key=sm_order) == ["75", "90", "90a", "100", "120"]
