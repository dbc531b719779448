"""Reads the two files of ldconfig: /etc/ld.so.conf and /etc/ld.so.cache."""

from __future__ import annotations

import posixpath
import struct

from ortimg.doctor.files import Files

# Layout: sysdeps/generic/dl-cache.h of glibc. An old-format cache may stand before the new one.
_OLD, _NEW = b"ld.so-1.7.0", b"glibc-ld.so.cache1.1"
_OLD_HEADER, _OLD_ENTRY, _ALIGNMENT = 16, 12, 8
_HEADER = struct.Struct("<20sII5I")
_ENTRY = struct.Struct("<iIIIQ")
_X86_64 = 0x0303  # FLAG_X8664_LIB64 | FLAG_ELF_LIBC6
_DEPTH = 8  # of includes: a file may include itself


def read_cache(raw: bytes) -> tuple[tuple[str, str], ...] | None:
    """Names and paths of the 64-bit libraries, in the cache's order; None: it is damaged."""
    start = 0
    if raw.startswith(_OLD):
        (count,) = struct.unpack_from("<I", raw.ljust(_OLD_HEADER, b"\0"), 12)
        start = _OLD_HEADER + count * _OLD_ENTRY
        start = -(-start // _ALIGNMENT) * _ALIGNMENT
    if len(raw) < start + _HEADER.size or raw[start : start + len(_NEW)] != _NEW:
        return None
    count = _HEADER.unpack_from(raw, start)[1]
    first = start + _HEADER.size
    if len(raw) < first + count * _ENTRY.size:
        return None
    found = []
    for place in range(count):
        flags, name, path, _, _ = _ENTRY.unpack_from(raw, first + place * _ENTRY.size)
        if flags == _X86_64:
            found.append((_string(raw, start + name), _string(raw, start + path)))
    return tuple(found)


def _string(raw: bytes, start: int) -> str:
    end = raw.find(b"\0", start)
    return raw[start : end if end >= 0 else len(raw)].decode("utf-8", "replace")


def conf_folders(files: Files) -> tuple[str, ...]:
    """The folders that ld.so.conf names, in order."""
    return tuple(dict.fromkeys(_read_conf(files, "/etc/ld.so.conf", 0)))


def _read_conf(files: Files, path: str, depth: int) -> list[str]:
    folders: list[str] = []
    for raw in (files.text(path) or "").splitlines() if depth < _DEPTH else ():
        line = raw.partition("#")[0].strip()
        words = line.split()
        if words and words[0] == "include":
            for pattern in words[1:]:
                whole = (
                    pattern if pattern.startswith("/") else posixpath.join(posixpath.dirname(path), pattern)
                )
                for found in files.glob(whole):
                    folders += _read_conf(files, found, depth + 1)
        elif line.startswith("/"):
            folders.append(line.split("=")[0].split()[0].rstrip("/") or "/")
    return folders
