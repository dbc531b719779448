"""Programs that link to ONNX Runtime: SONAME, symbol versions and exported symbols.

A program that was linked to the library is tied to one release: by its SONAME up to 1.18, by the version of
its symbols (`VERS_1.20.1`) ever since. dlopen with dlsym is free of both (core/linking.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ortimg.core.compare_model import Finding, Program, Side, fail, ok, skipped, told, warning
from ortimg.core.linking import must_relink

_DLOPEN = "a program that opens the library with dlopen needs nothing"


class _Release(msgspec.Struct, frozen=True):
    """What `must_relink` asks of a release."""

    version: str
    soname: str


def link_findings(old: Side, new: Side, named: Sequence[Program]) -> Iterator[Finding]:
    """`named`: programs of the user; those found inside the sides count as well."""
    if not new.has_library and not old.has_library:
        yield ok("soname", "both hold ONNX Runtime as a Python package alone: no program links to it")
        return
    if not new.has_library:
        yield fail(
            "soname",
            "OLD holds libonnxruntime.so, NEW the Python package alone",
            "link to OLD, or use Python",
        )
        return
    linked = [program for program in (*named, *(new.programs or old.programs)) if program.linked]
    changed = [*_changed(old, new)]
    yield from _judged(named, linked, new)
    yield from _libraries(changed, old, new, settled=bool(linked or named))
    yield from _exports(old, new, linked, settled=bool(linked or named))


def _changed(old: Side, new: Side) -> Iterator[str]:
    if None not in (old.soname, new.soname) and old.soname != new.soname:
        yield f"SONAME {old.soname} → {new.soname}"
    if None not in (old.symbols, new.symbols) and old.symbols != new.symbols:
        yield f"symbol version {old.symbols} → {new.symbols}"


def _libraries(changed: list[str], old: Side, new: Side, settled: bool) -> Iterator[Finding]:
    """`settled`: it is known which programs there are, so that they are judged one by one."""
    if not old.has_library:
        yield ok("soname", f"NEW holds {new.soname}, OLD the Python package alone")
        return
    unknown = [label for label, side in (("OLD", old), ("NEW", new)) if side.soname is None]
    if unknown:
        yield skipped("soname", f"the SONAME of {' and '.join(unknown)} is not known")
        return
    if not changed:
        yield ok("soname", f"{new.soname} with symbols {new.symbols} on both sides")
        return
    text = "; ".join(changed)
    if settled:
        yield warning("soname", f"{text}: the programs are judged one by one")
        return
    yield fail(
        "soname",
        f"{text}: a program linked to OLD does not load with NEW",
        f"link your programs again with NEW; {_DLOPEN} (--program FILE tells which yours is)",
    )


def _judged(named: Sequence[Program], linked: Sequence[Program], new: Side) -> Iterator[Finding]:
    for program in named:
        if not program.linked:
            yield ok("program", f"{program.path} does not link to ONNX Runtime: nothing ties it to a version")
    if new.soname is None or new.ort is None:
        return
    release = _Release(version=new.ort, soname=new.soname)
    for program in linked:
        reason = must_relink(program.needed, program.wanted, release)
        if reason is None:
            yield ok("program", f"{program.path} loads with ONNX Runtime {new.ort} as it is")
            continue
        what, _, cure = reason.rpartition(": ")
        yield fail("program", f"{program.path}: {what}", cure)


def _exports(old: Side, new: Side, linked: Sequence[Program], settled: bool) -> Iterator[Finding]:
    check = "exports"
    if not old.has_library:
        return
    if old.exports is None or new.exports is None:
        which = [label for label, side in (("OLD", old), ("NEW", new)) if side.exports is None]
        yield skipped(
            check, f"exported symbols are not known of {' and '.join(which)}: compare images or roots"
        )
        return
    gained = [name for name in new.exports if name not in old.exports]
    lost = [name for name in old.exports if name not in new.exports]
    if not gained and not lost:
        yield ok(check, f"the same {len(new.exports)} on both sides: {told(new.exports)}")
        return
    text = f"gained {told(gained)}; lost {told(lost)}"
    users = [program.path for program in linked if {*program.imports} & {*lost}]
    if users:
        yield fail(
            check, f"{text}; {told(users)} uses what is lost", "change the program: these functions are gone"
        )
    elif lost and not settled:
        yield fail(check, text, f"programs that call {', '.join(lost)} must be changed; others need nothing")
    elif lost:
        yield warning(check, f"{text}; no program here uses what is lost")
    else:
        yield ok(check, text)
