"""`ortimg sbom` of images in a real engine, and what `push --sbom` leaves in a real registry."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from real import ROOT, RealCell, ortimg
from registries import proxy, registry, repository

from ortimg.engine.client import Engine
from ortimg.project import load_project
from ortimg.registry.referrers import list_referrers, read_referrer

pytestmark = pytest.mark.engine

CELL = "1.16.2-cuda11.8-cudnn8-debian12"
REPOSITORY = "ortimg-test/sbom"
IMAGE = f"{REPOSITORY}:{CELL}"
STATUS = """Package: libc6
Status: install ok installed
Maintainer: nobody
Architecture: amd64
Source: glibc
Version: 2.36-9+deb12u14
"""


@pytest.fixture(scope="module")
def project(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project whose one image has the files of a cell, each of a few bytes."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "images.yaml").write_text(
        f'repository: {REPOSITORY}\nmatrix:\n  ort: ["1.16.2"]\n  cuda: ["11.8"]\n  cudnn: ["8"]\n'
        "  base: [debian12, debian13]\n"
    )
    cell = next(cell for cell in load_project(folder).plan.cells if cell.identifier == CELL)
    root = folder / "context" / "root"
    files = {f"{cell.cuda_set.folder}/{name}": name for name in cell.cuda_set.libraries}
    files |= {
        "/opt/onnxruntime/1.16.2/lib/libonnxruntime.so.1.16.2": "ort",
        "/usr/local/bin/ort-verify": "verifier",
        "/usr/share/licenses/onnxruntime/LICENSE": "MIT License\n",
        "/usr/lib/os-release": 'ID=debian\nVERSION_ID="12"\n',
        "/var/lib/dpkg/status": STATUS,
    }
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    # The stages of a real cell, as far as the order of layers goes.
    dockerfile = (
        "FROM scratch\nCOPY root/usr/local/cuda-11.8 /usr/local/cuda-11.8\nCOPY root/opt /opt\nCOPY root/ /\n"
    )
    command = ["docker", "buildx", "build", "--provenance=false", "--file=-", f"--tag={IMAGE}"]
    labels = {"ortimg.identifier": CELL, "ortimg.tier": "load", "ortimg.origin": "ort=maven,cuda=wheel"}
    command += [f"--label={key}={value}" for key, value in labels.items()]
    subprocess.run([*command, str(root.parent)], input=dockerfile, text=True, check=True, capture_output=True)
    yield folder
    engine.remove(IMAGE)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "ORTIMG_CACHE": str(tmp_path / "cache"), "DOCKER_CONFIG": str(tmp_path)}


def sha256(text: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": hashlib.sha256(text.encode()).hexdigest()}]


def test_both_formats_of_a_project(project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    words = ["--format", "spdx-json", "--format", "cyclonedx-json", "-o", str(tmp_path / "out")]
    done = ortimg("sbom", *words, cwd=project, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "left out: 1.16.2-cuda11.8-cudnn8-debian13 is not built\n"
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == [f"{CELL}.cdx.json", f"{CELL}.spdx.json"]
    text = (tmp_path / "out" / files[0]).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    rows = {row["name"]: row for row in json.loads(text)["components"]}
    assert rows["libc6"]["purl"].startswith("pkg:deb/debian/libc6@2.36-9%2Bdeb12u14")
    assert rows["ONNX Runtime"]["components"][0]["hashes"] == sha256("ort")
    cublas = next(row for row in rows["CUDA"]["components"] if "cublas" in row["name"])
    assert cublas["components"][0]["hashes"] == sha256("libcublas.so.11")

    again = ortimg("sbom", IMAGE, "--format", "cyclonedx-json", cwd=project, env=environment)
    assert again.stdout == text  # from what was kept
    environment["ORTIMG_CACHE"] = str(tmp_path / "another")
    anew = ortimg("sbom", CELL, "--format", "cyclonedx-json", cwd=project, env=environment)
    assert anew.stdout == text


def test_a_folder_that_cannot_be_is_told_before_anything_is_read(
    project: Path, environment: dict[str, str]
) -> None:
    done = ortimg("sbom", CELL, "-o", "/proc/boms", cwd=project, env=environment)
    assert done.returncode == 3
    assert done.stderr.splitlines()[0].startswith("error: /proc/boms cannot be written: ")


def test_without_syft_the_document_says_so(
    project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    # A Python whose folder holds no syft, and a PATH without one.
    program = tmp_path / "python"
    program.symlink_to(ROOT / ".venv/bin/python")
    code = "import sys; sys.executable = sys.argv.pop(1); from ortimg.__main__ import main; main()"
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if ".venv" not in part)
    done = subprocess.run(
        [str(ROOT / ".venv/bin/python"), "-c", code, str(program), "sbom", CELL],
        cwd=project,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = "The distribution's packages were not looked at: there was no syft."
    assert done.stderr == f"{CELL}: {words}\n"
    document = json.loads(done.stdout)
    assert document["comment"] == words
    assert "libc6" not in {row["name"] for row in document["packages"]}


def test_pushed_with_the_image(project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    with registry(tmp_path / "registry") as place:
        words = ["push", CELL, "--tier", "load", "--registry-prefix", f"{place.host}/team"]
        words += ["--sbom", "spdx-json", "--sbom", "cyclonedx-json"]
        for _ in range(2):  # the same documents are the same referrers
            done = ortimg(*words, cwd=project, env=environment)
            assert done.returncode == 0, done.stderr
            assert "2 bills of materials attached" in done.stderr
        shop = repository(place.host, f"team/{REPOSITORY}")
        digest = shop.digest(CELL)
        assert digest is not None
        rows = {row.artifact_type: row for row in list_referrers(shop, digest)}
        assert len(list_referrers(shop, digest)) == 2
        document = json.loads(read_referrer(shop, rows["application/vnd.cyclonedx+json"]) or b"")
        image = document["metadata"]["component"]
        assert image["name"] == f"{place.host}/team/{REPOSITORY}"
        assert image["hashes"] == [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]
        assert "application/spdx+json" in rows
        # One line a digest, as `cosign sign` takes them.
        assert (project / "digests.txt").read_text() == f"{place.host}/team/{REPOSITORY}@{digest}\n"


def test_what_was_pushed_has_its_bill_though_another_cell_failed(
    project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with registry(tmp_path / "registry") as place:
        words = ["push", "--tier", "load", "--registry-prefix", place.host, "--sbom", "cyclonedx-json"]
        done = ortimg(*words, cwd=project, env=environment)
        assert done.returncode == 1  # a cell is not built
        assert "1 pushed" in done.stdout
        assert "1 bill of materials attached" in done.stderr
        shop = repository(place.host, REPOSITORY)
        (row,) = list_referrers(shop, shop.digest(CELL) or "")
        assert row.artifact_type == "application/vnd.cyclonedx+json"


def test_a_bill_that_cannot_be_attached_does_not_hide_what_failed_before(
    project: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    with registry(tmp_path / "registry") as place, proxy(place.host) as front:
        front.fail("PUT", "manifests/sha256", status=403)  # a referrer has no tag
        words = ["push", "--tier", "load", "--registry-prefix", front.host, "--sbom", "cyclonedx-json"]
        done = ortimg(*words, cwd=project, env=environment)
        assert done.returncode == 1
        assert "not every bill of materials was attached: " in done.stderr
        alone = ortimg(words[0], CELL, *words[1:], cwd=project, env=environment)
        assert alone.returncode == 3
        assert "403 Forbidden" in alone.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["1.17*"], 2, "1.17*"),
        (["ortimg-test/none:1"], 3, 'the engine has no image "ortimg-test/none:1"'),
        (["1.16.2-cuda11.8-cudnn8-debian13"], 1, "the engine has none of these images"),
        ([CELL, "--format", "spdx-json", "--format", "cyclonedx-json"], 2, "do not go to stdout together"),
    ],
)
def test_what_cannot_be_is_refused(
    project: Path, environment: dict[str, str], words: list[str], code: int, said: str
) -> None:
    done = ortimg("sbom", *words, cwd=project, env=environment)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr.replace("'", '"')
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.inputs
def test_a_real_image(real_cell: RealCell) -> None:
    done = ortimg("sbom", real_cell.reference, "--format", "cyclonedx-json")
    assert done.returncode == 0, done.stderr
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(done.stdout) is None
    rows = {row["name"]: row for row in json.loads(done.stdout)["components"]}
    assert rows["ONNX Runtime"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert {"libc6", "libstdc++6", "CUDA", "cuDNN"} <= rows.keys()
    provider = next(row for row in rows["ONNX Runtime"]["components"] if "providers_cuda" in row["name"])
    command = ["docker", "run", "--rm", "--network=none", "--entrypoint=sha256sum", real_cell.reference]
    told = subprocess.run([*command, provider["name"]], check=True, capture_output=True, text=True).stdout
    assert provider["hashes"][0]["content"] == told.split()[0]
