"""Cut the run path of shared libraries to `$ORIGIN`, in place.

    cut_runpath.py --record FILE LIBRARY...

The release archives of ONNX Runtime 1.15 to 1.19 carry the build machine's run path, such as
`$ORIGIN:/usr/local/cuda-11.8/lib64:`. Its last element is empty, and the dynamic loader reads an empty
element as the current directory (ld.so(8)), ahead of ld.so.cache: whoever can write to the working directory
of a process could put code into it. The string is cut where it stands; nothing moves, so a file of 500 MB
needs no rewrite.

The record tells what each file was and what it became: run path and sha256, before and after.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import StringTableSection, SymbolTableSection

ORIGIN = "$ORIGIN"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("library", type=Path, nargs="+")
    args = parser.parse_args()
    record = {}
    for library in args.library:
        if library.is_symlink():
            continue
        change = cut(library)
        if change:
            record[library.name] = change
            print(f"{library.name}: run path {change['before']} -> {change['after']}")
    args.record.parent.mkdir(parents=True, exist_ok=True)
    args.record.write_text(json.dumps({"schema": 1, "cut": record}, indent=2, sort_keys=True) + "\n")
    return 0


def cut(library: Path) -> dict[str, str] | None:
    """Cut one file; None where there was nothing to cut."""
    with library.open("rb") as stream:
        wrong = run_paths(ELFFile(stream))
    if not wrong:
        return None
    sha256_before = sha256(library)
    with library.open("r+b") as stream:
        for position, path in wrong.items():
            if len(path) < len(ORIGIN):
                raise SystemExit(f"{library}: run path {path!r} is too short to be cut to {ORIGIN}")
            stream.seek(position)
            stream.write(ORIGIN.encode().ljust(len(path), b"\0"))
    return {
        "before": " and ".join(wrong.values()),
        "after": ORIGIN,
        "sha256_before": sha256_before,
        "sha256_after": sha256(library),
    }


def run_paths(elf: ELFFile) -> dict[int, str]:
    """Position in the file → run path, of those that are not `$ORIGIN` already."""
    dynamic = elf.get_section_by_name(".dynamic")
    strings = elf.get_section_by_name(".dynstr")
    symbols = elf.get_section_by_name(".dynsym")
    if not (
        isinstance(dynamic, DynamicSection)
        and isinstance(strings, StringTableSection)
        and isinstance(symbols, SymbolTableSection)
    ):
        raise SystemExit(f"{elf.stream.name}: not a shared library with names")
    tags = list(dynamic.iter_tags())
    found = {
        tag.entry.d_val: strings.get_string(tag.entry.d_val)
        for tag in tags
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")
    }
    wrong = {offset: path for offset, path in found.items() if path != ORIGIN}
    # Linkers let a string share the tail of a longer one: make sure that nothing else points into a path.
    others = {symbol.entry.st_name for symbol in symbols.iter_symbols()} if wrong else set()
    others |= {tag.entry.d_val for tag in tags if tag.entry.d_tag in ("DT_NEEDED", "DT_SONAME")}
    for offset, path in wrong.items():
        if any(offset <= other <= offset + len(path) for other in others if other):
            raise SystemExit(f"{elf.stream.name}: the run path {path!r} shares its bytes with another name")
    return {strings["sh_offset"] + offset: path for offset, path in wrong.items()}


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
