"""Reads a log of any size and encoding, piece by piece: a file, a pipe, or stdin."""

from __future__ import annotations

import codecs
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ortimg.errors import ConfigError

_PIECE = 1 << 22  # bytes
_LONGEST = 1 << 16  # letters of one line that are looked at
_ESCAPES = re.compile(r"(?:\x1b|\\u001[bB])\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",  # PowerShell writes these
    codecs.BOM_UTF16_BE: "utf-16",
}


def pieces_of(name: str) -> Iterator[str]:
    """Pieces of whole lines; `name` may be `-`. Raises ConfigError where there is nothing to read."""
    if name == "-":
        if sys.stdin is None:
            raise ConfigError("stdin is closed", hint="Give --log a file.")
        if sys.stdin.isatty():
            print("paste the log here, then press Ctrl-D", file=sys.stderr)
        yield from _pieces(sys.stdin.buffer, "stdin")
        return
    path = Path(name)
    try:
        if path.is_dir():
            raise ConfigError(f"{name} is a folder", hint="Name the log file in it.")
        if stat.S_ISFIFO(path.stat().st_mode):
            print(f"waiting for what is written into {name}", file=sys.stderr)
        with path.open("rb") as file:
            yield from _pieces(file, name)
    except OSError as error:
        raise ConfigError(
            f"{name} cannot be read: {error.strerror}", hint="Give --log a text file, or - for stdin."
        ) from None


def _pieces(stream: BinaryIO, name: str) -> Iterator[str]:
    first = _read(stream)
    if not first.strip():
        raise ConfigError(f"{name} is empty", hint="Give --log what ONNX Runtime wrote on stdout and stderr.")
    encoding = next((known for mark, known in _MARKS.items() if first.startswith(mark)), "utf-8")
    if encoding != "utf-16" and _is_binary(first[: 1 << 16]):
        raise ConfigError(f"{name} is not text", hint="Unpack it first if it is packed (gzip, zip).")
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    left = ""
    piece = first
    while piece:
        text = left + decoder.decode(piece)
        lines, newline, left = text.rpartition("\n")
        if newline:
            yield _clean(f"{lines}\n")
        elif len(left) > _PIECE:  # one endless line
            yield _clean(left)
            left = ""
        piece = _read(stream)
    left += decoder.decode(b"", final=True)
    if left:
        yield _clean(left)


def clean_pieces(raw: bytes) -> Iterator[str]:
    """Pieces of whole lines of what a program wrote."""
    lines = raw.decode("utf-8", "replace").splitlines(keepends=True)
    for start in range(0, len(lines), 10_000):
        yield _clean("".join(lines[start : start + 10_000]))


def _read(stream: BinaryIO) -> bytes:
    """A piece; less of it from a pipe, as it comes."""
    raw = stream.read1(_PIECE) if hasattr(stream, "read1") else stream.read(_PIECE)
    return bytes(raw or b"")


def _clean(text: str) -> str:
    text = _ESCAPES.sub("", text) if "\x1b" in text or "\r" in text or "\\u001" in text else text
    text = text.replace('\\"', '"')  # logs of one JSON object a line, such as Docker's own
    text = text.replace("\r", "\n")  # progress bars
    if len(text) > _LONGEST and any(len(line) > _LONGEST for line in text.split("\n")):
        text = "\n".join(line[:_LONGEST] for line in text.split("\n"))
    return text


def _is_binary(sample: bytes) -> bool:
    """Some NUL bytes stand in logs that were cut while they were written; many mean that it is no text."""
    control = sum(byte < 32 and byte not in (9, 10, 12, 13, 27, 0) for byte in sample)
    return control > len(sample) // 20 or sample.count(0) > len(sample) // 2 or sample.startswith(b"\x7fELF")
