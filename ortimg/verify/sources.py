"""The C sources of `ort-verify`, its stub driver and its model, as the Docker context holds them."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_FOLDERS = ("src", "stub", "model")
_SUFFIXES = {".c", ".h", ".inc", ".onnx", ".LICENSE"}


def verifier_sources() -> dict[str, bytes]:
    """Relative path (`verify/src/main.c`) → content, sorted: everything that the compile step needs."""
    files = sorted(path for folder in _FOLDERS for path in (_HERE / folder).iterdir())
    return {
        f"verify/{path.relative_to(_HERE).as_posix()}": path.read_bytes()
        for path in files
        if path.suffix in _SUFFIXES
    }
