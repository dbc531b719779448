"""The real Python cell: the wheel on the distribution's own Python, verified through Python.

A session on the CPU proves nothing there: ONNX Runtime falls back to the CPU by itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real import MARK, RealCell, before_ldconfig, compile_library, make_real_cell
from test_real_failures import last_lines

from ortimg.engine.client import Engine

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

CUDA = "/usr/local/cuda-11.8/lib64"
SITE = "/opt/onnxruntime/1.17.1/python3.11"
LIMIT = 120  # seconds; a container of this image starts and ends in one or two


@pytest.fixture(scope="module")
def python_cell(tidy_engine: Engine) -> RealCell:
    """1.17.1 for CUDA 11.8 as a wheel, on Debian 12 and its Python 3.11."""
    return make_real_cell(tidy_engine, "1.17.1-cuda11.8-cudnn8-debian12-python3.11")


def changed_by(cell: RealCell, command: str, folder: Path, **contexts: str) -> str:
    """The verifier's last words about the cell after a command in it."""
    mounts = "".join(f" --mount=type=bind,from={name},target=/{name}" for name in contexts)
    line = f"RUN --network=none{mounts} : {MARK}; {command}"
    return last_lines(cell.build(before_ldconfig(cell.dockerfile, line), folder, contexts))


def test_the_unchanged_dockerfile_passes(python_cell: RealCell, tmp_path: Path) -> None:
    assert python_cell.image.identities.origins["ort"] == "wheel"
    assert python_cell.build(python_cell.dockerfile, tmp_path).ok


def test_its_report_is_of_tier_load(python_cell: RealCell, engine: Engine) -> None:
    shown = engine.run(python_cell.reference, ["cat", "/usr/share/ortimg/verify.json"], limit=LIMIT)
    report = json.loads(shown.stdout)
    assert (report["tier"], report["verdict"]) == ("load", "pass")
    session = next(row for row in report["findings"] if row["check"] == "load.session")
    assert session["evidence"].startswith("the CUDA EP stops at CUDA failure 100, no device")


def test_what_is_in_it(python_cell: RealCell, engine: Engine) -> None:
    """Any user, a read-only root, no HOME; NumPy 1, since this ONNX Runtime is compiled for it."""
    script = (
        "import importlib.metadata as m, numpy, onnxruntime, sys\n"
        "print(onnxruntime.__version__, numpy.__version__.split('.')[0], sys.executable)\n"
        "wanted = m.requires('onnxruntime-gpu')\n"
        "print(all(m.version(row.split()[0]) for row in wanted), onnxruntime.__file__)\n"
    )
    shown = engine.run(
        python_cell.reference, ["python3", "-c", script], limit=LIMIT, read_only=True, user="4242"
    )
    assert shown.stdout.splitlines() == [
        "1.17.1 1 /usr/bin/python3",
        f"True {SITE}/onnxruntime/__init__.py",
    ], shown.stderr


def test_licences(python_cell: RealCell, engine: Engine) -> None:
    script = "cd /usr/share/licenses; wc -c <onnxruntime/LICENSE; ls -d onnxruntime nvidia-*"
    shown = engine.run(python_cell.reference, ["sh", "-ec", script], limit=LIMIT)
    size, *folders = shown.stdout.split()
    assert int(size) > 1000
    assert folders[0] == "nvidia-cublas-cu11"
    assert folders[-1] == "onnxruntime"


@pytest.mark.parametrize("library", ["libcufft.so.10", "libcudnn.so.8"])
def test_a_missing_library_is_named(python_cell: RealCell, tmp_path: Path, library: str) -> None:
    text = changed_by(python_cell, f"rm {CUDA}/{library}", tmp_path)
    assert f"{library} not found, needed by libonnxruntime_providers_cuda.so" in text


def test_a_missing_part_of_cudnn_is_named(python_cell: RealCell, tmp_path: Path) -> None:
    text = changed_by(python_cell, f"rm {CUDA}/libcudnn_cnn_infer.so.8", tmp_path)
    assert "libcudnn_cnn_infer.so.8 not found, needed by libcudnn.so.8" in text


def test_a_missing_provider_is_named(python_cell: RealCell, tmp_path: Path) -> None:
    name = "libonnxruntime_providers_shared.so"
    text = changed_by(python_cell, f"rm {SITE}/onnxruntime/capi/{name}", tmp_path)
    assert f"{name} is neither beside" in text


def test_a_missing_module_is_named(python_cell: RealCell, tmp_path: Path) -> None:
    text = changed_by(python_cell, f"rm {SITE}/onnxruntime/capi/*pybind11*", tmp_path)
    assert f"onnxruntime_pybind11_state*.so missing in {SITE}/onnxruntime/capi" in text


def test_a_missing_numpy_is_named(python_cell: RealCell, tmp_path: Path) -> None:
    text = changed_by(python_cell, f"rm -r {SITE}/numpy", tmp_path)
    assert 'load.session: at "import onnxruntime": ' in text
    assert "No module named 'numpy'" in text


def test_a_path_that_python_does_not_know(python_cell: RealCell, tmp_path: Path) -> None:
    text = changed_by(python_cell, "rm /usr/lib/python3/dist-packages/onnxruntime.pth", tmp_path)
    assert "load.session: at \"import onnxruntime\": No module named 'onnxruntime'" in text


def test_the_silent_way_to_the_cpu_is_a_failure(python_cell: RealCell, tmp_path: Path) -> None:
    """A library that is there and lacks a function: ORT logs it, and takes the CPU all by itself."""
    hollow = tmp_path / "hollow"
    compile_library("int nothing;", hollow / "libcufft.so.10", "-Wl,-soname,libcufft.so.10")
    command = f"cp /hollow/libcufft.so.10 {CUDA}/"
    text = changed_by(python_cell, command, tmp_path, hollow=str(hollow))
    assert "the session has CPUExecutionProvider alone" in text
    assert "undefined symbol: cufft" in text
