"""What became of an input, as values."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from ortimg.core.lock import BaseLock, Lock, OrtLock, Repacked
from ortimg.core.model import Origin
from ortimg.inputs.cache import megabytes


class Kind(StrEnum):
    """What an input is."""

    ORT = "ort"
    PYTHON = "python"  # the wheel and what it imports, instead of the archive
    HEADERS = "headers"
    CUDA = "cuda"
    BASE = "base"
    TOOLS = "tools"


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an input, in the cache. Never write to it: link or copy."""

    name: str  # as it is called upstream
    path: Path
    sha256: str
    size: int  # bytes


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """An input that is there."""

    kind: Kind
    key: str
    origin: Origin
    files: tuple[File, ...] = ()  # none for a base or tools from upstream: the engine pulls those
    identity: str = (
        ""  # names the contents: equal identity, equal contents; the image reference where no files
    )
    image: str | None = None  # image reference, origin `upstream` of a base or the tools
    source_sha256: str | None = None  # of the package that a fallback archive was made of
    top_folder: str | None = None  # of an ORT archive
    reasons: tuple[str, ...] = ()  # why earlier origins were passed over
    cached: bool = False  # nothing had to be fetched

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """An input that could not be had."""

    kind: Kind
    key: str
    reasons: tuple[str, ...]  # one line an origin
    hint: str | None = None
    wrong: bool = False  # a file came and is not the right one: never to be passed over as "not reachable"

    def __str__(self) -> str:
        return f"{self.kind.value} {self.key}: " + "; ".join(self.reasons)


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """News of one input, for a live table."""

    kind: Kind
    key: str
    text: str
    done: int = 0  # bytes
    total: int | None = None  # bytes, if known


Result = Fetched | Missing
OnUpdate = Callable[[Update], None]


def news(result: Fetched) -> Lock:
    """What a fetched input adds to the lock."""
    if result.kind is Kind.ORT:
        if result.origin is Origin.UPSTREAM:
            row = OrtLock(upstream=result.identity)
        elif result.origin is Origin.MAVEN:
            row = OrtLock(maven=Repacked(source=result.source_sha256, tar=result.identity))
        else:
            row = OrtLock(wheel=Repacked(source=result.source_sha256, tar=result.identity))
        return Lock(ort={result.key: row})
    if result.kind is Kind.PYTHON:
        return Lock(python={result.key: {file.name: file.sha256 for file in result.files}})
    if result.kind is Kind.HEADERS and result.origin is Origin.DEBIAN:
        found = Repacked(source=result.source_sha256, tar=result.identity)
        return Lock(headers={result.key: found})
    if result.kind is Kind.CUDA:
        return Lock(cuda={result.key: {file.name: file.sha256 for file in result.files}})
    if result.kind is Kind.BASE and result.image is not None:
        return Lock(bases={result.key: BaseLock(image=result.image)})
    return Lock()


def summary(result: Result) -> Update:
    """The last word on an input, for a live table."""
    if isinstance(result, Missing):
        return Update(kind=result.kind, key=result.key, text="; ".join(result.reasons))
    where = "cache" if result.cached else "fetched"
    details = f" ({where}, {megabytes(result.size)} MB)" if result.files else ""
    text = f"{result.origin.value}{details}"
    return Update(kind=result.kind, key=result.key, text=text, done=result.size, total=result.size)
