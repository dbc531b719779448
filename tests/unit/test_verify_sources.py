"""The verifier's model, its stub driver and its list of source files."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from elftools.elf.elffile import ELFFile
from onnx.reference import ReferenceEvaluator

from ortimg.errors import EnvironmentFault
from ortimg.verify.binary import get_verifier
from ortimg.verify.sources import verifier_sources

ROOT = Path(__file__).resolve().parents[2]
VERIFY = ROOT / "ortimg" / "verify"

# Without one of these ORT 1.18 to 1.22 crash while the provider starts (found by trying, each version).
EXPORTS = [
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDriverGetVersion",
    "cuFuncSetAttribute",
    "cuFuncSetCacheConfig",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuInit",
    "cuLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuLinkAddData_v2",
    "cuLinkAddFile_v2",
    "cuLinkComplete",
    "cuLinkCreate_v2",
    "cuLinkDestroy",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
]


@pytest.fixture(scope="module")
def script() -> dict[str, object]:
    return runpy.run_path(str(ROOT / "scripts" / "make_verify_model.py"))


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        ("make_model", "verify.onnx", "model.inc"),
        ("make_model_without_conv", "verify-without-conv.onnx", "model_without_conv.inc"),
    ],
)
def test_the_model_is_what_its_script_makes(
    script: dict[str, object], function: str, name: str, text: str
) -> None:
    made = script[function]()  # type: ignore[operator]
    assert (VERIFY / "model" / name).read_bytes() == made
    assert (VERIFY / "src" / text).read_text() == script["as_c_text"](made, name)  # type: ignore[operator]


def test_the_model_touches_what_a_network_touches() -> None:
    model = onnx.load(VERIFY / "model" / "verify.onnx")
    kinds = {node.op_type for node in model.graph.node}
    assert {"Conv", "MatMul", "Gemm", "BatchNormalization", "Softmax", "Transpose", "ReduceMean"} <= kinds


def test_the_model_for_images_without_cudnn_asks_for_nothing_of_it() -> None:
    model = onnx.load(VERIFY / "model" / "verify-without-conv.onnx")
    kinds = {node.op_type for node in model.graph.node}
    assert kinds == {"Reshape", "MatMul", "Transpose", "Softmax", "Add", "Gemm", "Sigmoid"}


@pytest.mark.parametrize(("name", "shape"), [("verify.onnx", (1, 4)), ("verify-without-conv.onnx", (48, 4))])
def test_the_model_can_be_run(name: str, shape: tuple[int, ...]) -> None:
    model = onnx.load(VERIFY / "model" / name)
    image = np.sin(np.arange(3 * 8 * 16, dtype=np.float32)).reshape(1, 3, 8, 16)
    (out,) = ReferenceEvaluator(model).run(None, {"image": image})
    assert out.shape == shape
    assert 0.1 < out.min() < out.max() < 0.9  # not where the sigmoid hides differences


@pytest.mark.parametrize("name", ["verify.onnx", "verify-without-conv.onnx"])
def test_the_model_suits_ort_1_14(name: str) -> None:
    """ORT 1.14 reads IR version 8 and opset 18 at most (docs/Versioning.md of onnxruntime)."""
    model = onnx.load(VERIFY / "model" / name)
    assert model.ir_version <= 8
    assert [entry.version for entry in model.opset_import] <= [18]


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stub") / "libcuda.so.1"
    flags = ["-shared", "-fPIC", "-nostdlib", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["cc", *flags, "-o", path, VERIFY / "stub" / "libcuda.c"], check=True)
    return path


def test_the_stub_has_every_function(stub: Path) -> None:
    with stub.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        names = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}
    assert set(EXPORTS) <= names


def test_the_stub_needs_nothing(stub: Path) -> None:
    with stub.open("rb") as file:
        tags = list(ELFFile(file).get_section_by_name(".dynamic").iter_tags())
    assert [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"] == []
    assert [tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"] == ["libcuda.so.1"]


def test_the_context_has_every_file_that_is_included() -> None:
    sources = verifier_sources()
    for name, content in sources.items():
        if name.endswith((".c", ".h")):
            for line in content.decode().splitlines():
                if line.startswith('#include "'):
                    assert f"verify/src/{line.split(chr(34))[1]}" in sources, line
    assert {"verify/src/main.c", "verify/stub/libcuda.c", "verify/model/verify.onnx"} <= sources.keys()
    assert "verify/src/cJSON.LICENSE" in sources


def test_nothing_but_sources_is_in_the_context() -> None:
    assert {Path(name).suffix for name in verifier_sources()} == {".c", ".h", ".inc", ".onnx", ".LICENSE"}


def test_a_cache_that_cannot_be_made_is_told() -> None:
    with pytest.raises(EnvironmentFault, match="the cache cannot be written"):
        get_verifier(Path("/proc/nowhere"))
