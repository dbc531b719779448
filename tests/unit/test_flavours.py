"""Flavours: which can exist, what they are made of, and what is near those that cannot."""

from __future__ import annotations

import re

import pytest
from rendered import one
from wishes import CATALOGUE, INDEX, RULES, images, matrix, planned
from wishes import cell as wish

from ortimg.core.content import Unit
from ortimg.core.flavours import Flavours, lowest_glibc
from ortimg.core.model import Cell, Flavour
from ortimg.core.render import manifest
from ortimg.core.rules import Refusal
from ortimg.core.stages import split_stages
from ortimg.errors import ConfigError

FLAVOURS = Flavours(INDEX, RULES)
DEVEL = ("1.23.2", "12.6", "9", "debian13", "devel")
PYTHON = ("1.17.1", "11.8", "8", "debian12", "python3.11")


def resolved(*values: str) -> Cell:
    cell = FLAVOURS.cell(*values)
    assert isinstance(cell, Cell), cell
    return cell


def test_identifiers() -> None:
    assert resolved(*DEVEL).identifier == "1.23.2-cuda12.6-cudnn9-debian13-devel"
    assert resolved(*PYTHON).identifier == "1.17.1-cuda11.8-cudnn8-debian12-python3.11"


@pytest.mark.parametrize(
    ("ort", "cuda", "cudnn", "base", "flavour", "numpy"),
    [
        ("1.16.3", "11.8", "8", "debian12", "python3.11", "1"),
        ("1.17.1", "11.8", "8", "ubuntu24.04", "python3.12", "1"),
        ("1.18.0", "11.8", "8", "rocky9", "python3.9", "1"),
        ("1.18.0", "11.8", "8", "ubuntu22.04", "python3.10", "1"),
        ("1.19.2", "12.6", "9", "rocky9", "python3.9", "2"),
        ("1.23.2", "12.6", "9", "debian13", "python3.13", "2"),
        ("1.30.0", "13.0", "9", "debian12", "python3.11", "2"),
    ],
)
def test_python(ort: str, cuda: str, cudnn: str, base: str, flavour: str, numpy: str) -> None:
    """The wheel of the very version for the very Python, and a NumPy that it can be imported with."""
    cell = resolved(ort, cuda, cudnn, base, flavour)
    tag = flavour.removeprefix("python").replace(".", "")
    assert cell.wheels[0].requirement == f"onnxruntime-gpu=={ort}"
    assert f"-cp{tag}-cp{tag}-manylinux" in cell.wheels[0].filename
    [found] = [wheel for wheel in cell.wheels if wheel.requirement.startswith("numpy==")]
    assert found.requirement.startswith(f"numpy=={numpy}.")
    assert f"-cp{tag}-" in found.filename


@pytest.mark.parametrize(
    ("values", "reason", "nearest"),
    [
        (
            ("1.17.1", "11.8", "8", "debian12", "python3.13"),
            "the Python of Debian 12 (bookworm) is 3.11, not 3.13",
            "1.17.1-cuda11.8-cudnn8-debian12-python3.11",
        ),
        (
            ("1.17.1", "12.2", "8", "debian12", "python3.11"),
            "the wheel of onnxruntime-gpu 1.17.1 is for CUDA 11, not 12",
            "1.17.1-cuda11.8-cudnn8-debian12-python3.11",
        ),
        (
            ("1.18.0", "12.2", "8", "debian12", "python3.11"),
            "the wheel of onnxruntime-gpu 1.18.0 is for CUDA 11, not 12",
            "1.18.0-cuda11.8-cudnn8-debian12-python3.11",
        ),
        (
            ("1.16.2", "11.8", "8", "debian12", "python3.11"),
            "no wheel of onnxruntime-gpu 1.16.2 is known",
            "1.16.3-cuda11.8-cudnn8-debian12-python3.11",
        ),
        (
            ("1.17.1", "11.8", "8", "debian13", "python3.13"),
            "onnxruntime-gpu 1.17.1 has no wheel for Python 3.13; it has one for 3.8, 3.9, 3.10, 3.11, 3.12",
            None,
        ),
        (
            ("1.16.3", "11.8", "8", "centos7", "python3.8"),
            "what CentOS 7 calls its packages for the flavour python3.8 is not known",
            None,
        ),
        (
            ("1.16.2", "11.8", "8", "centos7", "devel"),
            "what CentOS 7 calls its packages for the flavour devel is not known",
            "1.16.2-cuda11.8-cudnn8-debian12-devel",
        ),
        (
            ("1.17.1", "11.8", "8", "ubuntu18.04", "python3.8"),
            "Ubuntu 18.04 has no Python 3 of its own that is known",
            None,
        ),
        (
            ("1.16.2", "12.2", "8", "debian12", "devel"),
            "ONNX Runtime 1.16.2 has no release archive for CUDA 12",
            "1.16.2-cuda11.8-cudnn8-debian12-devel",
        ),
        (
            ("1.17.1", "11.8", "8", "debian12", "python3"),
            'no flavour "python3" is known; there is runtime, devel, python3.8',
            "1.17.1-cuda11.8-cudnn8-debian12",
        ),
    ],
)
def test_refused(values: tuple[str, str, str, str, str], reason: str, nearest: str | None) -> None:
    found = FLAVOURS.cell(*values)
    assert isinstance(found, Refusal)
    assert reason in found.reason
    near = FLAVOURS.nearest(*values)
    assert near is not None
    if nearest is not None:
        assert near == nearest


