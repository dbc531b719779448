"""Pieces of small ONNX models for tests. Opset 13 and IR version 7 suit every ONNX Runtime from 1.14 on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper


def waves(name: str, *shape: int) -> TensorProto:
    values = np.sin(np.arange(np.prod(shape), dtype=np.float64) * 0.37) * 0.1
    return numpy_helper.from_array(values.astype(np.float32).reshape(shape), name)


def whole(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def write(
    path: Path,
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto] = (),
) -> Path:
    graph = helper.make_graph(list(nodes), path.stem, list(inputs), list(outputs), list(constants))
    opset = helper.make_opsetid("", 13)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=7, producer_name="ortimg")
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path
