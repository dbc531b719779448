"""What a user does with the real cell: copies parts of it into an image of their own, asks for a verdict."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real import CUDA, MARK, ORT, RealCell, build_text, ortimg

from ortimg.engine.buildx import BuildOutcome
from ortimg.errors import ExitCode

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

# The CUDA libraries are mounted where a user would copy 1.9 GB; the loader sees no difference.
HEAD = """\
FROM base
COPY --from=cell /usr/local/bin/ort-verify /usr/local/bin/
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
"""
FOLDER = "COPY --from=cell /opt/onnxruntime /opt/onnxruntime\n"
GLOB = f"COPY --from=cell {ORT}/lib*.so* /usr/lib/\n"
MOUNT = "--network=none --mount=type=bind,from=cell,source=/usr/local/cuda-11.8,target=/usr/local/cuda-11.8"
LDCONFIG = f"RUN {MOUNT} ldconfig # {MARK}\n"
VERIFY = (
    f"RUN {MOUNT} --mount=type=bind,from=cuda-stub,target=/run/stub \\\n"
    f"    ort-verify --tier load --stub /run/stub/libcuda.so.1 >/dev/null # {MARK}\n"
)


def conf(*folders: str) -> str:
    return f"RUN printf '%s\\n' {' '.join(folders)} >/etc/ld.so.conf.d/own.conf # {MARK}\n"


def build(real_cell: RealCell, text: str, folder: Path) -> BuildOutcome:
    contexts = {
        "base": f"docker-image://{real_cell.base}",
        "cell": f"docker-image://{real_cell.reference}",
        "cuda-stub": real_cell.contexts["cuda-stub"],
    }
    (folder / "context").mkdir()
    return build_text(text, folder, contexts, folder / "context")


def last_lines(outcome: BuildOutcome) -> str:
    assert outcome.failure is not None
    assert "ort-verify --tier load" in (outcome.failure.step or ""), str(outcome.failure)
    return "\n".join(outcome.failure.last_lines)


def test_a_folder_that_the_loader_does_not_know(real_cell: RealCell, tmp_path: Path) -> None:
    text = last_lines(build(real_cell, HEAD + FOLDER + VERIFY, tmp_path))
    assert "libonnxruntime.so not found" in text
    assert f"in {ORT}, but no file of /etc/ld.so.conf.d names that folder" in text


def test_a_folder_in_ld_so_conf_without_ldconfig(real_cell: RealCell, tmp_path: Path) -> None:
    text = last_lines(build(real_cell, HEAD + FOLDER + conf(ORT, CUDA) + VERIFY, tmp_path))
    assert "but not in /etc/ld.so.cache: ldconfig has not run since" in text


def test_a_folder_copied_right(real_cell: RealCell, tmp_path: Path) -> None:
    outcome = build(real_cell, HEAD + FOLDER + conf(ORT, CUDA) + LDCONFIG + VERIFY, tmp_path)
    assert outcome.ok, str(outcome.failure)
    assert f"{ORT}/libonnxruntime.so.1.16.2 is the only one" in outcome.log.read_text()


def test_files_copied_by_a_glob_lose_their_links(real_cell: RealCell, tmp_path: Path) -> None:
    """COPY follows each link, so that every name becomes a file: it works, and is told."""
    outcome = build(real_cell, HEAD + GLOB + conf(CUDA) + LDCONFIG + VERIFY, tmp_path)
    assert outcome.ok, str(outcome.failure)
    warnings = [line for line in outcome.log.read_text().splitlines() if "warning  ort.single" in line]
    assert len(warnings) == 1
    assert "libonnxruntime.so has the same content as" in warnings[0]


def test_files_copied_by_a_glob_beside_the_folder(real_cell: RealCell, tmp_path: Path) -> None:
    text = last_lines(build(real_cell, HEAD + FOLDER + GLOB + conf(ORT, CUDA) + LDCONFIG + VERIFY, tmp_path))
    assert "ort.single: a second ONNX Runtime beside" in text


# `ortimg verify`


def verdict(*words: str) -> tuple[int, dict[str, Any]]:
    done = ortimg("verify", "--json", *words)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert {"target", "tier", "verdict", "findings", "schema"} <= report.keys()
    return done.returncode, report


@pytest.fixture(scope="module")
def verified(real_cell: RealCell) -> dict[str, Any]:
    code, report = verdict(real_cell.reference)
    assert code == ExitCode.DONE
    return report


def test_verify_of_the_image(real_cell: RealCell, verified: dict[str, Any]) -> None:
    assert verified["verdict"] == "pass"
    assert verified["tier"] == "load"
    assert verified["target"] == real_cell.reference
    checks = {finding["check"]: finding["verdict"] for finding in verified["findings"]}
    assert checks["load.session"] == "ok"
    assert checks["load.libraries"] == "ok"


def test_verify_by_the_cells_name(real_cell: RealCell, verified: dict[str, Any]) -> None:
    assert verdict(real_cell.image.cell.identifier) == (ExitCode.DONE, verified)


@pytest.fixture(scope="module")
def unpacked(real_cell: RealCell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The image's whole root as a folder: 2.4 GB, for as long as the tests of it take."""
    folder = tmp_path_factory.mktemp("root")
    created = ["docker", "create", "--network", "none", real_cell.reference]
    container = subprocess.run(created, capture_output=True, text=True, check=True).stdout.strip()
    try:
        with subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE) as export:
            subprocess.run(["tar", "-xf", "-", "-C", str(folder)], stdin=export.stdout, check=True)
        assert export.returncode == 0
        yield folder
    finally:
        subprocess.run(["docker", "rm", container], capture_output=True, check=True)
        shutil.rmtree(folder)


def test_verify_of_an_unpacked_root(unpacked: Path, verified: dict[str, Any]) -> None:
    code, report = verdict(str(unpacked))
    assert (code, report["verdict"], report["tier"]) == (ExitCode.DONE, "pass", "load")
    assert report["target"] == str(unpacked)
    different = [
        mine["check"]
        for mine, other in zip(report["findings"], verified["findings"], strict=True)
        if mine != other
    ]
    assert different == ["container.environment"]  # a folder has none

    (unpacked / CUDA.lstrip("/") / "libcurand.so.10").unlink()
    code, report = verdict(str(unpacked))
    assert code == ExitCode.FAILED
    evidence = [finding["evidence"] for finding in report["findings"] if finding["verdict"] == "fail"]
    assert any("libcurand.so.10 not found" in text for text in evidence)


def test_verify_of_an_image_without_onnx_runtime(real_cell: RealCell) -> None:
    code, report = verdict(real_cell.base)
    assert (code, report["verdict"]) == (ExitCode.FAILED, "fail")
    evidence = [finding["evidence"] for finding in report["findings"] if finding["verdict"] == "fail"]
    assert any("libonnxruntime.so not found" in text for text in evidence)


def test_verify_of_an_image_that_is_not_there(real_cell: RealCell) -> None:
    name = f"{real_cell.reference}-never-built"
    done = ortimg("verify", name)
    assert done.returncode == ExitCode.ENVIRONMENT
    assert name in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_verify_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = ortimg("verify", str(tmp_path / "nothing"))
    assert done.returncode == ExitCode.USAGE
    assert len(done.stderr.splitlines()) <= 2
