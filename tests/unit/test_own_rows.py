"""A user's own `catalogue/` folder: more rows, other rows, and every fault of them with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from wishes import CATALOGUE, cell, images

from ortimg.cli import cli
from ortimg.core.own_rows import with_own_rows
from ortimg.errors import ConfigError
from ortimg.project import load_project

SHA = "0123456789abcdef" * 4
RELEASE = f"""\
releases:
  - version: "1.99.0"
    cuda_major: 11
    cudnn_major: 8
    cuda_build: "11.8"
    cuda_confidence: A
    asset: onnxruntime-linux-x64-gpu-1.99.0.tgz
    sha256: {SHA}
    soname: libonnxruntime.so.1
    needed: [libcublasLt.so.11, libcudart.so.11.0]
    needed_confidence: A
    glibc: "2.17"
    glibcxx: "3.4.19"
"""
BASE = """\
bases:
  - {name: own1, image: "own.example.com/os:1", title: Own 1, glibc: "2.36", glibcxx: "3.4.30"}
"""


def project(folder: Path, **files: str) -> Path:
    (folder / "images.yaml").write_text(images(include=[cell("1.99.0", "11.8", base="own1")]))
    (folder / "catalogue").mkdir()
    for name, text in files.items():
        (folder / "catalogue" / f"{name}.yaml").write_text(text)
    return folder


def ortimg(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), *words])


def faults(**files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        with_own_rows(CATALOGUE, {f"{name}.yaml": text for name, text in files.items()})
    return list(caught.value.problems)


def test_tomorrows_release_on_another_base(tmp_path: Path) -> None:
    project(tmp_path, ort=RELEASE, bases=BASE)
    identifier = "1.99.0-cuda11.8-cudnn8-own1"
    assert ortimg(tmp_path, "list").stdout == f"{identifier}\n"
    assert ortimg(tmp_path, "render").exit_code == 0
    text = (tmp_path / "dockerfiles" / identifier / "Dockerfile").read_text()
    assert "FROM own.example.com/os:1 AS base" in text
    assert f"ADD --checksum=sha256:{SHA}" in text
    assert "/v1.99.0/onnxruntime-linux-x64-gpu-1.99.0.tgz" in text


def test_archives_of_ones_own_place(tmp_path: Path) -> None:
    url = 'url: "https://own.example.com/{asset}?"\n'
    assert any("can stand in a Dockerfile" in line for line in faults(ort=url + RELEASE))
    folder = project(tmp_path, ort=url.replace("?", "") + RELEASE, bases=BASE)
    (row,) = load_project(folder).plan.cells
    assert row.release.url == "https://own.example.com/onnxruntime-linux-x64-gpu-1.99.0.tgz"


def test_nothing_but_ones_own_rows_changes() -> None:
    more = with_own_rows(CATALOGUE, {"ort.yaml": RELEASE, "bases.yaml": BASE})
    assert more.releases[:-1] == CATALOGUE.releases
    assert more.bases[:-1] == CATALOGUE.bases
    assert (more.cuda_sets, more.no_assets, more.layouts) == (
        CATALOGUE.cuda_sets,
        CATALOGUE.no_assets,
        CATALOGUE.layouts,
    )
    assert with_own_rows(CATALOGUE, {}) is CATALOGUE


def test_a_row_takes_anothers_place_only_when_it_says_so() -> None:
    mine = 'bases:\n  - name: debian12\n    image: "m.example.com/debian:12"\n    title: Mine\n'
    mine += '    glibc: "2.36"\n    glibcxx: null\n'
    assert faults(bases=mine) == [
        "catalogue/bases.yaml:2: bases[0]: the base debian12 is in ortimg's own catalogue already; write "
        "`replaces: true` here if this row is to take its place"
    ]
    replaced = with_own_rows(CATALOGUE, {"bases.yaml": mine + "    replaces: true\n"})
    assert [row.name for row in replaced.bases] == [row.name for row in CATALOGUE.bases]
    assert replaced.bases[0].image == "m.example.com/debian:12"
    assert faults(ort=RELEASE + "    replaces: true\n") == [
        "catalogue/ort.yaml:14: releases[0].replaces: ONNX Runtime 1.99.0 for CUDA 11 is not in ortimg's own "
        "catalogue; leave this out"
    ]
    assert faults(bases=BASE + BASE.partition("\n")[2]) == [
        "catalogue/bases.yaml:3: bases[1]: the base own1 is here twice, first in line 2"
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"1.99.0"', "1.20", '2: releases[0].version: YAML reads 1.20 as the number 1.2; write "1.20"'),
        ('"1.99.0"', "1", '2: releases[0].version: this is the number 1; write "1"'),
        ('"1.99.0"', '"1.99-rc"', '2: releases[0].version: "1.99-rc" is no version'),
        (
            "cuda_major: 11",
            'cuda_major: "11"',
            "3: releases[0].cuda_major: a whole number such as 12 belongs",
        ),
        (
            "cuda_major: 11",
            "cuda_major: 11.0",
            'a whole number such as 12 belongs here, without quotes; this is "11.0"',
        ),
        (
            "cuda_major: 11",
            "cuda_major: 0x1F",
            "3: releases[0].cuda_major: a whole number such as 12 belongs",
        ),
        ("cuda_major:", "cuda_majr:", '3: releases[0].cuda_majr: unknown key; did you mean "cuda_major"?'),
        ("    glibc: ", "    # ", '2: releases[0]: "glibc" is missing'),
        (
            "cuda_confidence: A",
            "cuda_confidence: Z",
            '6: releases[0].cuda_confidence: "Z" is none of A, B, C, U',
        ),
        (
            "  glibc",
            '  gpu: {sass: ["9"]}\n    glibc',
            '12: releases[0].gpu.sass[0]: "9" is no GPU architecture',
        ),
        ("  glibc", "  gpu: {ptx: [x]}\n    glibc", '12: releases[0].gpu.ptx[0]: "x" is no GPU architecture'),
        ("  glibc", '  gpu: {ptx_isa: "x"}\n    glibc', '12: releases[0].gpu.ptx_isa: "x" is no version'),
        ("  glibc", "  maven: {coordinates: a b}\n    glibc", '"a b" is no "group:artifact:version"'),
        (SHA, SHA[:-1], f'8: releases[0].sha256: "{SHA[:-1]}" is no sha256'),
        ("so.1\n", "so.1; rm -rf /\n", '9: releases[0].soname: "libonnxruntime.so.1; rm -rf /" is no plain'),
        ("[libcublasLt.so.11,", "[libcublasLt.so.11, 5,", "10: releases[0].needed[1]: this is the number 5"),
        ("[libcublasLt.so.11,", "{libcublasLt.so.11: x,", "not YAML"),
        ("releases:", "release:", '1: release: unknown key; did you mean "releases"?'),
        ("gpu-1.99.0.tgz", '"gpu-${X}.tgz"', '7: releases[0].asset: "$" cannot stand in'),
        ("\n    soname", "\n\tsoname", "indented with a tab"),
        ("    soname", "    soname: x\n    soname", "written twice"),
    ],
)
def test_faults_of_a_row(old: str, new: str, expected: str) -> None:
    assert old in RELEASE
    text = RELEASE.replace("onnxruntime-linux-x64-gpu-1.99.0.tgz", new.strip('"')) if "gpu-$" in new else ""
    found = faults(ort=text or RELEASE.replace(old, new, 1))
    assert all(line.startswith("catalogue/ort.yaml:") for line in found)
    assert len({line.split(": ")[1] for line in found}) == len(found), "one word about each value"
    assert any(expected in line for line in found), found


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("apt", "zypper", '2: bases[0].packages.installer: "zypper" is none of apt, microdnf'),
        ("/x/site", '"/x y;id"', '2: bases[0].python.site: "/x y;id" is no plain folder such as /'),
        ("/x/site", "x/site", '"x/site" is no plain folder'),
        ("[g++]", "['g++; id']", '2: bases[0].packages.devel[0]: "g++; id" is no plain name'),
    ],
)
def test_faults_of_a_bases_packages(old: str, new: str, expected: str) -> None:
    more = 'packages: {installer: apt, devel: [g++], python: []}, python: {version: "3.11", site: /x/site}}'
    text = BASE.replace("}", f", {more}")
    assert with_own_rows(CATALOGUE, {"bases.yaml": text}).bases[-1].name == "own1"
    (found,) = faults(bases=text.replace(old, new, 1))
    assert expected in found


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("debian", "an image needs a tag"),
        ("Debian:12", "names are lower case"),
        ("https://x/y:1", 'leave out "https://"'),
        ("a b:1", "no part of a name"),
    ],
)
def test_faults_of_an_image(image: str, expected: str) -> None:
    (found,) = faults(bases=BASE.replace("own.example.com/os:1", image))
    assert found.startswith("catalogue/bases.yaml:2: bases[0].image: ")
    assert expected in found


def test_every_fault_of_every_file_at_once(tmp_path: Path) -> None:
    bases = BASE.replace("name: own1", "name: Own1") + "x: y\n"
    folder = project(tmp_path, ort="- a\n", bases=bases, base="bases: []\n", cuda="cuda_sets: {}\n")
    result = ortimg(folder, "list")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        'catalogue/base.yaml:1: no file of the catalogue is called so; did you mean "bases.yaml"?',
        'catalogue/bases.yaml:2: bases[0].name: "Own1" is no part of an image tag: lower-case letters and '
        "digits are, joined by . _ -",
        "catalogue/bases.yaml:3: x: unknown key; known are bases",
        "catalogue/ort.yaml:1: the file is not a mapping; it begins with `releases:`",
    ]


PYTHON = f"""\
python_releases:
  - version: "1.99.0"
    cuda_major: 11
    files:
      - {{python: "3.11", filename: onnxruntime_gpu-1.99.0-cp311-any.whl, sha256: {SHA}, size: 5}}
