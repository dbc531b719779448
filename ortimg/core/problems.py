"""Faults in a file that a person wrote: where each is, and what would be right."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from ortimg.errors import ConfigError

Path = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z0-9_.+-]+")


def show_path(path: Path) -> str:
    """`("matrix", "ort", 0)` as people write it: `matrix.ort[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _PLAIN.fullmatch(part) else quote(part)
            text += f".{name}" if text else name
    return text


def quote(value: str) -> str:
    """`value` in double quotes, on one line whatever it holds; long ones are cut."""
    return json.dumps(value if len(value) <= 80 else value[:77] + "...", ensure_ascii=False)


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` for the known word nearest to `word`, or nothing."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {quote(found[0])}?" if found else ""


class Problem(NamedTuple):
    """One fault. `line` counts from 1; an empty `path` means the file as a whole."""

    line: int
    path: Path
    message: str

    def show(self, filename: str) -> str:
        """`images.yaml:4: matrix.ort[0]: what is wrong`, the form of every message about a file."""
        where = f"{show_path(self.path)}: " if self.path else ""
        return f"{filename}:{self.line}: {where}{self.message}"


def config_error(filename: str, problems: Iterable[Problem], hint: str | None = None) -> ConfigError:
    """One error with every fault, in the order of the file."""
    lines = [problem.show(filename) for problem in sorted(problems, key=lambda problem: problem.line)]
    return ConfigError(*dict.fromkeys(lines), hint=hint)
