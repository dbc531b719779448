"""The C API: what its header offers, and whether a program's source still compiles.

`struct OrtApi` is a table of functions that only grows at its end, so a program built with an older header
finds its functions at the same places. A program asks for a version of the table (ORT_API_VERSION, the minor
version of its header) and gets none from an older library.
https://onnxruntime.ai/docs/reference/compatibility.html#api-compatibility
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ortimg.core.compare_model import Finding, Function, Headers, Side, fail, ok, skipped, warning

C_API = "onnxruntime_c_api.h"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VERSION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+ORT_API_VERSION[ \t]+(\d+)", re.MULTILINE)
_STRUCT = re.compile(r"\bstruct\s+OrtApi\s*\{")
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_RELEASE = re.compile(r"^ORT_CLASS_RELEASE2?\s*\(\s*(\w+)")
_STATUS = re.compile(r"^ORT_API2_STATUS\s*\(\s*(\w+)")
_POINTER = re.compile(r"\(\s*(?:ORT_API_CALL\s*)?\*\s*(\w+)\s*\)")
_MANY = 8  # names that one line holds


class SourceResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiler says of a user's source with the headers of each side; None: not tried, and why."""

    path: str
    old: tuple[str, ...] | None
    new: tuple[str, ...] | None
    why_not: str | None = None
    cure: str | None = None


def read_headers(text: str) -> Headers:
    """The version and the functions in the text of onnxruntime_c_api.h; what it lacks is None."""
    plain = _COMMENT.sub(" ", text)
    version = _VERSION.search(plain)
    start = _STRUCT.search(plain)
    functions = None
    if start is not None:
        functions = tuple(_functions(_DIRECTIVE.sub("", plain[start.end() : _end(plain, start.end())])))
    return Headers(version=int(version[1]) if version else None, functions=functions)


def _end(text: str, position: int) -> int:
    depth = 1
    for index in range(position, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return len(text)


def _functions(body: str) -> Iterator[Function]:
    # ORT_CLASS_RELEASE(X) stands without a semicolon in older headers
    for part in re.sub(r"(ORT_CLASS_RELEASE2?\s*\([^)]*\))\s*;?", r"\1;", body).split(";"):
        declaration = " ".join(part.split())
        if match := _RELEASE.match(declaration):
            yield Function(f"Release{match[1]}", declaration)
        elif match := _STATUS.match(declaration) or _POINTER.search(declaration):
            yield Function(match[1], declaration)


def api_findings(old: Side, new: Side) -> Iterator[Finding]:
    """Version and functions of the C API."""
    a, b = _version(old), _version(new)
    if a is None or b is None:
        yield skipped("api.version", f"the API version of {'OLD' if a is None else 'NEW'} is not known")
    elif a > b:
        yield fail(
            "api.version",
            f"ORT_API_VERSION {a} → {b}: a program built with OLD's headers asks for {a}, "
            "and NEW gives it nothing",
            f"build it with NEW's headers, or let it ask for GetApi({b})",
        )
    else:
        yield ok(
            "api.version", f"ORT_API_VERSION {b} on both sides" if a == b else f"ORT_API_VERSION {a} → {b}"
        )
    lacking = {label: side for label, side in (("OLD", old), ("NEW", new)) if not _functions_of(side)}
    if lacking:
        where = dict.fromkeys(side.headers_from for side in lacking.values())
        cure = f"they are in {' and '.join(where)}: compare images of the flavour devel, or unpacked archives"
        yield skipped("api.functions", f"there are no headers of {' and '.join(lacking)}", cure)
        return
    yield from _compared(_functions_of(old), _functions_of(new), a is not None and b is not None and a > b)


def _version(side: Side) -> int | None:
    if side.headers is not None and side.headers.version is not None:
        return side.headers.version
    parts = (side.ort or "").split(".")
    # ORT_API_VERSION is the minor version in every release
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else None


def _functions_of(side: Side) -> tuple[Function, ...]:
    return (side.headers.functions if side.headers else None) or ()


def _compared(old: tuple[Function, ...], new: tuple[Function, ...], older: bool) -> Iterator[Finding]:
    check = "api.functions"
    was, now = {one.name: one.signature for one in old}, {one.name: one.signature for one in new}
    gained = [name for name in now if name not in was]
    lost = [name for name in was if name not in now]
    changed = [name for name in was if name in now and was[name] != now[name]]
    text = f"struct OrtApi: {len(old)} → {len(new)} functions"
    if not gained and not lost and not changed and [*was] == [*now]:
        yield ok(check, f"struct OrtApi is the same on both sides, {len(new)} functions")
        return
    if gained:
        text += f"; gained {_some(gained)}"
    if lost:
        yield fail(
            check,
            f"{text}; lost {_some(lost)}",
            "a program that calls these must be changed (--source tells)",
        )
    elif changed:
        yield warning(
            check,
            f"{text}; declared otherwise: {_some(changed)}",
            "--source FILE tells whether yours compiles",
        )
    else:
        yield ok(check, f"{text}; lost none")
    moved = [a for a, b in zip(was, now, strict=False) if a != b]
    if moved and not older and not lost:
        cure = "build every program again with NEW's headers: this is not the table that was promised"
        yield fail("api.order", f"functions stand at other places, from {moved[0]} on", cure)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MANY} more" if len(names) > _MANY else ""
    return ", ".join(names[:_MANY]) + more


def source_findings(results: Sequence[SourceResult]) -> Iterator[Finding]:
    """What became of the user's source."""
    for result in results:
        check = "source"
        if result.new is None:
            yield skipped(check, f"{result.path}: {result.why_not}", result.cure)
            continue
        fresh = [line for line in result.new if result.old is None or line not in result.old]
        if not result.new:
            yield ok(check, f"{result.path} compiles with NEW's headers")
        elif not fresh:
            yield warning(
                check,
                f"{result.path} does not compile with OLD's headers either: {result.new[0]}",
                "give --source what it needs: the check sees ONNX Runtime's headers and the system's",
            )
        else:
            before = "" if result.old is not None else " (OLD has no headers: the error may be older)"
            yield fail(check, f"{result.path}: {_errors(fresh)}{before}", "change the source for NEW's C API")


def _errors(lines: list[str]) -> str:
    return lines[0] if len(lines) == 1 else f"{lines[0]} (and {len(lines) - 1} more errors)"
