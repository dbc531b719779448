"""Makes the models that ort-verify loads: `ortimg/verify/model/*.onnx` and their C texts `src/model*.inc`.

Run: `python scripts/make_verify_model.py` (needs the packages of requirements/dev.txt). The bytes are always
the same. Opset 13 and IR version 7 suit every ONNX Runtime from 1.14 on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

VERIFY = Path(__file__).resolve().parent.parent / "ortimg" / "verify"


def weights(name: str, *shape: int) -> TensorProto:
    """Small values that differ, made without a random generator (whose stream may change)."""
    count = int(np.prod(shape))
    values = np.sin(np.arange(1, count + 1, dtype=np.float64) * 0.7) * 0.3
    return numpy_helper.from_array(values.astype(np.float32).reshape(shape), name)


def make_model() -> bytes:
    """A convolution block (cuDNN), one attention head (cuBLAS, softmax), a reduction and a Gemm."""
    node = helper.make_node
    nodes = [
        node(
            "Conv", ["image", "conv.w", "conv.b"], ["c"], name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]
        ),
        node("BatchNormalization", ["c", "bn.s", "bn.b", "bn.m", "bn.v"], ["n"], name="norm"),
        node("Relu", ["n"], ["r"], name="relu"),
        node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Reshape", ["p", "tokens"], ["t"], name="reshape"),
        node("MatMul", ["t", "q.w"], ["q"], name="query"),
        node("MatMul", ["t", "k.w"], ["k"], name="key"),
        node("MatMul", ["t", "v.w"], ["v"], name="value"),
        node("Transpose", ["k"], ["kt"], name="transpose", perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["s"], name="scores"),
        node("Softmax", ["s"], ["a"], name="softmax", axis=-1),
        node("MatMul", ["a", "v"], ["o"], name="attend"),
        node("Add", ["o", "t"], ["y"], name="add"),
        node("ReduceMean", ["y"], ["m"], name="mean", axes=[1], keepdims=0),
        node("Gemm", ["m", "fc.w", "fc.b"], ["g"], name="gemm"),
        node("Sigmoid", ["g"], ["out"], name="sigmoid"),
    ]
    constants = [
        weights("conv.w", 8, 3, 3, 3),
        weights("conv.b", 8),
        weights("bn.s", 8),
        weights("bn.b", 8),
        weights("bn.m", 8),
        numpy_helper.from_array(np.linspace(0.5, 1.5, 8, dtype=np.float32), "bn.v"),
        numpy_helper.from_array(np.array([1, 32, 8], dtype=np.int64), "tokens"),
        weights("q.w", 8, 8),
        weights("k.w", 8, 8),
        weights("v.w", 8, 8),
        weights("fc.w", 8, 4),
        weights("fc.b", 4),
    ]
    return finished(nodes, constants, [1, 4])


def make_model_without_conv() -> bytes:
    """For images without cuDNN: an attention head and a Gemm, nothing that asks for it."""
    node = helper.make_node
    nodes = [
        node("Reshape", ["image", "tokens"], ["t"], name="reshape"),
        node("MatMul", ["t", "q.w"], ["q"], name="query"),
        node("MatMul", ["t", "k.w"], ["k"], name="key"),
        node("MatMul", ["t", "v.w"], ["v"], name="value"),
        node("Transpose", ["k"], ["kt"], name="transpose", perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["s"], name="scores"),
        node("Softmax", ["s"], ["a"], name="softmax", axis=-1),
        node("MatMul", ["a", "v"], ["o"], name="attend"),
        node("Add", ["o", "t"], ["y"], name="add"),
        node("Reshape", ["y", "rows"], ["m"], name="flatten"),
        node("Gemm", ["m", "fc.w", "fc.b"], ["g"], name="gemm"),
        node("Sigmoid", ["g"], ["out"], name="sigmoid"),
    ]
    constants = [
        numpy_helper.from_array(np.array([1, 48, 8], dtype=np.int64), "tokens"),
        numpy_helper.from_array(np.array([48, 8], dtype=np.int64), "rows"),
        weights("q.w", 8, 8),
        weights("k.w", 8, 8),
        weights("v.w", 8, 8),
        weights("fc.w", 8, 4),
        weights("fc.b", 4),
    ]
    return finished(nodes, constants, [48, 4])


def finished(nodes: list[NodeProto], constants: list[TensorProto], out: list[int]) -> bytes:
    """The model of these nodes, from an image to an output of the shape `out`."""
    graph = helper.make_graph(
        nodes,
        "ort-verify",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 16])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, out)],
        constants,
    )
    opset = helper.make_opsetid("", 13)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=7, producer_name="ortimg")
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def as_c_text(model: bytes, name: str = "verify.onnx") -> str:
    """The bytes as the inside of a C initializer."""
    rows = [model[start : start + 20] for start in range(0, len(model), 20)]
    lines = [",".join(f"{byte}" for byte in row) + "," for row in rows]
    return (
        f"// made by scripts/make_verify_model.py from the same bytes as model/{name}\n"
        + "\n".join(lines)
        + "\n"
    )


def main() -> None:
    (VERIFY / "model").mkdir(exist_ok=True)
    for name, text, model in (
        ("verify.onnx", "model.inc", make_model()),
        ("verify-without-conv.onnx", "model_without_conv.inc", make_model_without_conv()),
    ):
        (VERIFY / "model" / name).write_bytes(model)
        (VERIFY / "src" / text).write_text(as_c_text(model, name))
        print(f"{name}: {len(model)} bytes")


if __name__ == "__main__":
    main()
