"""Small ONNX models for runs on a GPU. Opset 13 and IR version 7 suit every ONNX Runtime from 1.14 on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx_pieces import waves, whole, write


def cuda_lacks(folder: Path) -> Path:
    """Five nodes; for three of them the CUDA provider has no kernel."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("MatMul", ["a", "a"], ["b"], name="square"),
        node("Atan", ["b"], ["c"], name="angle"),
        node("Relu", ["c"], ["d"], name="relu"),
        node("Det", ["d"], ["e"], name="det"),
        node("Asin", ["a"], ["f"], name="arc"),
    ]
    inputs = [value("a", TensorProto.FLOAT, ["n", 4, 4])]
    outputs = [value("e", TensorProto.FLOAT, ["n"]), value("f", TensorProto.FLOAT, ["n", 4, 4])]
    return write(folder / "cuda-lacks.onnx", nodes, inputs, outputs)


def endless(folder: Path) -> Path:
    """A loop on the GPU that does not end within anyone's patience."""
    node, value = helper.make_node, helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["go_in"], ["go_out"]), node("Mul", ["x_in", "half"], ["x_out"], name="halve")],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go_in", TensorProto.BOOL, []),
            value("x_in", TensorProto.FLOAT, [4]),
        ],
        [value("go_out", TensorProto.BOOL, []), value("x_out", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.full(4, 0.5, dtype=np.float32), "half")],
    )
    constants = [
        numpy_helper.from_array(np.array(2**62, dtype=np.int64), "trips"),
        numpy_helper.from_array(np.array(True), "go"),
    ]
    nodes = [node("Loop", ["trips", "go", "x"], ["y"], name="loop", body=body)]
    inputs, outputs = (
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, [4])],
    )
    return write(folder / "endless.onnx", nodes, inputs, outputs, constants)


def embedding(folder: Path) -> Path:
    """Two inputs that are no floats, of open sizes: token numbers and a mask."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("Gather", ["table", "ids"], ["e"], name="embed"),
        node("Cast", ["mask"], ["m"], name="cast", to=TensorProto.FLOAT),
        node("Unsqueeze", ["m", "last"], ["mm"], name="widen"),
        node("Mul", ["e", "mm"], ["w"], name="mask"),
        node("MatMul", ["w", "p"], ["o"], name="project"),
        node("ReduceSum", ["o", "one"], ["s"], name="sum", keepdims=0),
    ]
    inputs = [
        value("ids", TensorProto.INT64, ["batch", "length"]),
        value("mask", TensorProto.BOOL, ["batch", "length"]),
    ]
    outputs = [value("s", TensorProto.FLOAT, ["batch", 8])]
    constants = [waves("table", 4, 16), waves("p", 16, 8), whole("last", -1), whole("one", 1)]
    return write(folder / "embedding.onnx", nodes, inputs, outputs, constants)


def chain(folder: Path) -> Path:
    """Three matrix products of 256 by 256: TF32 shows."""
    node, value, size = helper.make_node, helper.make_tensor_value_info, 256
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="first"),
        node("Relu", ["a"], ["b"], name="relu"),
        node("MatMul", ["b", "w"], ["c"], name="second"),
        node("MatMul", ["c", "w"], ["y"], name="third"),
    ]
    inputs = [value("x", TensorProto.FLOAT, ["batch", size])]
    outputs = [value("y", TensorProto.FLOAT, ["batch", size])]
    return write(folder / "chain.onnx", nodes, inputs, outputs, [waves("w", size, size)])
