"""The matrix: every combination is a cell or an exclusion, and a wish that cannot be met is told."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wishes import CATALOGUE, INDEX, RULES, cell, images, matrix, planned

from ortimg.core.cells import MAX_COMBINATIONS, Plan, try_plan
from ortimg.core.config import AXES, read_config
from ortimg.core.rules import Refusal
from ortimg.core.tags import tag_problem
from ortimg.errors import ConfigError
from ortimg.project import load_project

ROOT = Path(__file__).parents[2]


def identifiers(plan: Plan) -> list[str]:
    return [row.identifier for row in plan.cells]


def problems(**parts: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        planned(images(**parts))
    return [line.removeprefix("images.yaml:1: ") for line in caught.value.problems]


def test_the_projects_own_matrix() -> None:
    plan = load_project(ROOT).plan
    bases = ["debian12", "debian13", "ubuntu22.04", "ubuntu24.04", "rocky9"]
    parts = ["1.16.2-cuda11.8", "1.17.1-cuda11.8", "1.17.1-cuda12.2", "1.18.0-cuda11.8", "1.18.0-cuda12.2"]
    expected = [f"{part}-cudnn8-{base}" for part in parts for base in bases]
    expected += ["1.23.2-cuda12.6-cudnn9-debian12", "1.23.2-cuda12.6-cudnn9-debian13"]
    expected += ["1.23.2-cuda12.6-cudnn9-debian13-devel", "1.17.1-cuda11.8-cudnn8-debian12-python3.11"]
    expected += ["1.30.0-cuda13.0-cudnn9-debian12", "1.30.0-cuda13.0-cudnn9-debian13"]
    assert identifiers(plan) == expected
    tags = {tag: row.identifier for row in plan.cells for tag in row.tags}
    assert tags["latest"] == tags["1.23"] == "1.23.2-cuda12.6-cudnn9-debian12"
    assert tags["1.16"] == tags["1.16.2-cuda11"] == "1.16.2-cuda11.8-cudnn8-debian12"
    assert tags["1.17.1"] == "1.17.1-cuda12.2-cudnn8-debian12"
    assert [row.identifier for row in plan.excluded] == [f"1.16.2-cuda12.2-cudnn8-{base}" for base in bases]
    for row in plan.excluded:
        assert row.reason.startswith("ONNX Runtime 1.16.2 has no release archive for CUDA 12")
        assert row.nearest == f"1.16.2-cuda11.8-cudnn8-{row.base}"


def test_cells_hold_the_facts() -> None:
    first = load_project(ROOT).plan.cells[0]
    assert first.release.asset == "onnxruntime-linux-x64-gpu-1.16.2.tgz"
    assert first.cuda_set.cudnn_version == "8.9.6.50"
    assert first.base.image == "debian:12-slim"


def test_a_wish_against_a_cell() -> None:
    plan = planned(
        images(
            matrix=matrix(["1.16.2", "1.17.1"], ["11.8"], ["8"], ["debian12", "rocky9"]),
            exclude=[{"ort": "1.17.1", "base": "rocky9", "reason": "nobody asked for it"}],
        )
    )
    assert len(plan.cells) == 3
    (row,) = plan.excluded
    assert (row.ort, row.base, row.reason, row.nearest) == ("1.17.1", "rocky9", "nobody asked for it", None)


def test_only_include() -> None:
    assert identifiers(planned(images(include=[cell("1.16.3", "11.8", base="centos7")]))) == [
        "1.16.3-cuda11.8-cudnn8-centos7"
    ]


NO_CUDA_12 = "ONNX Runtime 1.16.2 has no release archive for CUDA 12; it has one for CUDA 11 (cuDNN 8)"
GOOD = matrix(["1.16.2", "1.18.0"], ["11.8", "12.2"], ["8"], ["debian12", "debian13"])


CASES = [
    (
        {"matrix": {**GOOD, "ort": ["1.16.2", "1.17.2"]}},
        [
            'matrix.ort[1]: "1.17.2" yields no cell: ONNX Runtime 1.17.2 has no release archive for Linux '
            "and GPUs (no release with binaries); 1.17.3 has; nearest: 1.17.3-cuda11.8-cudnn8-debian12",
            f'matrix.cuda[1]: "12.2" yields no cell: {NO_CUDA_12}; nearest: 1.16.2-cuda11.8-cudnn8-debian12',
        ],
    ),
    (
        {"matrix": {**GOOD, "cuda": ["11.8", "12.4"]}},
        [
            f'matrix.cuda[1]: "12.4" yields no cell: {NO_CUDA_12}; there is no set of CUDA 12.4 and cuDNN 8 '
            "libraries; there are 11.8 (cuDNN 8), 12.2 (cuDNN 8), 12.6 (cuDNN 9), 12.8 (cuDNN 9), "
            "13.0 (cuDNN 9); nearest: 1.18.0-cuda12.2-cudnn8-debian12"
        ],
    ),
    (
        {"matrix": {**GOOD, "base": ["debian12", "alpine3.20"]}},
        [
            'matrix.base[1]: "alpine3.20" yields no cell: Alpine 3.20 has musl instead of glibc, and ONNX '
            "Runtime's libraries need glibc; nearest: 1.16.2-cuda11.8-cudnn8-debian12"
        ],
    ),
    (
        {"matrix": {**GOOD, "flavour": ["runtime", "devl"]}},
        ['matrix.flavour[1]: "devl" yields no cell: no flavour "devl" is known; there is runtime'],
    ),
    (
        {"matrix": matrix(["1.16.2"], ["12.2"], ["8"], ["debian12", "debian13"])},
        [
            f"matrix: no combination of the matrix yields a cell: {NO_CUDA_12}; "
            "nearest: 1.16.2-cuda11.8-cudnn8-debian12"
        ],
    ),
    (
        {"matrix": {**GOOD, "ort": ["latest"]}},
        ['matrix.ort[0]: "latest" yields no cell: "latest" is no version'],
    ),
    (
        {"matrix": {**GOOD, "ort": ["1.16.2", "1.18.0", "1.16.2"]}},
        ['matrix.ort[2]: "1.16.2" is on this axis twice, first in line 1'],
    ),
    (
        {"include": [cell("1.16.3", "12.4.1", "9"), cell("1.20.1", "11.8.0"), cell("1.18.1", "13.0", "9")]},
        [
            "include[0]: ONNX Runtime 1.16.3 has no release archive for CUDA 12; it has one for CUDA 11 "
            "(cuDNN 8); nearest: 1.16.3-cuda11.8-cudnn8-debian12",
            "include[1]: ONNX Runtime 1.20.1 has no release archive for CUDA 11; it has one for CUDA 12 "
            "(cuDNN 9); nearest: 1.20.1-cuda12.8-cudnn9-debian12",
            "include[2]: ONNX Runtime 1.18.1 has no release archive for CUDA 13; it has one for CUDA 11 "
            "(cuDNN 8) and CUDA 12 (cuDNN 9); nearest: 1.18.1-cuda12.6-cudnn9-debian12",
        ],
    ),
    (
        {"matrix": GOOD, "include": [cell("1.16.2", "11.8"), cell("1.16.3", "11.8"), cell("1.16.3", "11.8")]},
        [
            "include[0]: the cell 1.16.2-cuda11.8-cudnn8-debian12 is there already, from the matrix",
            "include[2]: the cell 1.16.3-cuda11.8-cudnn8-debian12 is there already, from line 1; leave",
        ],
    ),
    (
        {"matrix": GOOD, "exclude": [{"base": "rocky9", "reason": "x"}]},
        [
            "exclude[0]: matches no combination of the matrix; "
            '"rocky9" is not on the axis base (debian12, debian13)'
        ],
    ),
    (
        {"matrix": GOOD, "exclude": [{"ort": "1.16.2", "cuda": "12.2", "reason": "x"}]},
        ["exclude[0]: matches only combinations that cannot exist, which are dropped anyway; leave it out"],
    ),
    (
        {"matrix": GOOD, "exclude": [{"base": "debian13", "reason": "too new"}]},
        [f'"debian13" yields no cell: too new; {NO_CUDA_12}; `exclude` takes out what could be built; leave'],
    ),
    (
        {"matrix": GOOD, "exclude": [{"cudnn": "8", "reason": "too old"}]},
        ["matrix: no combination of the matrix yields a cell: too old; "],
    ),
    (
        {"matrix": GOOD, "tags": {"a": "1.16.2-cuda11.8-cudnn8-debian21"}},
        ['tags.a: there is no cell "1.16.2-cuda11.8-cudnn8-debian21"; nearest: 1.16.2-cuda11.8'],
    ),
    (
        {"matrix": GOOD, "tags": {"a": "1.16.2-cuda12.2-cudnn8-debian12"}},
        [f"tags.a: 1.16.2-cuda12.2-cudnn8-debian12 is not built: {NO_CUDA_12}; nearest: 1.16.2-cuda11"],
    ),
    (
        {"matrix": GOOD, "tags": {"1.16.2-cuda11.8-cudnn8-debian12": "1.16.2-cuda11.8-cudnn8-debian13"}},
        ["the tag is a cell's own identifier already, and cannot name 1.16.2-cuda11.8-cudnn8-debian13 too"],
    ),
]


@pytest.mark.parametrize(("parts", "expected"), CASES)
def test_wishes_that_cannot_be_met(parts: dict[str, Any], expected: list[str]) -> None:
    found = problems(**parts)
    assert len(found) == len(expected)
    for line, words in zip(found, expected, strict=True):
        assert words in line


@pytest.mark.parametrize("word", ["arm64", "aarch64", "debian12-arm64", "linux/arm64", "arm64/v8"])
def test_arm_is_refused_wherever_it_stands(word: str) -> None:
    places = [
        {"matrix": {**GOOD, "base": ["debian12", word]}},
        {"matrix": {**GOOD, "flavour": ["runtime", word]}},
        {"include": [cell("1.16.2", "11.8", base=word)]},
        {"include": [cell("1.16.2", "11.8", flavour=word)]},
    ]
    for parts in places:
        (found,) = problems(**parts)
        assert "there is no ONNX Runtime GPU archive for Linux on arm64 (aarch64)" in found


def test_a_matrix_beyond_all_measure_is_refused_before_it_is_planned() -> None:
    values = [f"11.{minor}" for minor in range(MAX_COMBINATIONS // 50)]
    (found,) = problems(matrix=matrix(INDEX.versions()[:30], values, ["8"], ["debian12", "debian13"]))
    assert found == "matrix: 120,000 combinations; more than 100,000 are not planned, write fewer values"


axis = {
    "ort": st.lists(st.sampled_from([*INDEX.versions(), "1.17.2"]), min_size=1, max_size=5, unique=True),
    "cuda": st.lists(st.sampled_from(["11.8", "12.2", "12.6", "12.4"]), min_size=1, max_size=4, unique=True),
    "cudnn": st.lists(st.sampled_from(["8", "9"]), min_size=1, max_size=2, unique=True),
    "base": st.lists(
        st.sampled_from([row.name for row in CATALOGUE.bases]), min_size=1, max_size=4, unique=True
    ),
}


@given(st.fixed_dictionaries(axis))
@settings(max_examples=60, deadline=None)
def test_every_combination_is_a_cell_or_an_exclusion(wish: dict[str, list[str]]) -> None:
    config, faults = read_config(images(matrix=wish), "images.yaml")
    assert config is not None
    assert not faults
    plan, found = try_plan(config, CATALOGUE)
    right = {name: [v for v in values if RULES.alone(name, v) is None] for name, values in wish.items()}
    combinations = [(*values, "runtime") for values in product(*(right[name] for name in AXES[:-1]))]
    cells = [
        (c.release.version, c.cuda_set.cuda, c.cuda_set.cudnn, c.base.name, "runtime") for c in plan.cells
    ]
    dropped = [tuple(getattr(row, name) for name in AXES) for row in plan.excluded]
    assert Counter([*cells, *dropped]) == Counter(combinations), "each once, none lost"
    assert cells == [values for values in combinations if values in set(cells)], "the order is the file's"
    assert len(set(identifiers(plan))) == len(plan.cells)
    assert all(tag_problem(name) is None for name in identifiers(plan))
    for row in plan.excluded:
        assert isinstance(RULES.resolve(row.ort, row.cuda, row.cudnn, row.base), Refusal)
        assert row.reason
        assert row.nearest is not None
    told = {problem.path for problem in found}
    for name, values in wish.items():
        used = {combination[AXES.index(name)] for combination in cells}
        for position, value in enumerate(values):
            if not cells or any(not right[other] for other in right):
                assert told, "a matrix without cells is a fault"
            else:
                assert (("matrix", name, position) in told) == (value not in used)


@given(st.fixed_dictionaries(axis), st.randoms())
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_file_changes_the_order_only(wish: dict[str, list[str]], random: Any) -> None:
    mixed = {name: random.sample(values, len(values)) for name, values in wish.items()}
    plans = []
    for parts in (wish, wish, mixed):
        config, _ = read_config(images(matrix=parts), "images.yaml")
        assert config is not None
        plans.append(try_plan(config, CATALOGUE)[0])
    assert plans[0] == plans[1]
    assert set(identifiers(plans[0])) == set(identifiers(plans[2]))
