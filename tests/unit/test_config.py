"""images.yaml: its form, every fault at once, each with its line and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest
from wishes import cell, images, matrix

from ortimg.core.config import parse_config
from ortimg.data import images_schema
from ortimg.errors import ConfigError, ExitCode
from ortimg.project import load_project

ROOT = Path(__file__).parents[2]
GOOD = matrix(["1.16.2"], ["11.8"], ["8"], ["debian12"])


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "images.yaml")
    assert caught.value.exit_code is ExitCode.USAGE
    return list(caught.value.problems)


def problem(text: str) -> str:
    (only,) = problems(text)
    return only


def test_the_projects_own_file_is_what_the_design_says() -> None:
    config = parse_config((ROOT / "images.yaml").read_text("utf-8"), "images.yaml")
    axes = {axis: [wish.value for wish in wishes] for axis, wishes in config.matrix.items()}
    assert axes == {
        "ort": ["1.16.2", "1.17.1", "1.18.0"],
        "cuda": ["11.8", "12.2"],
        "cudnn": ["8"],
        "base": ["debian12", "debian13", "ubuntu22.04", "ubuntu24.04", "rocky9"],
        "flavour": ["runtime"],
    }
    assert [row.values for row in config.include] == [
        ("1.23.2", "12.6", "9", "debian12", "runtime"),
        ("1.23.2", "12.6", "9", "debian13", "runtime"),
        ("1.23.2", "12.6", "9", "debian13", "devel"),
        ("1.17.1", "11.8", "8", "debian12", "python3.11"),
        ("1.30.0", "13.0", "9", "debian12", "runtime"),
        ("1.30.0", "13.0", "9", "debian13", "runtime"),
    ]
    tags = {tag: wish.value for tag, wish in config.tags}
    assert tags["latest"] == "1.23.2-cuda12.6-cudnn9-debian12"
    assert tags["{ort}"] == "*-debian12"
    assert config.repository == "onnxruntime-gpu"


def test_lines() -> None:
    config = parse_config(
        "repository: r\nmatrix:\n  ort: ['1.16.2']\n  cuda:\n    - '11.8'\n    - '12.2'\n  cudnn: ['8']\n"
        "  base: [debian12]\nexclude:\n  - {base: debian12, reason: why}\n",
        "images.yaml",
    )
    assert [(wish.value, wish.line) for wish in config.matrix["cuda"]] == [("11.8", 5), ("12.2", 6)]
    assert config.exclude[0].line == 10


def test_versions_without_quotes() -> None:
    text = (
        "repository: r\nmatrix:\n  ort: [1.20]\n  cuda: [12.10]\n  cudnn: [8]\n  base: [no]\n"
        "include:\n  - {ort: 1.2e3, cuda: 2024-05-01, cudnn: 00123456, base: 22:22}\n"
    )
    assert problems(text) == [
        'images.yaml:3: matrix.ort[0]: YAML reads 1.20 as the number 1.2; write "1.20"',
        'images.yaml:4: matrix.cuda[0]: YAML reads 12.10 as the number 12.1; write "12.10"',
        'images.yaml:5: matrix.cudnn[0]: YAML reads 8 as a number; write "8"',
        'images.yaml:6: matrix.base[0]: YAML reads no as the truth value False; write "no"',
        'images.yaml:8: include[0].cuda: YAML reads 2024-05-01 as a date; write "2024-05-01"',
        'images.yaml:8: include[0].cudnn: YAML reads 00123456 as the number 42798; write "00123456"',
        'images.yaml:8: include[0].base: YAML reads 22:22 as the number 1342; write "22:22"',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "images.yaml:1: the file is not a mapping; it begins with a key such as `repository:`"),
        (
            "repository: r\n",
            'images.yaml:1: neither "matrix" nor "include" is there, so there is nothing to build',
        ),
        (images(matrix=GOOD).replace('"repository": "r", ', ""), 'images.yaml:1: "repository" is missing'),
        (images(matrix=GOOD, matrx={}), 'images.yaml:1: matrx: unknown key; did you mean "matrix"?'),
        (images(matrix={**GOOD, "distro": []}), "unknown key; known are ort, cuda, cudnn, base, flavour"),
        (images(matrix={**GOOD, "ort": "1.16.2"}), 'this is one text, a list belongs here; write ["1.16.2"]'),
        (images(matrix={**GOOD, "ort": {"a": "b"}}), "matrix.ort: this is a mapping, a list belongs here"),
        (images(matrix={**GOOD, "ort": []}), "images.yaml:1: matrix.ort: nothing is written here"),
        (images(matrix={**GOOD, "ort": None}), "images.yaml:1: matrix.ort: nothing is written here"),
        (images(matrix={**GOOD, "ort": [""]}), "images.yaml:1: matrix.ort[0]: nothing is written here"),
        (
            images(matrix={**GOOD, "ort": [["1.16.2"]]}),
            "matrix.ort[0]: this is a list, one text belongs here",
        ),
        (images(matrix={k: v for k, v in GOOD.items() if k != "cudnn"}), 'matrix: "cudnn" is missing'),
        (
            images(include=[{**cell("1.16.2", "11.8"), "cuda_version": "x"}]),
            "include[0].cuda_version: unknown",
        ),
        (images(include=[{"ort": "1.16.2", "cuda": "11.8", "cudnn": "8"}]), 'include[0]: "base" is missing'),
        (images(matrix=GOOD, exclude=[{"base": "debian12"}]), 'exclude[0]: "reason" is missing'),
        (images(matrix=GOOD, exclude=[{"reason": "x"}]), "exclude[0]: no axis is named"),
        (images(matrix=GOOD, exclude=[{}]), 'exclude[0]: "reason" is missing'),
        (images(matrix=GOOD, exclude=[{"base": "debian12", "reason": " "}]), "the reason is blank"),
        (images(matrix=GOOD, tags={"x": ["y"]}), "tags.x: this is a list, one text belongs here"),
        (images(matrix=GOOD, tags={"1.20.1+cu12": "y"}), '"+" is not allowed'),
        (images(matrix=GOOD, tags={"1.20.1\n": "y"}), r'"\n" is not allowed'),
        (images(matrix=GOOD, tags={"Ünïcode": "y"}), '"Ü" is not allowed'),
        (images(matrix=GOOD, tags={"-x": "y"}), 'begins with "-"'),
        (images(matrix=GOOD, tags={"a" * 129: "y"}), "129 characters, 128 are allowed"),
        (images(matrix=GOOD).replace('"r"', '"MyOrg/Ort"'), 'repository: "MyOrg/Ort" is no repository'),
        (images(matrix=GOOD).replace('"r"', '"a.b:99999/x"'), "ports are 1 to 65535, not 99999"),
        (
            images(matrix=GOOD).replace('"r"', '"localhost/ortimg/cuda"'),
            "among the names of ortimg's own units",
        ),
        (images(matrix=GOOD).replace('"r"', '"localhost/ortimg"'), "among the names of ortimg's own units"),
        (images(matrix=GOOD, origins={"registry": "a.b:99999"}), "ports are 1 to 65535, not 99999"),
        (images(matrix=GOOD, origins={"releases": "https://a.b:99999/x"}), "is no address"),
    ],
)
def test_one_fault(text: str, expected: str) -> None:
    found = problem(text)
    assert expected in found
    assert found.startswith("images.yaml:1: ")
    assert "\n" not in found


@pytest.mark.parametrize("key", ["platform", "Platforms", "arch", "architecture"])
@pytest.mark.parametrize("place", ["top", "matrix", "include"])
def test_platforms_are_refused_in_the_same_words(key: str, place: str) -> None:
    parts = {"matrix": {**GOOD}, "include": [cell("1.18.0", "11.8")]}
    if place == "top":
        parts[key] = "linux/arm64"
    else:
        parts[place] = (
            {**GOOD, key: ["arm64/v8"]} if place == "matrix" else [{**cell("1.18.0", "11.8"), key: "aarch64"}]
        )
    found = problem(images(**parts))
    assert "there is no ONNX Runtime GPU archive for Linux on arm64 (aarch64)" in found
    assert "linux/amd64" in found


def test_every_fault_at_once_in_the_order_of_the_file() -> None:
    text = (
        "repository: MyOrg/Ort\n"
        "matrix:\n"
        "  ort: ['1.16.2', 1.20]\n"
        "  cuda: '11.8'\n"
        "  cudnn: ['8']\n"
        "  cudnn: ['9']\n"
        "  bases: [debian12]\n"
        "tgas: {}\n"
    )
    found = problems(text)
    assert [line.split(": ")[0] for line in found] == [f"images.yaml:{line}" for line in (2, 3, 4, 6, 7, 8)]
    assert 'matrix: "base" is missing' in found[0]
    assert 'did you mean "base"?' in found[4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("repository: r\n\tmatrix: x\n", "indented with a tab"),
        ("a: &a [*a]\n", "around itself"),
        ("repository: r\n---\nrepository: s\n", "second document"),
        ("x: &x {a: b}\nmatrix:\n  <<: *x\n", "merge key"),
    ],
)
def test_yaml_that_cannot_be_trusted(text: str, words: str) -> None:
    assert any(words in line for line in problems(text))


def test_faults_of_form_and_of_planning_come_together(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(
        "repository: MyOrg/Ort\nmatrix:\n  ort: ['1.16.2', 1.20]\n  cuda: ['11.8']\n  cudnn: ['8']\n"
        "  base: [debian12, debian21]\n  distro: x\ntags:\n  x+y: 1.16.2-cuda11.8-cudnn8-debian12\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_project(tmp_path)
    assert [line.split(": ")[1] for line in caught.value.problems] == [
        "repository",
        "matrix.ort[1]",
        "matrix.base[1]",
        "matrix.distro",
        "tags.x+y",
    ]


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no images\.yaml in") as caught:
        load_project(tmp_path)
    assert "ortimg init" in str(caught.value.hint)


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_bytes(b"repository: r\nmatrix: \xff\n")
    with pytest.raises(ConfigError, match=r"images\.yaml:2: byte 22 is not UTF-8"):
        load_project(tmp_path)


def test_line_ends_of_other_systems(tmp_path: Path) -> None:
    unix = (ROOT / "images.yaml").read_bytes()
    (tmp_path / "images.yaml").write_bytes(b"\xef\xbb\xbf" + unix.replace(b"\n", b"\r\n"))
    assert load_project(tmp_path).plan == load_project(ROOT).plan


def test_the_schema_describes_every_key() -> None:
    def undescribed(schema: dict[str, object], path: str) -> list[str]:
        properties = schema.get("properties", {})
        assert isinstance(properties, dict)
        return [f"{path}.{key}" for key, value in properties.items() if "description" not in value]

    schema = images_schema()
    assert undescribed(schema, "") == []
    assert undescribed(schema["properties"]["matrix"], "matrix") == []
