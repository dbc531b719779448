"""Tensors as JSON: {"shape": [1, 256], "dtype": "float32", "data": [...]}, with the data flat, row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# ONNX Runtime's names of element types, and NumPy's.
DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bool)": "bool",
    **{f"tensor({sign}int{bits})": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class BadInputError(ValueError):
    """A request that cannot be run; its words are for who sent it."""


@dataclass(frozen=True)
class Input:
    """An input as the model declares it."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]  # None: any size

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join('any' if size is None else str(size) for size in self.shape)}]"


def read_inputs(body: object, declared: Sequence[Input]) -> dict[str, Array]:
    """The tensors of a request's JSON. Raises BadInputError."""
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(inputs, dict):
        raise BadInputError('the body must be an object with "inputs": {NAME: {"shape", "dtype", "data"}}')
    names = [one.name for one in declared]
    for name in inputs:
        if name not in names:
            raise BadInputError(f"the model has no input {name!r}; it has {', '.join(names)}")
    for name in names:
        if name not in inputs:
            raise BadInputError(f"input {name!r} is missing")
    return {one.name: _read(one, inputs[one.name]) for one in declared}


def _read(declared: Input, tensor: object) -> Array:
    where = f"input {declared.name!r}"
    if not isinstance(tensor, dict) or tensor.keys() != {"shape", "dtype", "data"}:
        raise BadInputError(f"{where}: it must be an object with shape, dtype and data")
    shape, dtype, data = tensor["shape"], tensor["dtype"], tensor["data"]
    if dtype != declared.dtype:
        raise BadInputError(f"{where}: dtype is {dtype!r}, the model wants {declared.dtype!r}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise BadInputError(f"{where}: shape must be a list of whole numbers")
    fits = len(shape) == len(declared.shape) and all(
        wanted in (None, size) for wanted, size in zip(declared.shape, shape, strict=True)
    )
    if not fits:
        raise BadInputError(f"{where}: shape is {shape}, the model wants {declared}")
    if not isinstance(data, list) or len(data) != math.prod(shape):
        found = f"{len(data)} numbers" if isinstance(data, list) else "no list"
        raise BadInputError(f"{where}: data has {found}, shape {shape} wants {math.prod(shape)}")
    return _convert(data, declared.dtype, where).reshape(shape)


def _convert(data: list[object], dtype: str, where: str) -> Array:
    """Numbers of that type and no others: nothing is cut, rounded to whole numbers or wrapped around."""
    wanted = np.dtype(dtype)
    if not data:
        return np.empty(0, wanted)
    # Before NumPy sees them: of words it would make an array in which each is as wide as the longest.
    kinds: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}
    if not kinds[wanted.kind].issuperset(map(type, data)):
        raise BadInputError(f"{where}: data must be a flat list of values of {dtype}")
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        if min(data) < limits.min or max(data) > limits.max:  # type: ignore[type-var,operator]  # all int
            raise BadInputError(f"{where}: data has a number that {dtype} cannot hold")
    with np.errstate(over="ignore"):
        values = np.array(data, wanted)
    if wanted.kind == "f" and not np.isfinite(values).all():
        raise BadInputError(f"{where}: data has a number that {dtype} cannot hold")
    return values


def as_json(values: Array) -> Mapping[str, object]:
    """An output. orjson writes NumPy's numbers as they are; JSON has no NaN and no infinity."""
    flat: object = np.ascontiguousarray(values).reshape(-1)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        flat = [_NOT_FINITE.get(str(value), value) for value in values.reshape(-1).tolist()]
    return {"shape": values.shape, "dtype": str(values.dtype), "data": flat}


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
