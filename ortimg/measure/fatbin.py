"""GPU code in a library: for which compute capabilities it holds machine code and portable code.

NVIDIA's compiler puts both into containers, each with a header (magic 0xBA55ED50, version 1, header of 16
bytes, u64 size) and entries (u16 kind, u32 header size at 4, u64 size at 8, u32 packed size at 16, u16 PTX
minor and major at 24, u32 architecture at 28, u64 flags at 40, u64 unpacked size at 56). They lie in the
section `.nv_fatbin`, but cuFFT keeps most of them in `__nv_relfatbin` and `.data`, so the whole file is
searched. The format is not documented by NVIDIA; this was found on real files, see also
https://github.com/n-eiling/cuda-fatbin-decompression.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ortimg.core.gpu import sm_order
from ortimg.core.model import Confidence, GpuArchitectures
from ortimg.core.versions import number

_MAGIC = b"\x50\xed\x55\xba"
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _SASS = 1, 2
_LZ4, _ZSTD = 0x2000, 0x8000
_SPECIFIC = 0x100000  # machine code for this very architecture: 90a, not 90
_HEAD = 400  # bytes of PTX text in which `.target` stands
_SMALL = 4096  # bytes; machine code of one tiny function takes about 3,000
_TARGET = re.compile(rb"^\s*\.target\s+sm_([0-9]+[af]?)", re.MULTILINE)


class Entry(msgspec.Struct, frozen=True):
    """One piece of GPU code."""

    kind: int  # 1 PTX, 2 machine code; others are left alone
    architecture: int  # 90 for compute capability 9.0
    flags: int
    ptx_isa: str  # version of the PTX language, "8.2"; without meaning for machine code
    start: int  # of the contents, in bytes from the start of the section
    size: int  # bytes as stored
    unpacked: int  # bytes


def read_gpu_code(path: Path) -> GpuArchitectures:
    """Compute capabilities in the library at `path`, measured; empty where it holds no GPU code."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return summary(data)


def summary(data: bytes | mmap.mmap) -> GpuArchitectures:
    """Compute capabilities in all fat binaries in `data`."""
    sass: set[str] = set()
    ptx: set[str] = set()
    languages: set[str] = set()
    for entry in entries(data):
        if entry.kind not in (_PTX, _SASS) or _is_empty(data, entry):
            continue
        if entry.kind == _SASS:
            sass.add(f"{entry.architecture}{'a' if entry.flags & _SPECIFIC else ''}")
        else:
            ptx.add(_target(data, entry))
            languages.add(entry.ptx_isa)
    return GpuArchitectures(
        sass=tuple(sorted(sass, key=sm_order)),
        ptx=tuple(sorted(ptx, key=sm_order)),
        ptx_isa=max(languages, key=number, default=None),
        confidence=Confidence.MEASURED,
    )


def entries(data: bytes | mmap.mmap) -> Iterator[Entry]:
    """Every entry of every container in `data`."""
    position, end = 0, len(data)
    while 0 <= (position := data.find(_MAGIC, position)) <= end - _CONTAINER.size:
        _, version, header, length = _CONTAINER.unpack_from(data, position)
        if version != 1 or header != _CONTAINER.size or position + header + length > end:
            position += 1  # the four bytes by chance
            continue
        yield from _entries_of(data, position + header, position + header + length)
        position += header + length


def _entries_of(data: bytes | mmap.mmap, position: int, end: int) -> Iterator[Entry]:
    while position + _ENTRY.size <= end:
        kind, _, header, size, packed, _, minor, major, sm, _, _, flags, _, unpacked = _ENTRY.unpack_from(
            data, position
        )
        if header < _ENTRY.size:
            return
        yield Entry(kind, sm, flags, f"{major}.{minor}", position + header, packed or size, unpacked or size)
        position += header + size


def _is_empty(data: bytes | mmap.mmap, entry: Entry) -> bool:
    """Whether it holds no function at all: cuFFT has such shells for architectures that it does not serve."""
    if entry.unpacked > _SMALL:
        return False
    text = _head(data, entry, _SMALL)
    return not any(word in text for word in ((b".entry", b".func") if entry.kind == _PTX else (b".text.",)))


def _target(data: bytes | mmap.mmap, entry: Entry) -> str:
    """Architecture of PTX from its own text: only that tells 90 from 90a."""
    match = _TARGET.search(_head(data, entry, _HEAD))
    if match is None:
        raise ValueError(f"PTX for {entry.architecture} without a .target line (flags {entry.flags:#x})")
    return match[1].decode()


def _head(data: bytes | mmap.mmap, entry: Entry, length: int) -> bytes:
    """The first `length` bytes or so of the contents, unpacked."""
    if entry.flags & _ZSTD:
        return _zstd_head(data[entry.start : entry.start + entry.size], length)
    stored = data[entry.start : entry.start + min(entry.size, 2 * length)]  # LZ4 grows by 0.4 % at most
    return lz4_head(stored, length) if entry.flags & _LZ4 else stored[:length]


def lz4_head(packed: bytes, length: int) -> bytes:
    """The first `length` bytes (or a few more) of an LZ4 block; less where `packed` ends before."""
    out = bytearray()
    position = 0

    def extended(count: int) -> int:
        nonlocal position
        if count == 15:
            while True:
                more = packed[position]
                position += 1
                count += more
                if more != 255:
                    break
        return count

    try:
        while len(out) < length:
            token = packed[position]
            position += 1
            literals = extended(token >> 4)
            out += packed[position : position + literals]
            position += literals
            if position + 2 > len(packed):
                break
            offset = packed[position] | packed[position + 1] << 8
            position += 2
            if not 0 < offset <= len(out):
                raise ValueError("damaged LZ4 block")
            for _ in range(extended(token & 15) + 4):
                out.append(out[-offset])
    except IndexError:  # the cut end of the head
        pass
    return bytes(out)


def _zstd_head(packed: bytes, length: int) -> bytes:
    import zstandard  # only where GPU code is packed with it

    return zstandard.ZstdDecompressor().stream_reader(packed).read(length)