python_sets:
  - python: "3.11"
    numpy: 3
    files:
      - {{requirement: numpy==3.0.0, filename: numpy-3.0.0-py3-none-any.whl, sha256: {SHA}, size: 5}}
"""


def test_tomorrows_wheel_and_what_it_imports(tmp_path: Path) -> None:
    folder = project(tmp_path, ort=RELEASE, python=PYTHON)
    wish = cell("1.99.0", "11.8", flavour="python3.11")
    (folder / "images.yaml").write_text(images(include=[wish]))
    identifier = "1.99.0-cuda11.8-cudnn8-debian12-python3.11"
    assert ortimg(folder, "list").stdout == f"{identifier}\n"
    assert ortimg(folder, "render").exit_code == 0
    text = (folder / "dockerfiles" / identifier / "Dockerfile").read_text()
    assert f"onnxruntime-gpu==1.99.0 --hash=sha256:{SHA}\n" in text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('python: "3.11", filename', "python: 3.11, filename", 'write "3.11"'),
        (SHA, "abc", '"abc" is no sha256'),
        ("numpy: 3", 'numpy: "3"', "belongs here, without quotes"),
        ("requirement: numpy==3.0.0", 'requirement: "numpy; rm"', "is no plain name"),
        ("python_sets:", "python_set:", 'did you mean "python_sets"?'),
    ],
)
def test_faults_of_rows_about_python(old: str, new: str, expected: str) -> None:
    assert old in PYTHON
    found = faults(python=PYTHON.replace(old, new, 1))
    assert all(line.startswith("catalogue/python.yaml:") for line in found)
    assert any(expected in line for line in found), found


CUDA = f"""\
cuda_sets:
  - cuda: "11.9"
    cudnn: "8"
    cudnn_version: "8.9.9.1"
    wheels:
      - requirement: a==1
        filename: a-1.whl
        sha256: {SHA}
        size: 5
        libraries: [libcublasLt.so.11, libcudart.so.11.0]
