"""Libraries and programs, opened: everything of them that a comparison looks at."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ortimg.core.compare_model import Program
from ortimg.core.model import GpuArchitectures
from ortimg.measure.elf import Library, NotALibraryError, opened_by_name, read_library
from ortimg.measure.fatbin import read_gpu_code

_LINKED = b"libonnxruntime.so"  # stands in the strings of whatever links to it
_ABSOLUTE = "SHN_ABS"  # the section of a symbol that names a version
# What pyelftools raises on files that are cut or were never libraries, besides its own error.
_DAMAGE = (ELFError, ConstructError, NotALibraryError, ValueError, struct.error, AssertionError, KeyError,
           IndexError, OverflowError, AttributeError, TypeError)  # fmt: skip
_T = TypeVar("_T")


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """libonnxruntime.so, read."""

    library: Library
    exports: tuple[str, ...]


class CudaProvider(msgspec.Struct, frozen=True, kw_only=True):
    """libonnxruntime_providers_cuda.so, read."""

    library: Library
    opened: tuple[str, ...]  # CUDA libraries whose names stand in it and that it does not link to
    gpu: GpuArchitectures


class BrokenFileError(Exception):
    """The file is no whole ELF library; the text says what about it."""


def read_core(path: Path) -> Core:
    """Raises `BrokenFileError`."""
    return _guarded(path, lambda: Core(library=read_library(path), exports=exports_of(path)))


def read_provider(path: Path) -> CudaProvider:
    """Raises `BrokenFileError`."""
    return _guarded(
        path,
        lambda: CudaProvider(
            library=read_library(path), opened=opened_by_name(path), gpu=read_gpu_code(path)
        ),
    )


def read_cuda_library(path: Path) -> GpuArchitectures | None:
    """GPU code of a CUDA library; None where it holds none. Raises `BrokenFileError`."""
    code = _guarded(path, lambda: read_gpu_code(path))
    return code if code.sass or code.ptx else None


def read_program(path: Path, name: str) -> Program:
    """What ties the program or library at `path`, called `name`, to ONNX Runtime.

    Raises `BrokenFileError`.
    """
    library, imports = _guarded(path, lambda: (read_library(path), _symbols(path, defined=False)))
    return Program(
        path=name,
        needed=library.needed,
        wanted=library.program_versions,
        imports=tuple(symbol for symbol in imports if symbol.startswith("Ort")),
    )


def may_link(path: Path) -> bool:
    """Whether the file is an ELF one and names ONNX Runtime's library: quick, over any number of files."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return data.find(_LINKED) >= 0
    except (OSError, ValueError):  # gone meanwhile, empty, not to be read
        return False


def exports_of(path: Path) -> tuple[str, ...]:
    """Functions and variables that the library offers to others, sorted."""
    return _symbols(path, defined=True)


def _symbols(path: Path, *, defined: bool) -> tuple[str, ...]:
    found: set[str] = set()
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        if not isinstance(table, SymbolTableSection):
            return ()
        for symbol in table.iter_symbols():
            outside = symbol["st_shndx"] == "SHN_UNDEF"
            if outside is defined or symbol["st_shndx"] == _ABSOLUTE or not symbol.name:
                continue
            if symbol["st_info"]["bind"] != "STB_LOCAL":
                found.add(symbol.name)
    return tuple(sorted(found))


def _guarded(path: Path, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except _DAMAGE as error:
        text = str(error).removeprefix(f"{path.name} ") or type(error).__name__
        raise BrokenFileError(text) from error
