"""What the tests of `compare` share: sides with nothing special about them, and the tables of the package."""

from __future__ import annotations

from typing import Any

import msgspec

from ortimg.comparing.asking import facts
from ortimg.core.compare import Asked, compare
from ortimg.core.compare_model import Comparison, Finding, Function, Headers, Program, Side, Source
from ortimg.core.model import Confidence, GpuArchitectures

FACTS = facts()
GPU = GpuArchitectures(sass=("60", "70", "75", "80"), ptx=("80",), confidence=Confidence.MEASURED)
FUNCTIONS = tuple(Function(name, f"({name})") for name in ("CreateStatus", "GetErrorCode", "Run"))


def side(version: str = "1.20.1", **more: Any) -> Side:
    """An image whose facts are all known."""
    plain = Side(
        name=version,
        source=Source.IMAGE,
        brings_cuda=True,
        ort=version,
        cuda="12.2",
        cudnn="9.5.1",
        soname="libonnxruntime.so.1",
        symbols=f"VERS_{version}",
        needed=("libcudart.so.12", "libcudnn.so.9"),
        lazy=(),
        libraries=("libcudart.so.12", "libcudnn.so.9"),
        gpu=GPU,
        set_gpu=(GPU,),
        exports=("OrtGetApiBase",),
        headers=Headers(version=int(version.split(".")[1]), functions=FUNCTIONS),
        size=1000,
        glibc="2.27",
        packages=(),
    )
    return msgspec.structs.replace(plain, **more)


def between(old: Side, new: Side, **asked: Any) -> Comparison:
    return compare(old, new, Asked(**asked), FACTS)


def finding(found: Comparison, check: str) -> Finding:
    """The one finding of a check."""
    (one,) = [one for one in found.findings if one.check == check]
    return one


def program(*needed: str, wanted: tuple[str, ...] = (), imports: tuple[str, ...] = ()) -> Program:
    return Program(path="/app/serve", needed=needed, wanted=wanted, imports=imports)
