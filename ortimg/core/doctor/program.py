"""Whether a program loads with the ONNX Runtime that is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ortimg.core.doctor.facts import Elf, LibraryFile, Snapshot
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.ort import cores, searches_here, version_of
from ortimg.core.linking import must_relink
from ortimg.core.model import OrtRelease

_CORE = "libonnxruntime.so"


def check_program(
    name: str, elf: Elf, snapshot: Snapshot, loader: Loader, releases: Iterable[OrtRelease]
) -> Iterator[Found]:
    """`name` is how the user called the program; `releases` are those of the catalogue."""
    if elf.run_path is not None and searches_here(elf.run_path):
        yield warn(
            Check.ORT_RUN_PATH, f'{name} searches the current directory: its run path is "{elf.run_path}"'
        )
    wanted = [one for one in elf.needed if one == _CORE or one.startswith(f"{_CORE}.")]
    if not wanted:
        yield ok(
            Check.PROGRAM, f"{name} does not link to ONNX Runtime: it opens it with dlopen, or not at all"
        )
        return
    there = cores(snapshot, loader)
    if not there:
        yield fail(
            Check.PROGRAM,
            f"{name} needs {wanted[0]}, and no ONNX Runtime is on the loader's path",
            "name the image or root in which the program runs, as TARGET; if it is this one, write ONNX "
            "Runtime's folder into a file of /etc/ld.so.conf.d and run ldconfig",
        )
        return
    core = there[0]
    version = version_of(core)
    release = next((row for row in releases if row.version == version), None)
    why = must_relink(elf.needed, elf.wants, release) if release is not None else _by_file(elf, core)
    if why is None:
        yield ok(Check.PROGRAM, f"{name} loads with {core.path}")
    else:
        evidence, _, cure = why.partition(": ")
        yield fail(Check.PROGRAM, f"{name}: {evidence} ({core.path})", cure or None)


def _by_file(elf: Elf, core: LibraryFile) -> str | None:
    """The same question for a release that the catalogue does not know."""
    soname = (core.elf.soname if core.elf else None) or core.name
    for name in elf.needed:
        if name.startswith(f"{_CORE}.") and name != soname:
            return f"it links to {name}, the one that is there is {soname}: link it again with that"
    defined = core.elf.defines if core.elf else ()
    for name in elf.wants:
        if name.startswith("VERS_") and defined and name not in defined:
            return f"it asks for symbols {name}, there are {', '.join(defined)}: link it again with those"
    return None
