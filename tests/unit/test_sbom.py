"""Bills of materials: what must be named is named, and the formats' own checkers agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from ortimg.core.lock import Lock, OrtLock, Repacked, planned
from ortimg.core.model import Cell
from ortimg.core.sbom import (
    Bom,
    Component,
    Found,
    LibraryFile,
    LicenceFile,
    missing_libraries,
    own_components,
)
from ortimg.core.sbom_cyclonedx import to_cyclonedx
from ortimg.core.sbom_distro import read_syft
from ortimg.core.sbom_spdx import to_spdx
from ortimg.errors import EnvironmentFault
from ortimg.project import load_project

ROOT = Path(__file__).parents[2]
DIGEST = "sha256:" + "d" * 64
SHA = "a" * 64
EULA = "LICENSE AGREEMENT FOR NVIDIA SOFTWARE"
PACKAGE = {
    "name": "libc6",
    "version": "2.36-9+deb12u14",
    "type": "deb",
    "purl": "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=debian-12&upstream=glibc",
    "cpes": [{"cpe": "cpe:2.3:a:libc6:libc6:2.36-9\\+deb12u14:*:*:*:*:*:*:*"}],
    "licenses": [
        {"value": "GPL-2", "spdxExpression": "GPL-2.0-only"},
        {"value": "own words", "spdxExpression": ""},
    ],
}


@pytest.fixture(scope="module")
def cells() -> dict[str, Cell]:
    return {cell.identifier: cell for cell in load_project(ROOT).plan.cells}


@pytest.fixture(scope="module")
def cell(cells: dict[str, Cell]) -> Cell:
    return cells["1.16.2-cuda11.8-cudnn8-debian12"]


def found_in(cell: Cell, **origins: str) -> Found:
    folder = cell.cuda_set.folder
    return Found(
        origins={"ort": "maven", "cuda": "wheel", "base": "bootstrap"} | origins,
        ort=(LibraryFile(path="/opt/onnxruntime/x/lib/libonnxruntime.so.1", sha256=SHA),),
        cuda=tuple(LibraryFile(path=f"{folder}/{name}", sha256=SHA) for name in cell.cuda_set.libraries),
        verifier=(LibraryFile(path="/usr/local/bin/ort-verify", sha256=SHA),),
        licences=(
            LicenceFile(path="/usr/share/licenses/onnxruntime/LICENSE", text="MIT License\n\nCopyright"),
            LicenceFile(path="/usr/share/licenses/onnxruntime/ThirdPartyNotices.txt", text="many"),
            *(
                LicenceFile(
                    path=f"/usr/share/licenses/{wheel.requirement.partition('==')[0]}/License.txt", text=EULA
                )
                for wheel in cell.cuda_set.wheels
            ),
        ),
    )


def lock_of(cell: Cell) -> Lock:
    lock = planned([cell])
    row = OrtLock(upstream="1" * 64, maven=Repacked(source="2" * 64))
    return msgspec.structs.replace(lock, ort={**lock.ort, cell.release.key: row})


def bom_of(cell: Cell, *more: Component, notes: tuple[str, ...] = ()) -> Bom:
    return Bom(
        repository="registry.example.com/team/onnxruntime-gpu",
        identifier=cell.identifier,
        digest=DIGEST,
        epoch=1_796_129_632,
        components=(*own_components(cell, lock_of(cell), found_in(cell)), *more),
        notes=notes,
    )


def packages() -> tuple[Component, ...]:
    return read_syft(json.dumps({"artifacts": [PACKAGE]}).encode())


def check_cyclonedx(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def check_spdx(text: str, folder: Path) -> None:
    path = folder / "one.spdx.json"
    path.write_text(text)
    assert [row.validation_message for row in validate_full_spdx_document(parse_file(str(path)))] == []


def test_every_cell_is_a_valid_document_in_both_formats(cells: dict[str, Cell], tmp_path: Path) -> None:
    kinds = {(cell.release.key, cell.cuda_set.key, cell.flavour): cell for cell in cells.values()}
    for cell in kinds.values():
        bom = bom_of(cell, *packages(), notes=("The distribution was not looked at.",))
        check_cyclonedx(to_cyclonedx(bom, "ortimg 1.0"))
        check_spdx(to_spdx(bom, "ortimg 1.0"), tmp_path)


def test_the_checkers_can_say_no(cell: Cell, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check_cyclonedx(to_cyclonedx(bom_of(cell), "ortimg 1.0").replace('"CycloneDX"', '"another"'))
    with pytest.raises(AssertionError):
        check_spdx(to_spdx(bom_of(cell), "ortimg 1.0").replace(SHA, "z" * 64), tmp_path)


def test_what_scanners_do_not_see_is_named(cell: Cell) -> None:
    rows = {row["name"]: row for row in json.loads(to_cyclonedx(bom_of(cell), "ortimg 1.0"))["components"]}
    assert rows["ONNX Runtime"]["version"] == "1.16.2"
    assert rows["CUDA"]["version"] == "11.8"
    assert rows["cuDNN"]["version"] == "8.9.6.50"
    (cudnn,) = rows["cuDNN"]["components"]
    assert cudnn["purl"] == "pkg:pypi/nvidia-cudnn-cu11@8.9.6.50"
    named = [file["name"] for row in (*rows["CUDA"]["components"], cudnn) for file in row["components"]]
    assert sorted(named) == sorted(f"{cell.cuda_set.folder}/{name}" for name in cell.cuda_set.libraries)
    packages = json.loads(to_spdx(bom_of(cell), "ortimg 1.0"))["packages"]
    assert {"ONNX Runtime", "CUDA", "cuDNN", *cell.cuda_set.libraries} <= {row["name"] for row in packages}


@pytest.mark.parametrize(
    ("origin", "purl", "sha256"),
    [
        ("upstream", "pkg:github/microsoft/onnxruntime@v1.16.2", "1" * 64),
        ("maven", "pkg:maven/com.microsoft.onnxruntime/onnxruntime_gpu@1.16.2", "2" * 64),
    ],
)
def test_an_origin_has_its_own_coordinates_and_hash(cell: Cell, origin: str, purl: str, sha256: str) -> None:
    ort = own_components(cell, lock_of(cell), found_in(cell, ort=origin))[0]
    assert (ort.purl, ort.sha256) == (purl, sha256)
    assert (ort.download == cell.release.url) == (origin == "upstream")


def test_a_python_flavour_has_the_wheel_and_what_it_imports(cells: dict[str, Cell]) -> None:
    cell = cells["1.17.1-cuda11.8-cudnn8-debian12-python3.11"]
    rows = own_components(cell, lock_of(cell), found_in(cell))
    assert rows[0].purl == "pkg:pypi/onnxruntime-gpu@1.17.1"
    assert rows[0].sha256 == cell.wheels[0].sha256
    assert {wheel.requirement.partition("==")[0] for wheel in cell.wheels[1:]} <= {row.name for row in rows}


def test_licences_are_those_whose_texts_lie_in_the_image(cell: Cell) -> None:
    document = json.loads(to_spdx(bom_of(cell), "ortimg 1.0"))
    declared = {row["name"]: row.get("licenseDeclared") for row in document["packages"]}
    assert declared["ONNX Runtime"] == "MIT"
    (text,) = document["hasExtractedLicensingInfos"]  # the same for all wheels, so it is there once
    assert text["extractedText"] == EULA
    assert declared["nvidia-cublas-cu11"] == declared["nvidia-cufft-cu11"] == text["licenseId"]


@pytest.mark.parametrize("write", [to_spdx, to_cyclonedx])
def test_equal_content_is_equal_text_and_another_image_another_name(
    cell: Cell, write: Callable[[Bom, str], str]
) -> None:
    bom = bom_of(cell, *packages())
    text = write(bom, "ortimg 1.0")
    assert write(bom_of(cell, *packages()), "ortimg 1.0") == text
    assert "2026-12-01T12:53:52" in text
    other = json.loads(write(msgspec.structs.replace(bom, digest="sha256:" + "e" * 64), "ortimg 1.0"))
    for key in {"serialNumber", "documentNamespace"} & other.keys():
        assert other[key] != json.loads(text)[key]


@pytest.mark.parametrize("write", [to_spdx, to_cyclonedx])
def test_what_was_not_looked_at_is_said(cell: Cell, write: Callable[[Bom, str], str]) -> None:
    assert "nobody looked" in write(bom_of(cell, notes=("nobody looked",)), "ortimg 1.0")
    assert "nobody looked" not in write(bom_of(cell), "ortimg 1.0")


def test_an_image_without_a_promised_library_is_found(cell: Cell) -> None:
    found = found_in(cell)
    assert missing_libraries(cell, found) == ()
    assert missing_libraries(cell, msgspec.structs.replace(found, cuda=found.cuda[1:])) == (
        cell.cuda_set.libraries[0],
    )


def test_a_package_keeps_what_syft_says_of_it() -> None:
    (row,) = packages()
    assert (row.name, row.version, row.purl) == (PACKAGE["name"], PACKAGE["version"], PACKAGE["purl"])
    assert [(licence.name, licence.spdx) for licence in row.licences] == [
        ("GPL-2.0-only", True),
        ("own words", False),
    ]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"artifacts": [1]}', b'{"artifacts": [{"type": "deb"}]}']
)
def test_an_answer_that_is_none_is_told(data: bytes) -> None:
    with pytest.raises(EnvironmentFault, match="syft's answer is not understood"):
        read_syft(data)
