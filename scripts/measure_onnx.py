"""Asks real ONNX Runtime libraries which opset and IR version they know at most; prints `onnx.yaml` rows.

Run: `python scripts/measure_onnx.py`: every archive in ortimg's cache is asked, on the CPU, in a process of
its own. Each is given two models that no version can know (IR version 99, opset 99) and names its limits in
its refusal.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from onnx import TensorProto, helper

from ortimg.core.versions import number
from ortimg.inputs.cache import Cache

API_VERSION = 14  # the oldest that every version of the catalogue gives out
# Places of functions in the table OrtApi (onnxruntime_c_api.h), which only grows at its end.
GET_ERROR_MESSAGE, CREATE_ENV, CREATE_SESSION_FROM_ARRAY, CREATE_SESSION_OPTIONS = 2, 3, 8, 10
_IR = re.compile(r"max supported IR version: (\d+)")
_OPSET = re.compile(r"official support for domain (\S+) is till opset (\d+)")


def model(ir: int, domain: str, opset: int) -> bytes:
    """A model of one node of `domain`."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    node = helper.make_node("Normalizer" if domain else "Relu", ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "g", [value], [out])
    opsets = [helper.make_opsetid(domain, opset)]
    if domain:
        opsets.append(helper.make_opsetid("", 13))
    made = helper.make_model(graph, opset_imports=opsets)
    made.ir_version = ir
    return bytes(made.SerializeToString())


def ask(library: Path) -> dict[str, int]:
    """The limits of the library, from what it says about models that are too new."""
    ort = ctypes.CDLL(str(library))
    ort.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
    get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)(ort.OrtGetApiBase()[0])
    api = get_api(API_VERSION)
    pointer, status = ctypes.c_void_p, ctypes.c_void_p
    message = ctypes.CFUNCTYPE(ctypes.c_char_p, status)(api[GET_ERROR_MESSAGE])
    make_env = ctypes.CFUNCTYPE(status, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(pointer))(
        api[CREATE_ENV]
    )
    make_options = ctypes.CFUNCTYPE(status, ctypes.POINTER(pointer))(api[CREATE_SESSION_OPTIONS])
    make_session = ctypes.CFUNCTYPE(
        status, pointer, ctypes.c_char_p, ctypes.c_size_t, pointer, ctypes.POINTER(pointer)
    )(api[CREATE_SESSION_FROM_ARRAY])
    env, options = pointer(), pointer()
    assert not make_env(3, b"ask", ctypes.byref(env)) and not make_options(ctypes.byref(options))

    def refusal(data: bytes) -> str:
        session = pointer()
        failed = make_session(env, data, len(data), options, ctypes.byref(session))
        return message(failed).decode(errors="replace") if failed else ""

    found: dict[str, int] = {}
    if match := _IR.search(refusal(model(99, "", 13))):
        found["ir"] = int(match[1])
    for key, domain in (("opset", ""), ("ml_opset", "ai.onnx.ml")):
        if match := _OPSET.search(refusal(model(7, domain, 99))):
            found[key] = int(match[2])
    return found


def main() -> None:
    if sys.argv[1:2] == ["--ask"]:
        print(json.dumps(ask(Path(sys.argv[2]))))
        return
    cache, rows = Cache.default(print), {}
    for name in cache.names():
        if not name.startswith("ort/") or (entry := cache.get(name)) is None:
            continue
        with cache.workdir() as work, tarfile.open(cache.path(entry)) as archive:
            member = next(
                one
                for one in archive
                if one.isreg() and re.search(r"/lib/libonnxruntime\.so\.[0-9.]+$", one.name)
            )
            source = archive.extractfile(member)
            assert source is not None
            library = work / Path(member.name).name
            library.write_bytes(source.read())
            command = [sys.executable, __file__, "--ask", str(library)]
            answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            rows[library.name.removeprefix("libonnxruntime.so.")] = json.loads(answer)
    for version in sorted(rows, key=number):
        told = ", ".join(f"{key}: {value}" for key, value in rows[version].items())
        print(f'  - {{ort: "{version}", {told}}}')


if __name__ == "__main__":
    main()
