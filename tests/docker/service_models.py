"""Models for the example services. Opset 13 and IR version 7 suit every ONNX Runtime from 1.14 on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_pieces import waves, whole, write

SIZE = 256


def chain(folder: Path) -> Path:
    """Three matrix products: x and y are float32 of batch by 256."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="first"),
        node("Relu", ["a"], ["b"], name="relu"),
        node("MatMul", ["b", "w"], ["c"], name="second"),
        node("MatMul", ["c", "w"], ["y"], name="third"),
    ]
    inputs = [value("x", TensorProto.FLOAT, ["batch", SIZE])]
    outputs = [value("y", TensorProto.FLOAT, ["batch", SIZE])]
    return write(folder / "chain.onnx", nodes, inputs, outputs, [waves("w", SIZE, SIZE)])


def loop(folder: Path) -> Path:
    """Runs for as long as `trips`, an int64 without dimensions, says."""
    node, value = helper.make_node, helper.make_tensor_value_info
    body = helper.make_graph(
        [
            node("Identity", ["go_in"], ["go_out"]),
            node("MatMul", ["x_in", "w"], ["product"], name="product"),
            node("Cos", ["product"], ["x_out"], name="bound"),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go_in", TensorProto.BOOL, []),
            value("x_in", TensorProto.FLOAT, ["batch", SIZE]),
        ],
        [value("go_out", TensorProto.BOOL, []), value("x_out", TensorProto.FLOAT, ["batch", SIZE])],
    )
    nodes = [node("Loop", ["trips", "go", "x"], ["y"], name="loop", body=body)]
    inputs = [
        value("x", TensorProto.FLOAT, ["batch", SIZE]),
        value("trips", TensorProto.INT64, []),
    ]
    outputs = [value("y", TensorProto.FLOAT, ["batch", SIZE])]
    constants = [waves("w", SIZE, SIZE), numpy_helper.from_array(np.array(True), "go")]
    return write(folder / "loop.onnx", nodes, inputs, outputs, constants)


def mixed(folder: Path) -> Path:
    """Inputs that are no floats, of two open sizes: numbers of tokens, and a mask. An int64 comes out too."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("Gather", ["table", "ids"], ["e"], name="embed"),
        node("Cast", ["mask"], ["m"], name="cast", to=TensorProto.FLOAT),
        node("Unsqueeze", ["m", "last"], ["mm"], name="widen"),
        node("Mul", ["e", "mm"], ["w"], name="mask"),
        node("ReduceSum", ["w", "one"], ["sums"], name="sum", keepdims=0),
        node("ArgMax", ["sums"], ["best"], name="best", axis=1, keepdims=0),
    ]
    inputs = [
        value("ids", TensorProto.INT64, ["batch", "length"]),
        value("mask", TensorProto.BOOL, ["batch", "length"]),
    ]
    outputs = [value("sums", TensorProto.FLOAT, ["batch", 16]), value("best", TensorProto.INT64, ["batch"])]
    constants = [waves("table", 4, 16), whole("last", -1), whole("one", 1)]
    return write(folder / "mixed.onnx", nodes, inputs, outputs, constants)


def logarithm(folder: Path) -> Path:
    """Gives what is no number, and what is infinite."""
    node = helper.make_node("Log", ["x"], ["y"], name="log")
    value = helper.make_tensor_value_info
    inputs, outputs = [value("x", TensorProto.FLOAT, [4])], [value("y", TensorProto.FLOAT, [4])]
    return write(folder / "logarithm.onnx", [node], inputs, outputs)


def reference(model: Path, inputs: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """What the model gives, by ONNX's own evaluator in numpy."""
    evaluator = ReferenceEvaluator(str(model))
    return dict(zip(evaluator.output_names, evaluator.run(None, dict(inputs)), strict=True))
