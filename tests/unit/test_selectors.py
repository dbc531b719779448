"""Globs over identifiers and tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wishes import cell, images, matrix, planned

from ortimg.core.selectors import select
from ortimg.errors import ConfigError

PLAN = planned(
    images(
        matrix=matrix(["1.16.2", "1.17.1"], ["11.8", "12.2"], ["8"], ["debian12", "debian13", "rocky9"]),
        include=[cell("1.23.2", "12.6", "9")],
        tags={"latest": "1.23.2-cuda12.6-cudnn9-debian12"},
    )
)
ALL = [row.identifier for row in PLAN.cells]


def chosen(*globs: str, skip: tuple[str, ...] = ()) -> list[str]:
    return [row.identifier for row in select(PLAN.cells, globs, skip, PLAN.excluded)]


@pytest.mark.parametrize(
    ("globs", "skip", "expected"),
    [
        ((), (), ALL),
        (("*",), (), ALL),
        (("1.16.2-*",), (), [name for name in ALL if name.startswith("1.16.2-")]),
        (("1.16.2-*",), ("*debian13",), ["1.16.2-cuda11.8-cudnn8-debian12", "1.16.2-cuda11.8-cudnn8-rocky9"]),
        (("*rocky9", "1.16.2-*debian12"), (), [n for n in ALL if n.endswith("rocky9") or n == ALL[0]]),
        (("latest",), (), ["1.23.2-cuda12.6-cudnn9-debian12"]),
        (("la*t",), (), ["1.23.2-cuda12.6-cudnn9-debian12"]),
        ((), ("latest", "1.1*"), None),
        (("1.17.1-cuda12.2-cudnn8-debian12",), (), ["1.17.1-cuda12.2-cudnn8-debian12"]),
        (
            ("*debian1[!3]",),
            ("1.17*",),
            ["1.16.2-cuda11.8-cudnn8-debian12", "1.23.2-cuda12.6-cudnn9-debian12"],
        ),
    ],
)
def test_table(globs: tuple[str, ...], skip: tuple[str, ...], expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(ConfigError, match="no cell is left"):
            chosen(*globs, skip=skip)
    else:
        assert chosen(*globs, skip=skip) == expected


def test_order_is_that_of_the_file() -> None:
    assert chosen("*rocky9", "*debian12") == [n for n in ALL if n.endswith(("rocky9", "debian12"))]


def test_nothing_matches() -> None:
    with pytest.raises(ConfigError) as caught:
        chosen("1.16.3-cuda11.8-cudnn8-debian12", "lates", skip=("nope-*",))
    first, second, third = caught.value.problems
    assert "1.16.2-cuda11.8-cudnn8-debian12" in first
    assert "near: latest" in second
    assert third.startswith('"nope-*" matches no cell')
    assert caught.value.hint


def test_case_counts() -> None:
    with pytest.raises(ConfigError):
        chosen("LATEST")


def test_an_excluded_combination_is_told_with_its_reason() -> None:
    with pytest.raises(ConfigError, match=r"no release archive for CUDA 12.*nearest: 1\.16\.2-cuda11\.8"):
        chosen("1.16.2-cuda12.2-*")


@given(st.sampled_from(["1.16*", "*debian12", "latest", "*cuda12*", "*rocky9"]))
def test_a_glob_and_its_skip_part_the_cells(glob: str) -> None:
    taken, left = chosen(glob), chosen(skip=(glob,))
    assert sorted([*taken, *left]) == sorted(ALL)
    assert not {*taken} & {*left}
