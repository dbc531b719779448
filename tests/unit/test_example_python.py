"""What of examples/python-service runs without its packages: its settings, and the reading of tensors."""

from __future__ import annotations

import importlib
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SERVICE = Path(__file__).parents[2] / "examples" / "python-service"


@pytest.fixture(scope="module")
def service() -> Iterator[dict[str, ModuleType]]:
    """Its modules by name."""
    sys.path.insert(0, str(SERVICE))
    try:
        yield {name: importlib.import_module(f"service.{name}") for name in ("settings", "tensors")}
    finally:
        sys.path.remove(str(SERVICE))
        for name in [name for name in sys.modules if name.partition(".")[0] == "service"]:
            del sys.modules[name]


def read(service: dict[str, ModuleType], dtype: str, data: list[Any]) -> Any:
    tensors = service["tensors"]
    declared = tensors.Input("x", dtype, (None,))
    body = {"inputs": {"x": {"shape": [len(data)], "dtype": dtype, "data": data}}}
    return tensors.read_inputs(body, [declared])["x"]


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("float32", [0.5, 1, -3.4028235e38]),
        ("float16", [65504.0]),
        ("int64", [-(2**63), 2**63 - 1]),
        ("uint64", [0, 2**64 - 1]),
        ("int8", [-128, 127]),
        ("bool", [True, False]),
        ("float32", []),
    ],
)
def test_what_fits_is_kept(service: dict[str, ModuleType], dtype: str, data: list[Any]) -> None:
    found = read(service, dtype, data)
    assert found.dtype.name == dtype
    assert found.tolist() == pytest.approx(data)


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("float32", [True, 1.5]),
        ("float32", [None]),
        ("float32", [[1.5]]),
        ("float32", [{}]),
        ("float32", [1e39]),
        ("float16", [70000.0]),
        ("int64", [2**63]),
        ("int64", [True, 2]),
        ("int64", [1.0]),
        ("uint64", [-1, 2**64 - 1]),
        ("uint8", [256]),
        ("bool", [1]),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(service: dict[str, ModuleType], dtype: str, data: list[Any]) -> None:
    with pytest.raises(service["tensors"].BadInputError, match="input 'x': data"):
        read(service, dtype, data)


def test_long_words_take_no_memory(service: dict[str, ModuleType]) -> None:
    """NumPy makes every word of an array as wide as the longest one: here that would be a gigabyte."""
    data = ["a" * 1_000_000] + ["b"] * 255
    tracemalloc.start()
    try:
        with pytest.raises(service["tensors"].BadInputError):
            read(service, "float32", data)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "setting",
    [
        {"PORT": "65536"},
        {"RECEIVE_SECONDS": "0"},
        {"WARMUP_SHAPES": "x=1x0"},
        {"WARMUP_SHAPES": "x=-1x256"},
        {"WARMUP_SHAPES": "x=1x"},
        {"WARMUP_SHAPES": "1x256"},
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_told_in_a_line(
    service: dict[str, ModuleType], setting: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        service["settings"].read_settings(["--model=/dev/null"], setting)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert next(iter(setting)).lower().replace("_", "-") in line


def test_shapes_of_the_warm_up(service: dict[str, ModuleType]) -> None:
    settings, _ = service["settings"].read_settings(
        ["--model=/dev/null"], {"WARMUP_SHAPES": "x=2x256,a=b=3,scalar="}
    )
    assert settings.warmup_shapes == {"x": (2, 256), "a=b": (3,), "scalar": ()}
