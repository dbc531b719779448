"""`cudnn: none`: only where ONNX Runtime loads without cuDNN, and never without a word on what is lost."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hosts import DRIVERS, FACTS, host
from rendered import one
from wishes import CATALOGUE, INDEX, RULES, cell, images, planned

from ortimg.cli import cli
from ortimg.core.catalogue import Index
from ortimg.core.cudnn import is_cudnn
from ortimg.core.fit import fit
from ortimg.core.fit_table import fit_table
from ortimg.core.model import Cell, OrtRelease
from ortimg.core.render import manifest
from ortimg.core.rules import Refusal, Rules
from ortimg.errors import ConfigError

NONE = cell("1.30.0", "13.0", "none")
WITH = cell("1.30.0", "13.0", "9")


def made(ort: str = "1.30.0", cuda: str = "13.0", cudnn: str = "none") -> Cell:
    (only,) = planned(images(include=[cell(ort, cuda, cudnn)])).cells
    return only


@pytest.mark.parametrize(
    ("ort", "cuda", "words", "nearest"),
    [
        ("1.16.2", "11.8", "links to cuDNN 8", "1.16.2-cuda11.8-cudnn8-debian12"),
        ("1.20.1", "12.6", "links to cuDNN 9", "1.20.1-cuda12.6-cudnn9-debian12"),
        ("1.27.0", "13.0", "links to cuDNN 9", "1.27.0-cuda13.0-cudnn9-debian12"),
        ("1.30.0", "13.1", "no set of CUDA 13.1 libraries", "1.30.0-cuda13.0-cudnnnone-debian12"),
        ("1.30.0", "11.8", "no release archive for CUDA 11", "1.30.0-cuda12.8-cudnnnone-debian12"),
    ],
)
def test_refused(ort: str, cuda: str, words: str, nearest: str) -> None:
    found = RULES.resolve(ort, cuda, "none", "debian12")
    assert isinstance(found, Refusal)
    assert words in found.reason
    assert RULES.nearest(ort, cuda, "none", "debian12") == nearest


def test_a_base_without_cudnn_is_told_what_to_write_whatever_else_is_wished() -> None:
    wish = cell("1.20.1", "12.6", "none", base="nvidia/cuda:12.4.1-runtime-ubuntu22.04")
    with pytest.raises(ConfigError, match=r"write \"ubuntu22.04\".*1\.20\.1-cuda12\.6-cudnn9-ubuntu22\.04"):
        planned(images(include=[wish]))


def test_the_facts_decide_not_the_version() -> None:
    def allowed(row: OrtRelease) -> bool:
        # whichever the real row is not
        rows = msgspec.structs.replace(CATALOGUE, releases=(row,))
        cuda = {12: "12.6", 13: "13.0"}[row.cuda_major]
        return not isinstance(Rules(Index(rows)).pair(row.version, cuda, "none"), Refusal)

    late = next(row for row in CATALOGUE.releases if row.version == "1.30.0" and row.cuda_major == 13)
    early = next(row for row in CATALOGUE.releases if row.version == "1.23.2")
    assert allowed(late)
    assert not allowed(early)
    links = msgspec.structs.replace(late, needed=(*late.needed, "libcudnn.so.9"))
    assert not links.loads_cudnn_late
    assert not allowed(links)
    needed = tuple(name for name in early.needed if not is_cudnn(name))
    assert not allowed(msgspec.structs.replace(early, needed=needed))  # nothing says that it loads it later
    assert allowed(msgspec.structs.replace(early, needed=needed, dlopened=("libcudnn.so.9",)))


def test_every_release_that_loads_it_late_can_be_had_and_no_other() -> None:
    for row in CATALOGUE.releases:
        for cuda_set in CATALOGUE.cuda_sets:
            if cuda_set.major != row.cuda_major:
                continue
            with_it = RULES.pair(row.version, cuda_set.cuda, str(row.cudnn_major))
            without = RULES.pair(row.version, cuda_set.cuda, "none")
            if not isinstance(with_it, Refusal):
                assert isinstance(without, Refusal) is not row.loads_cudnn_late, row.key


def test_the_set_is_the_same_but_for_cudnn() -> None:
    whole, less = INDEX.sets["13.0", "9"], INDEX.sets["13.0", "none"]
    assert less.key == "13.0-cudnnnone"
    assert less.libraries == tuple(name for name in whole.libraries if not is_cudnn(name))
    assert {wheel.filename for wheel in whole.wheels} - {wheel.filename for wheel in less.wheels} == {
        "nvidia_cudnn_cu13-9.14.0.64-py3-none-manylinux_2_27_x86_64.whl"
    }
    assert less.gpu == tuple(row for row in whole.gpu if not is_cudnn(row.library))


def test_it_is_no_advice_for_other_wishes() -> None:
    assert RULES.nearest("1.30.0", "13.0", "8", "debian12") == "1.30.0-cuda13.0-cudnn9-debian12"
    assert RULES.nearest("1.30.0", "13.0", "", "nowhere") == "1.30.0-cuda13.0-cudnn9-debian12"


def test_the_image_with_cudnn_keeps_the_short_names() -> None:
    plan = planned(images(include=[NONE, WITH], tags={"{ort_minor}": "*", "{ort}-cudnn{cudnn}": "*"}))
    assert {row.cuda_set.cudnn: row.tags for row in plan.cells} == {
        "none": ("1.30.0-cudnnnone",),
        "9": ("1.30", "1.30.0-cudnn9"),
    }


def test_list_says_what_is_not_available(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(images(include=[NONE, WITH]))
    result = CliRunner().invoke(cli, ["-C", str(tmp_path), "list"])
    assert result.stdout.splitlines() == [
        "1.30.0-cuda13.0-cudnnnone-debian12",
        "1.30.0-cuda13.0-cudnn9-debian12",
    ]
    assert result.stderr.startswith("warning: 1.30.0-cuda13.0-cudnnnone-debian12: Conv not available")
    data = json.loads(CliRunner().invoke(cli, ["-C", str(tmp_path), "list", "--json"]).stdout)
    assert [row["cudnn"] for row in data["cells"]] == ["none", "9"]
    assert [row["identifier"] for row in data["warnings"]] == ["1.30.0-cuda13.0-cudnnnone-debian12"]


def test_fit_says_what_is_not_available_and_prefers_the_other() -> None:
    answers = fit([made(), made(cudnn="9")], host("580.65.06", "T4"), DRIVERS)
    assert [row.cell.cuda_set.cudnn for row in answers] == ["9", "none"]
    assert not any("Conv" in reason for reason in answers[0].reasons)
    assert any("Conv not available" in reason for reason in answers[1].reasons)


def test_fit_finds_them_where_they_are_asked_for() -> None:
    def identifiers(*more: str) -> list[str]:
        result = CliRunner().invoke(cli, ["fit", "--all", "--json", "--ort", "1.30.0", "--gpu", "T4", *more])
        return [row["identifier"] for row in json.loads(result.stdout)["cells"]]

    assert "1.30.0-cuda13.0-cudnnnone-debian12" in identifiers("--cudnn", "none")
    assert all("-cudnn9-" in name for name in identifiers())


def test_the_fit_table_says_what_is_not_available() -> None:
    text = fit_table([made(), made(cudnn="9")], FACTS)
    assert "| 1.30.0 | 13.0 | none (Conv not available) | 580 |" in text
    assert "| 1.30.0 | 13.0 | 9.14.0.64 | 580 |" in text


def test_the_dockerfile_has_no_cudnn_and_says_so() -> None:
    text = one(made())
    assert "# Conv not available: there is no cuDNN" in text
    assert 'ortimg.cudnn="none"' in text
    assert "without cuDNN (Conv not available)" in text
    assert not any(is_cudnn(word) or word.startswith("nvidia-cudnn") for word in text.split())
    assert "Conv not available" not in one(made(cudnn="9"))


def test_the_manifest_promises_no_cudnn() -> None:
    data = json.loads(json.dumps(manifest(made())))
    assert data["cudnn"] is None
    assert not any(map(is_cudnn, (*data["ort"]["dlopened"], *data["cuda"]["libraries"])))
    assert "libcufft.so.12" in data["ort"]["dlopened"]
    assert "libcudnn.so.9" in manifest(made(cudnn="9"))["ort"]["dlopened"]  # type: ignore[index]