"""


def test_another_set_of_cuda_libraries(tmp_path: Path) -> None:
    folder = project(tmp_path, ort=RELEASE, cuda=CUDA)
    (folder / "images.yaml").write_text(images(include=[cell("1.99.0", "11.9")]))
    assert ortimg(folder, "list").stdout == "1.99.0-cuda11.9-cudnn8-debian12\n"
    assert any('"none" is no version' in line for line in faults(cuda=CUDA.replace('"8"', '"none"')))


def test_fit_knows_ones_own_rows(tmp_path: Path) -> None:
    folder = project(tmp_path, ort=RELEASE, bases=BASE)
    result = ortimg(folder, "fit", "--all", "--ort", "1.99.0", "--driver", "520.61.05")
    assert "1.99.0-cuda11.8-cudnn8-" in result.stdout
    assert "own1" in result.stdout


@pytest.mark.parametrize("name", ["gpus", "drivers"])
def test_facts_that_are_not_for_a_project(tmp_path: Path, name: str) -> None:
    result = ortimg(project(tmp_path, **{name: "x: y"}), "list")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"catalogue/{name}.yaml:1: GPUs and drivers come with ortimg alone; a project"
    )


def test_an_empty_file_or_one_of_comments_says_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path, ort=RELEASE, bases=BASE, cuda="# later\n")
    result = ortimg(folder, "list")
    assert result.exit_code == 2
    assert result.stderr == "catalogue/cuda.yaml:1: the file is empty\n"


def test_ortimgs_own_files_pass_as_a_users() -> None:
    """The shape is the same: what ortimg ships can be copied and changed."""
    folder = Path(__file__).parents[2] / "ortimg" / "data"
    nothing = type(CATALOGUE)(releases=(), no_assets=(), cuda_sets=(), bases=())
    names = ("ort.yaml", "cuda.yaml", "bases.yaml", "python.yaml")
    texts = {name: (folder / name).read_text() for name in names}
    assert with_own_rows(nothing, texts) == CATALOGUE
