"""The stamps of an ONNX model, read from the file without its weights.

An ONNX file is one protocol buffer message; fields that do not matter (the graph with its weights) are
skipped.
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ortimg.core.onnx_support import Stamp

_IR_VERSION, _OPSET_IMPORT = 1, 8  # fields of ModelProto
_DOMAIN, _VERSION = 1, 2  # fields of OperatorSetIdProto
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST = 1 << 16  # bytes; an opset entry is some 20 bytes long


class NotAModelError(Exception):
    """The file is no ONNX model."""


def read_stamp(path: Path) -> Stamp:
    """IR version and opsets of the model at `path`. Raises `NotAModelError`."""
    ir, opsets = None, {}
    try:
        with path.open("rb") as file:
            for field, value in _fields(file, path.stat().st_size):
                if field == _IR_VERSION and isinstance(value, int):
                    ir = value
                elif field == _OPSET_IMPORT and isinstance(value, bytes):
                    domain, version = _opset(value)
                    opsets[domain] = version
    except (ValueError, EOFError) as error:
        raise NotAModelError(f"{path.name} is not an ONNX model ({error})") from error
    if ir is None or not opsets:
        raise NotAModelError(f"{path.name} is not an ONNX model (it names no IR version and opset)")
    return Stamp(ir=ir, opsets=opsets)


def _opset(data: bytes) -> tuple[str, int]:
    import io

    domain, version = "", 0
    for field, value in _fields(io.BytesIO(data), len(data), whole=True):
        if field == _DOMAIN and isinstance(value, bytes):
            domain = value.decode()
        elif field == _VERSION and isinstance(value, int):
            version = value
    return domain, version


def _fields(file: BinaryIO, size: int, whole: bool = False) -> Iterator[tuple[int, int | bytes]]:
    """Fields of the message; contents only of those that may matter (`whole`: of all)."""
    while file.tell() < size:
        key = _varint(file)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            yield field, _varint(file)
        elif kind == _BYTES:
            length = _varint(file)
            if file.tell() + length > size:
                raise ValueError("cut")
            if (whole or field == _OPSET_IMPORT) and length <= _MOST:
                yield field, file.read(length)
            else:
                file.seek(length, 1)
        elif kind in (_FIXED64, _FIXED32):
            file.seek(8 if kind == _FIXED64 else 4, 1)
        else:
            raise ValueError(f"field of kind {kind}")


def _varint(file: BinaryIO) -> int:
    value = shift = 0
    while shift < 70:
        byte = file.read(1)
        if not byte:
            raise EOFError("cut")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
    raise ValueError("number too long")
