"""The facts: complete, well-formed, and as they were measured."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
import yaml
from packaging.version import Version
from wishes import CATALOGUE, INDEX

from ortimg.core.catalogue import parse_catalogue
from ortimg.core.model import Confidence, OrtRelease
from ortimg.core.tags import tag_problem
from ortimg.errors import ConfigError

DATA = {name: (files("ortimg.data") / name).read_bytes() for name in ("ort.yaml", "cuda.yaml", "bases.yaml")}


def release(version: str, cuda_major: int) -> OrtRelease:
    row = INDEX.release(version, cuda_major)
    assert row is not None
    return row


def test_size_and_uniqueness() -> None:
    assert len(CATALOGUE.releases) == 64
    assert len({row.key for row in CATALOGUE.releases}) == 64
    assert len({row.asset for row in CATALOGUE.releases}) == 64
    assert len({row.url for row in CATALOGUE.releases}) == 64
    assert {row.version for row in CATALOGUE.no_assets}.isdisjoint(INDEX.releases)


def test_versions_are_in_their_own_order() -> None:
    order = [Version(row.version) for row in CATALOGUE.releases]
    assert order == sorted(order)
    assert (
        INDEX.versions().index("1.19.2") < INDEX.versions().index("1.20.0") < INDEX.versions().index("1.31.1")
    )


def test_hashes_look_like_hashes_and_none_is_used_twice() -> None:
    hashes = [row.sha256 for row in CATALOGUE.releases if row.sha256]
    hashes += [row.maven.sha256 for row in CATALOGUE.releases if row.maven and row.maven.sha256]
    hashes += [row.wheel.sha256 for row in CATALOGUE.releases if row.wheel]
    hashes += [wheel.sha256 for row in CATALOGUE.cuda_sets for wheel in row.wheels]
    assert all(re.fullmatch("[0-9a-f]{64}", text) for text in hashes)
    assert len(hashes) == len(set(hashes))
    assert all((row.sha256 is None) == (row.sha256_sources == 0) for row in CATALOGUE.releases)
    assert all(
        re.fullmatch("[0-9a-f]{40}", row.git_commit)
        for row in CATALOGUE.releases
        if row.git_commit is not None
    )


@pytest.mark.parametrize("name", DATA)
def test_no_version_is_a_number(name: str) -> None:
    def numbers(data: object, path: str = "") -> list[str]:
        if isinstance(data, dict):
            return [text for key, value in data.items() for text in numbers(value, f"{path}.{key}")]
        if isinstance(data, list):
            return [text for i, value in enumerate(data) for text in numbers(value, f"{path}[{i}]")]
        return [path] if isinstance(data, float | bool) else []

    assert numbers(yaml.load(DATA[name], yaml.CSafeLoader)) == []


def test_names_fit_into_tags() -> None:
    words = [row.name for row in CATALOGUE.bases] + [row.key for row in CATALOGUE.cuda_sets]
    words += [row.key for row in CATALOGUE.releases]
    assert [word for word in words if tag_problem(word)] == []


def test_assets_follow_no_pattern() -> None:
    wanted = [("1.17.1", 12), ("1.17.3", 12), ("1.18.1", 12), ("1.18.1", 11), ("1.26.0", 12), ("1.27.0", 12)]
    wanted += [("1.27.0", 13)]
    names = [release(version, major).asset for version, major in wanted]
    assert names == [
        "onnxruntime-linux-x64-cuda12-1.17.1.tgz",
        "onnxruntime-linux-x64-gpu-cuda12-1.17.3.tgz",
        "onnxruntime-linux-x64-gpu-cuda12-1.18.1.tgz",
        "onnxruntime-linux-x64-gpu-1.18.1.tgz",
        "onnxruntime-linux-x64-gpu-1.26.0.tgz",
        "onnxruntime-linux-x64-gpu_cuda12-1.27.0.tgz",
        "onnxruntime-linux-x64-gpu_cuda13-1.27.0.tgz",
    ]
    assert INDEX.release("1.18.1", 13) is None
    assert INDEX.release("1.20.1", 11) is None
    assert INDEX.release("latest", 12) is None


def test_urls() -> None:
    start = "https://github.com/microsoft/onnxruntime/releases/download"
    assert release("1.16.2", 11).url == f"{start}/v1.16.2/onnxruntime-linux-x64-gpu-1.16.2.tgz"
    assert all(row.url == f"{start}/v{row.version}/{row.asset}" for row in CATALOGUE.releases)


def test_cudnn_steps_from_8_to_9_with_a_patch_release() -> None:
    assert release("1.18.0", 12).cudnn_major == 8
    assert release("1.18.1", 12).cudnn_major == 9
    assert release("1.18.1", 11).cudnn_major == 8


def test_sonames() -> None:
    for row in CATALOGUE.releases:
        old = Version(row.version) < Version("1.19")
        assert row.soname == (f"libonnxruntime.so.{row.version}" if old else "libonnxruntime.so.1")


def test_needed_libraries_are_of_the_rows_own_majors() -> None:
    numbers = {  # SONAME numbers by CUDA major
        "libcublas": {11: "11", 12: "12", 13: "13"},
        "libcublasLt": {11: "11", 12: "12", 13: "13"},
        "libcudart": {11: "11.0", 12: "12", 13: "13"},
        "libcufft": {11: "10", 12: "11", 13: "12"},
        "libcurand": {11: "10", 12: "10", 13: "10"},
        "libnvrtc": {12: "12", 13: "13"},
        "libcuda": {12: "1", 13: "1"},
    }
    for row in CATALOGUE.releases:
        for library in (*row.needed, *row.dlopened):
            name, number = library.split(".so.")
            expected = str(row.cudnn_major) if name.startswith("libcudnn") else numbers[name][row.cuda_major]
            assert number == expected, f"{row.key}: {library}"
    unknown = [row.key for row in CATALOGUE.releases if not row.needed]
    assert unknown == [row.key for row in CATALOGUE.releases if row.needed_confidence is Confidence.UNKNOWN]


def test_fallbacks_stand_only_where_their_cuda_major_is_known() -> None:
    maven = [row.key for row in CATALOGUE.releases if row.maven]
    assert maven == [
        *(f"1.16.{patch}-cuda11" for patch in range(4)),
        *(f"1.17.{patch}-cuda11" for patch in (0, 1)),
        *(f"{version}-cuda12" for version in ("1.18.0", "1.20.0", "1.22.0", "1.23.2")),
    ]
    for row in CATALOGUE.releases:
        if row.maven:
            assert row.maven.coordinates == f"com.microsoft.onnxruntime:onnxruntime_gpu:{row.version}"
        if row.wheel:
            assert Version(row.version) >= Version("1.19")
            assert row.cuda_major == (12 if Version(row.version) < Version("1.27") else 13)
            assert row.wheel.requirement == f"onnxruntime-gpu=={row.version}"
            assert row.wheel.filename.startswith(f"onnxruntime_gpu-{row.version}-cp311-")


def test_archives_that_were_replaced_in_place_have_no_hash() -> None:
    assert release("1.20.0", 12).sha256 is None
    assert release("1.21.0", 12).sha256 is None
    assert release("1.18.0", 12).sha256 is None, "no public source is known"


def test_cuda_sets() -> None:
    assert [row.key for row in CATALOGUE.cuda_sets] == [
        "11.8-cudnn8",
        "12.2-cudnn8",
        "12.6-cudnn9",
        "12.8-cudnn9",
        "13.0-cudnn9",
    ]
    for row in CATALOGUE.cuda_sets:
        assert len(row.libraries) == len(set(row.libraries))
        assert row.cudnn_version.startswith(f"{row.cudnn}.")
        assert f"libcudnn.so.{row.cudnn}" in row.libraries
        dropped = {name for wheel in row.wheels for name in wheel.dropped}
        assert dropped.isdisjoint(row.libraries)
        for wheel in row.wheels:
            name, version = wheel.requirement.split("==")
            assert wheel.filename.startswith(f"{name.replace('-', '_')}-{version}-py3-none-manylinux")
            # From CUDA 13 on only cuDNN's wheel carries the major in its name.
            assert name.endswith(f"-cu{row.major}") or (row.major >= 13 and "-cu" not in name[-5:])
    cudnn8 = {name for row in CATALOGUE.cuda_sets if row.cudnn == "8" for name in row.libraries}
    assert "libcudnn_ops_train.so.8" in cudnn8
    assert not {"libcudnn_cnn_train.so.8", "libcudnn_adv_train.so.8"} & cudnn8


def test_bases() -> None:
    names = [row.name for row in CATALOGUE.bases]
    assert {"debian12", "debian13", "ubuntu22.04", "ubuntu24.04", "rocky9"} <= set(names)
    assert [row.name for row in CATALOGUE.bases if row.suite] == ["debian12", "debian13"]
    assert [row.name for row in CATALOGUE.bases if row.glibc is None] == ["alpine3.20"]
    rocky = next(row for row in CATALOGUE.bases if row.name == "rocky9")
    assert rocky.image == "rockylinux/rockylinux:9-minimal"


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            "ort.yaml",
            b'version: "1.16.2"',
            b"version: 1.16",
            r"releases: Expected `str`, got `float` - at `\$\[6\]",
        ),
        ("ort.yaml", b"soname: libonnxruntime.so.1.16.2", b"sonam: x", "unknown field `sonam`"),
        ("cuda.yaml", b"size: 875592", b'size: "1"', "cuda_sets: Expected `int`"),
        ("bases.yaml", b"bases:", b"\tbases:", "bases.yaml: "),
        ("bases.yaml", DATA["bases.yaml"], b"[]", "not a mapping"),
    ],
)
def test_a_broken_row_is_told(name: str, old: bytes, new: bytes, words: str) -> None:
    broken = {**DATA, name: DATA[name].replace(old, new, 1)}
    with pytest.raises(ConfigError, match=words):
        parse_catalogue(broken["ort.yaml"], broken["cuda.yaml"], broken["bases.yaml"])
