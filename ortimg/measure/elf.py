"""What a shared library asks of the system that loads it, read from its ELF headers."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection

from ortimg.core.versions import number

_PF_X = 1  # p_flags: executable
_GPU_LIBRARY = re.compile(
    rb"lib(?:cudart|cublas|cublasLt|cufft|curand|cudnn|nvrtc|nvJitLink|cuda)(?:[-_][a-z_-]+)?\.so(?:\.[0-9.]+)?(?=\0)"
)
_NAMED = {"DT_NEEDED": "needed", "DT_SONAME": "soname", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath"}
_CHUNK = 1 << 24  # bytes
_OVERLAP = 100  # bytes; longer than any name looked for


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """The needs of one library. Versions are text such as "2.27"; None: none asked for."""

    soname: str | None
    needed: tuple[str, ...]
    run_path: str | None  # RPATH or RUNPATH as it stands in the file
    glibc: str | None  # newest GLIBC_ symbol version
    glibcxx: str | None  # newest GLIBCXX_ symbol version
    program_versions: tuple[str, ...]  # symbol versions asked of anything but the C and C++ libraries
    defines: tuple[str, ...]  # symbol versions it defines, such as "VERS_1.16.2"
    executable_stack: bool  # glibc 2.41 and later refuse to load it with dlopen


class NotALibraryError(Exception):
    """The file is no ELF shared library or program."""


def read_library(path: Path) -> Library:
    """The needs of the library or program at `path`. Raises `NotALibraryError`."""
    try:
        with path.open("rb") as file:
            return _read(ELFFile(file))
    except ELFError as error:
        raise NotALibraryError(f"{path.name} is not an ELF file ({error})") from error


def _read(elf: ELFFile) -> Library:
    soname: str | None = None
    run_path: str | None = None
    needed: list[str] = []
    wanted: list[str] = []
    defines: list[str] = []
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                # pyelftools sets an attribute of the tag's own name at run time
                kind = str(tag.entry.d_tag)
                text = str(getattr(tag, _NAMED[kind])) if kind in _NAMED else ""
                if kind == "DT_NEEDED":
                    needed.append(text)
                elif kind == "DT_SONAME":
                    soname = text
                elif kind in ("DT_RPATH", "DT_RUNPATH"):
                    run_path = text
        elif isinstance(section, GNUVerNeedSection):
            wanted += [version.name for _, versions in section.iter_versions() for version in versions]
        elif isinstance(section, GNUVerDefSection):
            # the first name of each definition is its own, the others are what it builds on
            defines += [next(iter(names)).name for _, names in section.iter_versions()]
    known = ("GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_")
    return Library(
        soname=soname,
        needed=tuple(needed),
        run_path=run_path,
        glibc=_newest(wanted, "GLIBC_"),
        glibcxx=_newest(wanted, "GLIBCXX_"),
        program_versions=tuple(sorted({name for name in wanted if not name.startswith(known)})),
        defines=tuple(name for name in defines if name != soname),
        executable_stack=_executable_stack(elf),
    )


def _newest(names: list[str], prefix: str) -> str | None:
    versions = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    plain = [version for version in versions if re.fullmatch(r"[0-9.]+", version)]  # not GLIBC_PRIVATE
    return max(plain, key=number, default=None)


def _executable_stack(elf: ELFFile) -> bool:
    """PT_GNU_STACK with the executable flag. Without the header, x86-64 takes the stack as not executable."""
    return any(
        segment["p_type"] == "PT_GNU_STACK" and bool(segment["p_flags"] & _PF_X)
        for segment in elf.iter_segments()
    )


def opened_by_name(path: Path) -> tuple[str, ...]:
    """CUDA libraries whose names stand as text in the file and that it does not link to: it can dlopen them.

    That a name is there does not prove that it is used.
    """
    found: set[str] = set()
    with path.open("rb") as file:
        elf = ELFFile(file)
        for name in (".rodata", ".data", ".data.rel.ro"):
            section = elf.get_section_by_name(name)
            if section is None or section["sh_type"] == "SHT_NOBITS":
                continue
            left, tail = section["sh_size"], b""
            file.seek(section["sh_offset"])
            while left > 0:
                chunk = file.read(min(_CHUNK, left))
                if not chunk:
                    break
                left -= len(chunk)
                found |= {match[0].decode() for match in _GPU_LIBRARY.finditer(tail + chunk)}
                tail = chunk[-_OVERLAP:]
    return tuple(sorted(found - {*read_library(path).needed}))
