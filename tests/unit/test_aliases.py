"""Names of cells by rules: version order, one meaning each."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from wishes import cell, images, matrix, planned

from ortimg.core.aliases import Claim, name_problem, resolve
from ortimg.core.model import Cell
from ortimg.errors import ConfigError

TWO_BASES = matrix(["1.16.1", "1.16.2", "1.17.1"], ["11.8", "12.2"], ["8"], ["debian12", "ubuntu22.04"])


def names(**parts: Any) -> dict[str, str]:
    """Name → identifier."""
    cells = planned(images(**parts)).cells
    return {tag: row.identifier for row in cells for tag in row.tags}


def problems(**parts: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        planned(images(**parts))
    return [line.partition(": ")[2] for line in caught.value.problems]


def test_rules() -> None:
    tags = {
        "latest": "1.17.1-cuda12.2-cudnn8-debian12",
        "{ort_minor}": "*-debian12",
        "{ort}": "*-debian12",
        "{ort}-cuda{cuda_major}": "*-debian12",
        "{ort_minor}-{base}": "*",
    }
    old, new = "1.16.2-cuda11.8-cudnn8", "1.17.1-cuda12.2-cudnn8"
    assert names(matrix=TWO_BASES, tags=tags) == {
        "latest": f"{new}-debian12",
        "1.16": f"{old}-debian12",
        "1.17": f"{new}-debian12",
        "1.16.1": "1.16.1-cuda11.8-cudnn8-debian12",
        "1.16.2": f"{old}-debian12",
        "1.17.1": f"{new}-debian12",
        "1.16.1-cuda11": "1.16.1-cuda11.8-cudnn8-debian12",
        "1.16.2-cuda11": f"{old}-debian12",
        "1.17.1-cuda11": "1.17.1-cuda11.8-cudnn8-debian12",
        "1.17.1-cuda12": f"{new}-debian12",
        "1.16-debian12": f"{old}-debian12",
        "1.16-ubuntu22.04": f"{old}-ubuntu22.04",
        "1.17-debian12": f"{new}-debian12",
        "1.17-ubuntu22.04": f"{new}-ubuntu22.04",
    }


def test_a_plain_name_may_move_with_the_newest() -> None:
    assert names(matrix=TWO_BASES, tags={"latest": "*-debian12"}) == {
        "latest": "1.17.1-cuda12.2-cudnn8-debian12"
    }


def test_versions_have_their_own_order() -> None:
    """As text 1.9 is newer than 1.16 and 12.10 older than 12.2."""
    (row,) = planned(images(include=[cell("1.16.2", "11.8")])).cells

    def version(ort: str, cuda: str) -> Cell:
        release = msgspec.structs.replace(row.release, version=ort)
        return msgspec.structs.replace(
            row, release=release, cuda_set=msgspec.structs.replace(row.cuda_set, cuda=cuda)
        )

    rows = [version("1.9.0", "12.2"), version("1.16.9", "12.2"), version("1.16.10", "12.10")]
    rows += [version("1.16.10", "12.2"), version("1.2.0", "12.2")]
    claims = [Claim("{ort_major}", "*"), Claim("{ort}-cuda{cuda_major}", "1.16.10-*"), Claim("x", "1.[29].*")]
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        found, faults = resolve(claims, {row.identifier: row for row in rows})
        assert not faults
        assert found == {
            "1.16.10-cuda12.10-cudnn8-debian12": ("1", "1.16.10-cuda12"),
            "1.9.0-cuda12.2-cudnn8-debian12": ("x",),
        }


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (
            {"{ort}": "1.16.2-*"},
            '"{ort}": 1.16.2-cuda11.8-cudnn8-debian12 and 1.16.2-cuda11.8-cudnn8-ubuntu22.04 would both be '
            'called "1.16.2"; narrow the selector, such as "*-debian12", or put {base} into the name',
        ),
        (
            {"latest": "1.16.2-cuda11.8-cudnn8-debian12", "la{base}": "*-debian12"},
            None,
        ),
        (
            {"1.16": "1.16.1-cuda11.8-cudnn8-debian12", "{ort_minor}": "*-debian12"},
            '"{ort_minor}": "1.16" would mean 1.16.2-cuda11.8-cudnn8-debian12, and by "1.16" it means '
            "1.16.1-cuda11.8-cudnn8-debian12",
        ),
        ({"{ort}": "*-rocky9"}, '"*-rocky9" matches no cell; nearest: 1.1'),
        ({"{orts}": "*"}, 'there is no field "{orts}"; did you mean "ort"?'),
        ({"{}": "*"}, 'there is no field "{}"; there are ort, ort_minor, '),
        ({"{ort": "*"}, 'a brace in "{ort" has no partner'),
        ({"ort}-{ort}": "*"}, "has no partner"),
        ({"{ort}+{cuda}": "*-debian12"}, '"+" is not allowed'),
        ({"-{ort}": "*-debian12"}, 'begins with "-"'),
        (
            {"{ort}-cuda{cuda}-cudnn{cudnn}-debian12": "*-ubuntu22.04"},
            '"1.16.1-cuda11.8-cudnn8-debian12" is a cell\'s own identifier already',
        ),
    ],
)
def test_one_meaning_each(tags: dict[str, str], expected: str | None) -> None:
    if expected is None:
        assert names(matrix=TWO_BASES, tags=tags)
        return
    found = problems(matrix=TWO_BASES, tags=tags)
    assert found[0].startswith("tags.")
    assert expected in found[0]


@pytest.mark.parametrize(
    ("name", "selector", "flavours", "advice"),
    [
        ("{ort}", "*", ["runtime"], 'such as "*-debian12", or put {base} into the name'),
        (
            "{base}",
            "*-debian12*",
            ["runtime", "devel"],
            'such as "*-debian12", or put {flavour} into the name',
        ),
        ("{ort}", "*-devel", ["runtime", "devel"], 'such as "*-debian12-devel", or put {base} into the name'),
    ],
)
def test_the_advice_for_a_tie_is_about_what_differs(
    name: str, selector: str, flavours: list[str], advice: str
) -> None:
    wishes = matrix(["1.16.2"], ["11.8"], ["8"], ["debian12", "ubuntu22.04"]) | {"flavour": flavours}
    (found,) = problems(matrix=wishes, tags={name: selector})
    assert found.endswith(advice)


def test_two_rules_that_agree_are_fine() -> None:
    tags = {"1.16": "1.16.2-cuda11.8-cudnn8-debian12", "{ort_minor}": "1.16*-debian12"}
    assert names(matrix=TWO_BASES, tags=tags) == {"1.16": "1.16.2-cuda11.8-cudnn8-debian12"}


def test_what_the_grammar_of_tags_forbids_is_told_once() -> None:
    assert name_problem("{ort}" * 20) is None
    found = problems(matrix=TWO_BASES, tags={"{ort_minor}-" + "x" * 124: "*-debian12"})
    assert any("128 are allowed" in line for line in found)
