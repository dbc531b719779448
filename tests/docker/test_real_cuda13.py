"""The real CUDA 13 cell: its provider needs the driver's library, and opens cuDNN only when it uses it.

ONNX Runtime itself comes up without any cuDNN there, so all that tells of a missing one is the verifier.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from real import MARK, ROOT, RealCell, before_ldconfig, changed, compile_library, make_real_cell
from test_real_failures import last_lines

from ortimg.engine.client import Engine

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

CUDA = "/usr/local/cuda-13.0/lib64"
PARTS = (
    "graph",
    "ops",
    "cnn",
    "adv",
    "heuristic",
    "engines_precompiled",
    "engines_runtime_compiled",
)
STUB = (ROOT / "ortimg" / "verify" / "stub" / "libcuda.c").read_text()


@pytest.fixture(scope="module")
def cuda13(tidy_engine: Engine) -> RealCell:
    """1.30.0 for CUDA 13.0 on Debian 13, its libraries out of the wheel."""
    return make_real_cell(tidy_engine, "1.30.0-cuda13.0-cudnn9-debian13")


def without(cell: RealCell, library: str) -> str:
    return before_ldconfig(cell.dockerfile, f"RUN --network=none : {MARK}; rm {CUDA}/{library}")


def test_the_unchanged_dockerfile_passes(cuda13: RealCell, tmp_path: Path) -> None:
    assert cuda13.image.identities.origins["ort"] in ("wheel", "upstream")
    assert cuda13.build(cuda13.dockerfile, tmp_path).ok


def test_a_missing_cudnn_is_named(cuda13: RealCell, tmp_path: Path) -> None:
    text = last_lines(cuda13.build(without(cuda13, "libcudnn.so.9"), tmp_path))
    assert "libcudnn.so.9 not found, needed by the CUDA provider: not in this image" in text


def test_a_missing_cudnn_is_named_also_where_no_manifest_tells_of_it(
    cuda13: RealCell, tmp_path: Path
) -> None:
    """As in an image that ortimg did not build: nothing there says that this ONNX Runtime wants cuDNN."""
    files = f"{CUDA}/libcudnn.so.9 /usr/share/ortimg/manifest.json"
    dockerfile = before_ldconfig(cuda13.dockerfile, f"RUN --network=none : {MARK}; rm {files}")
    text = last_lines(cuda13.build(dockerfile, tmp_path))
    assert "libcudnn.so.9 not found, needed by the CUDA provider: not in this image" in text


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_part_of_cudnn_is_named(cuda13: RealCell, tmp_path: Path, part: str) -> None:
    library = f"libcudnn_{part}.so.9"
    text = last_lines(cuda13.build(without(cuda13, library), tmp_path))
    assert f"{library} not found, needed by libcudnn.so.9, which opens it when it is used" in text


@pytest.mark.parametrize("library", ["libcufft.so.12", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"])
def test_other_libraries_that_are_opened_late_are_named(
    cuda13: RealCell, tmp_path: Path, library: str
) -> None:
    text = last_lines(cuda13.build(without(cuda13, library), tmp_path))
    assert f"{library} not found, needed by the cell's CUDA set: not in this image" in text


def test_a_missing_library_that_is_linked_to_is_named(cuda13: RealCell, tmp_path: Path) -> None:
    text = last_lines(cuda13.build(without(cuda13, "libcurand.so.10"), tmp_path))
    assert "libcurand.so.10 not found, needed by libonnxruntime_providers_cuda.so" in text


def test_the_provider_needs_the_whole_stub(cuda13: RealCell, tmp_path: Path) -> None:
    """With a stub that lacks what the provider links to, the step fails and says so: no false pass."""
    line = next(line for line in STUB.splitlines() if line.startswith("NO_DEVICE(cuTensorMapEncodeTiled)"))
    stub = tmp_path / "stub"
    source = changed(STUB, f"{line}\n", "")
    compile_library(source, stub / "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    text = last_lines(cuda13.build(cuda13.dockerfile, tmp_path, {"cuda-stub": str(stub)}))
    assert "cuTensorMapEncodeTiled" in text


def test_an_image_made_without_cudnn_passes_with_a_word(cuda13: RealCell, tmp_path: Path) -> None:
    """The verifier's side of `cudnn: none`: no file of cuDNN, and a manifest that says so."""
    head, _, rest = cuda13.dockerfile.partition("cat >/usr/share/ortimg/manifest.json <<'JSON'\n")
    promised, end, tail = rest.partition("\nJSON\n")
    data = json.loads(promised)
    data["cudnn"] = None
    for names in (data["ort"]["dlopened"], data["cuda"]["libraries"]):
        names[:] = [name for name in names if not name.startswith("libcudnn")]
    promise = f"cat >/usr/share/ortimg/manifest.json <<'JSON'\n{json.dumps(data)}{end}"
    outcome = cuda13.build(without(replace(cuda13, dockerfile=head + promise + tail), "libcudnn*"), tmp_path)
    assert outcome.ok, outcome.failure
    said = (tmp_path / "build.log").read_text()
    assert "no cuDNN, as the image's manifest says: Conv not available" in said
