"""Python packages that take each other's place: all of ONNX Runtime's are one module, `onnxruntime`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FOLDER = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.(?:dist|egg)-info")
_OURS = re.compile(r"(?:onnxruntime|ort-nightly)(?:-[a-z0-9-]+)?")
_OTHERS = {"onnxruntime-extensions", "onnxruntime-genai", "onnxruntime-tools", "onnxruntime-training-cpu"}
GPU_PACKAGE = "onnxruntime-gpu"


def clash(folders: Iterable[str]) -> str | None:
    """That several packages bring the module `onnxruntime`, by the names of `*.dist-info` folders."""
    found: dict[str, str] = {}
    for folder in folders:
        if match := _FOLDER.fullmatch(folder):
            name = re.sub(r"[-_.]+", "-", match["name"]).lower()
            if _OURS.fullmatch(name) and name not in _OTHERS:
                found[name] = match["version"]
    if len(found) < 2:
        return None
    named = " and ".join(f"{name} {version}" for name, version in sorted(found.items()))
    return (
        f"{named} are both installed and overwrite each other's module: "
        f"pip uninstall {' '.join(sorted(found))}, then install {GPU_PACKAGE} alone"
    )
