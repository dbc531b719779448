"""Facts for those who change versions: models, linked programs, Python packages."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from wishes import INDEX

from ortimg.core.linking import must_relink, symbol_version
from ortimg.core.model import OrtRelease
from ortimg.core.onnx_support import Known, Stamp, parse_onnx, support
from ortimg.core.python_packages import clash
from ortimg.data import read_onnx_rows
from ortimg.errors import ConfigError
from ortimg.measure.onnx_model import NotAModelError, read_stamp

ROWS = read_onnx_rows()


def stamp(ir: int, opset: int, ml: int | None = None) -> Stamp:
    return Stamp(ir=ir, opsets={"": opset} | ({"ai.onnx.ml": ml} if ml else {}))


@pytest.mark.parametrize(
    ("version", "model", "known", "words"),
    [
        ("1.16.2", stamp(8, 17), Known.YES, ""),
        ("1.16.2", stamp(99, 17), Known.NO, "IR version 99, ONNX Runtime 1.16.2 knows up to 9"),
        ("1.30.0", stamp(8, 99), Known.NO, "opset 99, ONNX Runtime 1.30.0 knows up to 26"),
        ("1.16.0", stamp(9, 19), Known.YES, ""),  # a patch release of a measured minor version
        ("1.16.0", stamp(9, 20), Known.NO, "knows up to 19"),
        ("1.20.1", stamp(10, 21), Known.YES, ""),  # as 1.18 does already
        ("1.20.1", stamp(10, 22), Known.UNKNOWN, "was not measured"),  # 1.22 does, 1.18 does not
        ("1.20.1", stamp(10, 23), Known.NO, "knows up to 22 at most"),
        ("1.14.0", stamp(8, 17), Known.UNKNOWN, "was not measured"),
        ("1.14.0", stamp(9, 20), Known.NO, "knows up to 19 at most"),
        ("1.31.1", stamp(13, 26), Known.YES, ""),
        ("1.31.1", stamp(13, 27), Known.UNKNOWN, "was not measured"),
        ("1.16.2", stamp(8, 17, ml=5), Known.NO, "opset of ai.onnx.ml 5"),
    ],
)
def test_models(version: str, model: Stamp, known: Known, words: str) -> None:
    found = support(version, model, ROWS)
    assert found.known is known
    assert words in " ".join(found.reasons)
    assert bool(found.reasons) == (known is not Known.YES)


@given(st.sampled_from([row.ort for row in ROWS]), st.integers(3, 14), st.integers(7, 30))
def test_an_older_model_is_known_where_a_newer_one_is(version: str, ir: int, opset: int) -> None:
    if support(version, stamp(ir, opset), ROWS).known is Known.YES:
        assert support(version, stamp(ir - 1, opset - 1), ROWS).known is Known.YES


def test_rows_only_grow() -> None:
    limits = [(row.ir, row.opset, row.ml_opset) for row in ROWS]
    assert all(a <= b for old, new in pairwise(limits) for a, b in zip(old, new, strict=True))
    with pytest.raises(ConfigError, match="onnx"):
        parse_onnx(b"versions: [{ort: 1.16}]")


def model_file(path: Path, ir: int, *opsets: tuple[str, int]) -> Path:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [100_000], [0.5] * 100_000)
    node = helper.make_node("Relu", ["x"], ["x2"])
    graph = helper.make_graph([node], "g", [value], [value], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in opsets])
    model.ir_version = ir
    path.write_bytes(model.SerializeToString())
    return path


def test_stamps_are_read_without_the_weights(tmp_path: Path) -> None:
    path = model_file(tmp_path / "m.onnx", 99, ("", 99), ("ai.onnx.ml", 5), ("com.microsoft", 1))
    found = read_stamp(path)
    assert found == Stamp(ir=99, opsets={"": 99, "ai.onnx.ml": 5, "com.microsoft": 1})
    for version in ("1.16.2", "1.30.0"):
        assert support(version, found, ROWS).known is Known.NO


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b"\x08", b"\xff" * 30, b"\x08\x07", b"\x3a\xff\xff\xff\x7f"]
)
def test_no_model(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(NotAModelError, match="is not an ONNX model"):
        read_stamp(path)


@given(st.binary(max_size=300))
def test_noise_is_no_model_or_a_stamp(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.onnx"
    path.write_bytes(data)
    with suppress(NotAModelError):
        assert read_stamp(path).opsets


# linked programs


def release(version: str, major: int) -> OrtRelease:
    row = INDEX.release(version, major)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("needed", "wanted", "version", "words"),
    [
        (
            ["libonnxruntime.so.1.17.3", "libc.so.6"],
            ["VERS_1.17.3"],
            "1.20.1",
            "links to libonnxruntime.so.1.17.3",
        ),
        (["libonnxruntime.so.1"], ["VERS_1.19.2"], "1.20.1", "asks for symbols VERS_1.19.2"),
        (["libonnxruntime.so.1"], ["VERS_1.20.1"], "1.20.1", None),
        (["libonnxruntime.so.1"], ["VERS_1.20.1"], "1.18.1", "1.18.1 is libonnxruntime.so.1.18.1"),
        (["libc.so.6", "libonnxruntimeX.so.2"], [], "1.20.1", None),
        (["libc.so.6"], ["VERS_1.0"], "1.20.1", None),
    ],
)
def test_programs(needed: list[str], wanted: list[str], version: str, words: str | None) -> None:
    row = INDEX.releases[version][-1]
    found = must_relink(needed, wanted, row)
    if words is None:
        assert found is None
    else:
        assert found is not None and words in found
        assert f"link it again with ONNX Runtime {version}" in found
    assert symbol_version(row) == f"VERS_{version}"


# Python packages


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (
            ["onnxruntime-1.20.1.dist-info", "onnxruntime_gpu-1.20.1.dist-info"],
            "onnxruntime 1.20.1 and onnxruntime-gpu",
        ),
        (["onnxruntime.gpu-1.20.1.dist-info", "ort_nightly_gpu-1.21.0.dev1.dist-info"], "ort-nightly-gpu"),
        (["onnxruntime_gpu-1.20.1.dist-info", "onnxruntime_extensions-0.13.0.dist-info"], None),
        (["onnxruntime_gpu-1.20.1.dist-info", "numpy-2.1.0.dist-info", "onnxruntime"], None),
        ([], None),
    ],
)
def test_packages_that_clash(folders: list[str], words: str | None) -> None:
    found = clash(folders)
    assert (found is None) == (words is None)
    if words:
        assert found is not None and words in found and "pip uninstall" in found