def test_the_glibc_of_the_wheel_counts() -> None:
    """Those of 1.17 and 1.18.0 are for glibc 2.28, though their libraries ask for 2.27."""
    assert lowest_glibc("a-1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl") == "2.27"
    assert lowest_glibc("a-1-cp311-cp311-manylinux_2_28_x86_64.whl") == "2.28"
    assert lowest_glibc("a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl") == "2.17"
    assert lowest_glibc("a-1-py3-none-any.whl") is None


def test_a_matrix_with_flavours() -> None:
    """Another Python than the base's own is dropped, with its reason; one that no base has is a fault."""
    axes = matrix(["1.17.1"], ["11.8"], ["8"], ["debian12", "ubuntu24.04"])
    plan = planned(images(matrix={**axes, "flavour": ["runtime", "devel", "python3.11", "python3.12"]}))
    assert [cell.identifier for cell in plan.cells] == [
        "1.17.1-cuda11.8-cudnn8-debian12",
        "1.17.1-cuda11.8-cudnn8-debian12-devel",
        "1.17.1-cuda11.8-cudnn8-debian12-python3.11",
        "1.17.1-cuda11.8-cudnn8-ubuntu24.04",
        "1.17.1-cuda11.8-cudnn8-ubuntu24.04-devel",
        "1.17.1-cuda11.8-cudnn8-ubuntu24.04-python3.12",
    ]
    assert [(row.identifier, row.nearest) for row in plan.excluded] == [
        ("1.17.1-cuda11.8-cudnn8-debian12-python3.12", "1.17.1-cuda11.8-cudnn8-debian12-python3.11"),
        ("1.17.1-cuda11.8-cudnn8-ubuntu24.04-python3.11", "1.17.1-cuda11.8-cudnn8-ubuntu24.04-python3.12"),
    ]
    with pytest.raises(ConfigError) as caught:
        planned(images(matrix={**axes, "flavour": ["runtime", "python3.13"]}))
    [problem] = caught.value.problems
    assert '"python3.13" yields no cell: the Python of Debian 12 (bookworm) is 3.11, not 3.13' in problem
    assert problem.endswith("; nearest: 1.17.1-cuda11.8-cudnn8-debian12-python3.11")


def test_an_include_that_cannot_exist_names_the_nearest_of_its_flavour() -> None:
    with pytest.raises(ConfigError) as caught:
        planned(images(include=[wish("1.17.1", "12.2", flavour="python3.11")]))
    [problem] = caught.value.problems
    assert problem.endswith("; nearest: 1.17.1-cuda11.8-cudnn8-debian12-python3.11")


def test_every_refusal_names_a_cell_that_can_exist() -> None:
    axes = matrix(
        ["1.16.2", "1.17.1", "1.23.2", "1.30.0"], ["11.8", "12.6", "13.0"], ["8", "9"], ["debian12", "rocky9"]
    )
    plan = planned(images(matrix={**axes, "flavour": ["devel", "python3.9", "python3.11"]}))
    assert len(plan.cells) + len(plan.excluded) == 4 * 3 * 2 * 2 * 3
    for row in plan.excluded:
        assert row.nearest is not None
        ort, cuda, cudnn, base, *flavour = row.nearest.split("-")
        near = FLAVOURS.cell(
            ort, cuda.removeprefix("cuda"), cudnn.removeprefix("cudnn"), base, *(flavour or ["runtime"])
        )
        assert isinstance(near, Cell)
        assert near.flavour.python or near.flavour is Flavour.DEVEL, "the flavour is given up last"


