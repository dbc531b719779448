"""Whether a program that links to ONNX Runtime loads with another version of it.

Up to 1.18 the SONAME is the whole version. From 1.19 on it is `libonnxruntime.so.1`, but the symbols carry a
version (`VERS_1.20.1`) that ties a linked program to that very release all the same. dlopen with dlsym is
free of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_LIBRARY = "libonnxruntime.so"
_SYMBOLS = "VERS_"


class Linked(Protocol):
    """What a program that links to a release meets: a catalogue row, or what was read in a file."""

    @property
    def version(self) -> str: ...
    @property
    def soname(self) -> str: ...


def symbol_version(release: Linked) -> str:
    """Version of the symbols of libonnxruntime.so: `VERS_1.20.1`."""
    return f"{_SYMBOLS}{release.version}"


def must_relink(needed: Sequence[str], wanted: Sequence[str], release: Linked) -> str | None:
    """Why a program cannot load this release, or None: it can, or does not link to ONNX Runtime.

    `needed`: its NEEDED; `wanted`: the symbol versions that it asks for.
    """
    libraries = [name for name in needed if name == _LIBRARY or name.startswith(f"{_LIBRARY}.")]
    symbols = [name for name in wanted if name.startswith(_SYMBOLS)]
    again = f"link it again with ONNX Runtime {release.version}, or open the library with dlopen"
    for name in libraries:
        if name not in (release.soname, _LIBRARY):
            return f"it links to {name}, ONNX Runtime {release.version} is {release.soname}: {again}"
    for name in symbols:
        if libraries and name != symbol_version(release):
            own = symbol_version(release)
            return f"it asks for symbols {name}, ONNX Runtime {release.version} has {own}: {again}"
    return None
