"""How layers are packed on their way out: as the engine holds them, or anew.

Packing anew gives other digests, so it is done once a layer, in one fixed way: the same bytes in give the
same bytes out, with the same zstd or zlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import StrEnum
from typing import IO

_CHUNK = 1 << 20
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZSTD_LEVEL, _ZSTD_WINDOW = 9, 27  # a window of 128 MiB, the most that decoders take unasked
_GZIP_LEVEL = 6
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name, no time, no operating system


class Compression(StrEnum):
    """The wish."""

    BUILT = "built"  # as the engine holds them: zstd, level 3
    ZSTD = "zstd"  # packed anew, smaller
    GZIP = "gzip"  # for registries and engines that do not know zstd


class Packing(StrEnum):
    """How a layer is packed."""

    RAW = "tar"
    GZIP = "tar+gzip"
    ZSTD = "tar+zstd"

    @property
    def media_type(self) -> str:
        """https://github.com/opencontainers/image-spec/blob/main/layer.md"""
        return f"application/vnd.oci.image.layer.v1.{self.value}"


def packing_of(head: bytes) -> Packing:
    """By its first bytes."""
    if head.startswith(_ZSTD_MAGIC):
        return Packing.ZSTD
    return Packing.GZIP if head.startswith(_GZIP_MAGIC) else Packing.RAW


def repacked_as(wish: Compression, now: Packing) -> Packing | None:
    """How a layer is to be packed anew; None: it stays as it is."""
    if wish is Compression.GZIP:
        return None if now is Packing.GZIP else Packing.GZIP
    if wish is Compression.ZSTD or now is Packing.RAW:  # the classic store holds layers unpacked
        return Packing.ZSTD
    return None


def method(target: Packing) -> str:
    """Name of the way in which layers are packed anew, with all that the bytes depend on."""
    if target is Packing.GZIP:
        return f"gzip-{_GZIP_LEVEL}-zlib{zlib.ZLIB_RUNTIME_VERSION}"
    import zstandard

    return f"zstd-{_ZSTD_LEVEL}-{_ZSTD_WINDOW}-zstd{'.'.join(map(str, zstandard.ZSTD_VERSION))}"


def repack(data: IO[bytes], now: Packing, target: Packing) -> Iterator[bytes]:
    """The bytes of a layer, packed as `target`."""
    raw = _unpacked(data, now)
    return _gzipped(raw) if target is Packing.GZIP else _zstd(raw)


def _chunks(data: IO[bytes]) -> Iterator[bytes]:
    while chunk := data.read(_CHUNK):
        yield chunk


def _unpacked(data: IO[bytes], now: Packing) -> Iterator[bytes]:
    if now is Packing.RAW:
        yield from _chunks(data)
    elif now is Packing.GZIP:
        unzip = zlib.decompressobj(wbits=31)
        for chunk in _chunks(data):
            yield unzip.decompress(chunk)
        yield unzip.flush()
    else:
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(
            data, read_across_frames=True
        )
        while chunk := reader.read(_CHUNK):
            yield chunk


def _gzipped(raw: Iterator[bytes]) -> Iterator[bytes]:
    yield _GZIP_HEADER
    packer = zlib.compressobj(_GZIP_LEVEL, wbits=-15)
    check, size = 0, 0
    for chunk in raw:
        check, size = zlib.crc32(chunk, check), size + len(chunk)
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()
    yield check.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def _zstd(raw: Iterator[bytes]) -> Iterator[bytes]:
    import os

    import zstandard

    # With one worker and more the output is the same for any number of them; without, it is another.
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _ZSTD_LEVEL, window_log=_ZSTD_WINDOW, enable_ldm=True, threads=os.cpu_count() or 1
    )
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    for chunk in raw:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()
