"""Options of the CUDA provider as a user's program gives them, against the catalogue of options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import yaml

from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.names import Check
from ortimg.core.problems import near, quote
from ortimg.core.versions import at_least, is_version
from ortimg.errors import ConfigError

_MIB = 1 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNLIMITED = (1 << 64) - 1
_SIGNED_MAX = (1 << 31) - 1
_FALSE = {"0", "false", "False"}
_TRUE = {"1", "true", "True"}


class Kind(StrEnum):
    """What an option's value is."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    BYTES = "bytes"
    CHOICE = "choice"
    POINTER = "pointer"


class CudaOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of cuda-options.yaml."""

    name: str
    kind: Kind
    default: str
    meaning: str
    since: str | None = None
    values: tuple[str, ...] = ()


def parse_options(raw: bytes) -> dict[str, CudaOption]:
    """Rows of cuda-options.yaml by name. Raises ConfigError."""
    try:
        data: Any = yaml.load(raw, yaml.CSafeLoader)
        rows = msgspec.convert(data["cuda_options"], tuple[CudaOption, ...])
    except (yaml.YAMLError, msgspec.ValidationError, TypeError, KeyError) as error:
        raise ConfigError(f"catalogue cuda-options.yaml: {' '.join(str(error).split())}") from None
    return {row.name: row for row in rows}


def split_option(word: str) -> tuple[str, str]:
    """`KEY=VALUE` as two. Raises ConfigError."""
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise ConfigError(
            f"--option {quote(word)}: write KEY=VALUE", hint="As --option gpu_mem_limit=4294967296."
        )
    return key.strip(), value.strip().strip("\"'")


def check_options(
    pairs: Sequence[tuple[str, str]], known: dict[str, CudaOption], ort: str | None, memory: int
) -> Iterator[Found]:
    """`ort`: the version of ONNX Runtime, None where it is not known; `memory` of the card in bytes, or 0."""
    keys = [key for key, _ in pairs]
    for key in dict.fromkeys(keys):
        if keys.count(key) > 1:
            yield fail(Check.OPTION_VALUE, f"{key} is given twice", "give each option once")
    for key, value in pairs:
        row = known.get(key)
        if row is None:
            yield fail(
                Check.OPTION_UNKNOWN,
                f"{key}: the CUDA provider has no such option, and setting it fails{near(key, known)}",
                f"it has {', '.join(known)}",
            )
            continue
        if row.since and ort and is_version(ort) and not at_least(ort, row.since):
            yield fail(
                Check.OPTION_UNKNOWN,
                f"{key}: ONNX Runtime knows it since {row.since}, this is {ort}",
                "leave it out",
            )
            continue  # whether its value is right does not matter then
        yield _value(row, value, memory)


def _value(row: CudaOption, value: str, memory: int) -> Found:
    match row.kind:
        case Kind.BYTES:
            return _bytes(row, value, memory)
        case Kind.BOOLEAN:
            return _boolean(row, value)
        case Kind.CHOICE:
            return _choice(row, value)
        case Kind.INTEGER:
            if is_whole(value):
                return ok(Check.OPTION_VALUE, f"{row.name}={value}")
            return fail(Check.OPTION_VALUE, f"{row.name}={quote(value)}: it is a whole number from 0 on")
        case Kind.POINTER:
            return fail(
                Check.OPTION_VALUE,
                f"{row.name} is an address inside a running program: only that program can set it",
                "leave it out of configuration files",
            )


def is_whole(value: str) -> bool:
    """Whether it is a number that an option of a whole number takes."""
    return value.isascii() and value.isdecimal() and len(value) < 20 and int(value) <= _SIGNED_MAX


def read_bytes(value: str) -> int | None:
    """`4294967296`, `4G`, `512MiB` in bytes; None: it is none of these."""
    text = value.strip()
    digits = text.rstrip("KMGTkmgtiB")
    unit = text[len(digits) :].upper().removesuffix("B").removesuffix("I")
    if not (digits.isascii() and digits.isdecimal()) or (text != digits and unit not in _UNITS):
        return None
    return int(digits) * _UNITS.get(unit, 1)


def size_words(number: int) -> str:
    """`4 GiB`, `4.2 KiB`."""
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if size < 1024 or unit == "EiB":
            return f"{size:.0f} {unit}" if size == int(size) else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def _bytes(row: CudaOption, value: str, memory: int) -> Found:
    number = read_bytes(value)
    if number is None or number == 0 or number > _UNLIMITED:
        return fail(Check.OPTION_MEMORY, f"{row.name}={quote(value)}: it is a number of bytes from 1 on")
    if not (value.isascii() and value.isdecimal()):
        return fail(
            Check.OPTION_MEMORY,
            f"{row.name}={value}: ONNX Runtime takes plain bytes only (ortimg's own commands know units)",
            f"write {row.name}={number}, which is {size_words(number)}",
        )
    if number < _MIB:
        return fail(
            Check.OPTION_MEMORY,
            f"{row.name}={value} is {size_words(number)}: no model fits; it counts bytes, not MiB",
            f"write {row.name}={number * _MIB} for {size_words(number * _MIB)}",
        )
    if number == _UNLIMITED:
        return ok(Check.OPTION_MEMORY, f"{row.name}={value} is no limit at all")
    if memory and number > memory:
        return warn(
            Check.OPTION_MEMORY,
            f"{row.name}={value} is {size_words(number)}, the card has {size_words(memory)}: it limits "
            "nothing",
            f"give less than the card has; {row.meaning}",
        )
    return ok(Check.OPTION_MEMORY, f"{row.name}={value} is {size_words(number)}; {row.meaning}")


def _boolean(row: CudaOption, value: str) -> Found:
    if value not in _FALSE | _TRUE:
        return fail(Check.OPTION_VALUE, f"{row.name}={quote(value)}: it is 0 or 1")
    if row.name == "do_copy_in_default_stream":
        if value in _FALSE:
            return warn(
                Check.OPTION_COPY,
                f"DO NOT SHIP {row.name}={value}: copies in streams of their own may race with the "
                "computation and give "
                "wrong results; 1, the default, copies in the compute stream and is the safe one",
            )
        return ok(
            Check.OPTION_COPY, f"{row.name}={value} copies in the compute stream: the default, and safe"
        )
    return ok(Check.OPTION_VALUE, f"{row.name}={value}: {row.meaning}")


def _choice(row: CudaOption, value: str) -> Found:
    numbers = {str(place): name for place, name in enumerate(row.values)}
    name = numbers.get(value, value)
    if name not in row.values:
        return fail(Check.OPTION_VALUE, f"{row.name}={quote(value)}: it is one of {', '.join(row.values)}")
    if row.name == "arena_extend_strategy":
        if name == "kSameAsRequested":
            return ok(
                Check.OPTION_ARENA, f"{row.name}={name}: the arena grows by what is asked for, and keeps it"
            )
        return warn(
            Check.OPTION_ARENA,
            f"{row.name}={name}, the default: each growth of the arena doubles the one before, and nothing "
            "is given back",
        )
    return ok(Check.OPTION_VALUE, f"{row.name}={name}")