def test_the_facts_about_wheels_are_whole() -> None:
    for row in CATALOGUE.python_releases:
        assert row.cuda_major == (11 if row.version < "1.19" else 12 if row.version < "1.27" else 13)
        for file in row.files:
            tag = f"cp{file.python.replace('.', '')}"
            assert file.filename.startswith(f"onnxruntime_gpu-{row.version}-{tag}-{tag}-manylinux")
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.size > 50_000_000
    known = {(row.version, row.filename, row.sha256) for row in _wheels_of_releases()}
    listed = {(row.version, f.filename, f.sha256) for row in CATALOGUE.python_releases for f in row.files}
    assert known <= listed, "the wheels that stand in for an archive are among them, with the same hashes"
    for part in CATALOGUE.python_sets:
        names = [wheel.requirement.partition("==")[0] for wheel in part.files]
        assert names == sorted(set(names))
        for wheel in part.files:
            name, version = wheel.requirement.split("==")
            assert wheel.filename.startswith(f"{name}-{version}-")


class _Known:
    def __init__(self, version: str, filename: str, sha256: str) -> None:
        self.version, self.filename, self.sha256 = version, filename, sha256


def _wheels_of_releases() -> list[_Known]:
    found = ((row.version, row.wheel) for row in CATALOGUE.releases if row.wheel)
    return [_Known(version, wheel.filename, wheel.sha256) for version, wheel in found]


def test_devel_stands_on_the_units_of_runtime() -> None:
    devel, runtime = resolved(*DEVEL), resolved(*DEVEL[:4], "runtime")
    ours, theirs = split_stages(one(devel)), split_stages(one(runtime))
    for unit in (Unit.CUDA, Unit.ORT, Unit.VERIFIER, Unit.STUB):
        assert ours[unit.value].text == theirs[unit.value].text
    assert ours["ort-unpack"].text == theirs["ort-unpack"].text
    assert "ort-devel" not in theirs
    assert ours["ort-devel"].uses == ("ort", "ort-devel-unpack")


def test_what_is_installed_is_part_of_the_base_alone() -> None:
    for values, installer, package in (
        (DEVEL, "apt-get install", "cmake"),
        (PYTHON, "apt-get install", "python3"),
        (("1.18.0", "12.2", "8", "rocky9", "devel"), "microdnf install", "gcc-c++"),
    ):
        stages = split_stages(one(resolved(*values)))
        having = [name for name, stage in stages.items() if installer in stage.text]
        assert having == ["base"]
        assert package in stages["base"].text
    bare = split_stages(one(resolved(*DEVEL[:4], "runtime")))["base"]
    assert bare.text == "FROM debian:13-slim AS base\n"


def test_a_python_image_finds_its_packages_by_a_path_file() -> None:
    text = one(resolved(*PYTHON))
    path_file = "/usr/lib/python3/dist-packages/onnxruntime.pth"
    assert f"{path_file} <<'LIST'\n/opt/onnxruntime/1.17.1/python3.11\nLIST\n" in text
    assert "/opt/onnxruntime/current/lib" not in text, "Python opens the libraries by their paths"
    assert "onnxruntime-linux-x64" not in text, "the wheel is there instead of the archive"
    rocky = one(resolved("1.18.0", "11.8", "8", "rocky9", "python3.9"))
    assert "/usr/lib/python3.9/site-packages/onnxruntime.pth <<" in rocky


def test_the_manifest_tells_where_python_is() -> None:
    found = manifest(resolved(*PYTHON))["ort"]
    assert isinstance(found, dict)
    assert found["python"] == {
        "interpreter": "/usr/bin/python3",
        "site": "/opt/onnxruntime/1.17.1/python3.11",
    }
    runtime = manifest(resolved(*DEVEL))["ort"]
    assert isinstance(runtime, dict)
    assert "python" not in runtime
