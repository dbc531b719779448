"""YAML without its traps: what was meant as text stays text, and nothing is lost in silence.

Plain YAML reads `1.20` as the number 1.2, `12:30` as 750 and `no` as false, lets the last of two equal keys
win, and expands a few lines of aliases to gigabytes. Each of these is a fault here, with the line and what to
write instead.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
import yaml

from ortimg.core.problems import Path, Problem, config_error, quote

_TAG = "tag:yaml.org,2002:"
_MAX_NODES = 50_000  # a thousand cells written out one by one are about 10,000
_MAX_DEPTH = 50
_KINDS = {"float": "number", "int": "number", "bool": "truth value", "timestamp": "date"}


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, and every fault found while reading it.

    `data` holds mappings, lists, strings and None (nothing was written) only. A scalar that is no string is a
    fault; its own text stands in `data`, so that later checks can go on.
    """

    data: Any
    lines: dict[Path, int]
    problems: tuple[Problem, ...]

    def line(self, path: Path) -> int:
        """Line of `path`, or of the nearest thing around it that has one."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


def decode(raw: bytes, filename: str) -> str:
    """Text of a file. Raises ConfigError where it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = Problem(line, (), f"byte {error.start} is not UTF-8; save the file as UTF-8")
        raise config_error(filename, [problem]) from None


def read(text: str, kinds: Collection[str] = ()) -> Document:
    """Read one YAML document. Never raises: what cannot be read at all is a problem of an empty document.

    `kinds`: scalars besides texts that are no fault: "int", "bool". They are read as what they are.
    """
    text = text.removeprefix("\ufeff")
    loader: yaml.CSafeLoader | None = None
    try:
        loader = yaml.CSafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return _broken(1, "the file is empty")
        walker = _Walker(loader, kinds)
        data = walker.walk(node, ())
    except yaml.reader.ReaderError as error:
        return _broken(text.count("\n", 0, error.position) + 1, f"a control character, {error.character!r}")
    except yaml.MarkedYAMLError as error:
        return _syntax(text, error)
    except RecursionError:
        return _broken(1, f"nested deeper than {_MAX_DEPTH} levels")
    finally:
        if loader is not None:
            loader.dispose()
    return Document(data=data, lines=walker.lines, problems=tuple(walker.problems))


def _broken(line: int, message: str) -> Document:
    return Document(data=None, lines={}, problems=(Problem(line, (), message),))


def _syntax(text: str, error: yaml.MarkedYAMLError) -> Document:
    """libyaml's message in plain words."""
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    rows = text.splitlines() or [""]
    row = rows[min(line, len(rows) - 1)]
    problem = error.problem or "not YAML"
    if "\t" in row[: len(row) - len(row.lstrip())]:
        message = "the line is indented with a tab; YAML indents with blanks only"
    elif "another document" in problem or "<document start>" in problem:
        message = "a second document; only one is allowed"
    elif "undefined alias" in problem:
        message = "an alias (*name) without an anchor (&name) before it"
    elif "maximum nesting" in problem:
        message = f"nested deeper than {_MAX_DEPTH} levels"
    else:
        context = f" {error.context}" if error.context else ""
        start = f", which began in line {error.context_mark.line + 1}" if error.context_mark else ""
        message = f"not YAML: {problem}{context}{start}"
    return _broken(line + 1, message)


class _Walker:
    """Turns nodes into data, and collects lines and faults."""

    def __init__(self, loader: yaml.CSafeLoader, kinds: Collection[str] = ()) -> None:
        self.loader = loader
        self.kinds = kinds
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._around: set[int] = set()  # nodes that are being walked: meeting one again is a loop
        self._nodes = 0

    def walk(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._nodes += 1
        if self._nodes == _MAX_NODES:
            self._problem(line, path, f"more than {_MAX_NODES} values, aliases counted at each use")
        if self._nodes >= _MAX_NODES:
            return None
        if id(node) in self._around:
            self._problem(line, path, "an alias that stands for something around itself")
            return None
        if len(path) > _MAX_DEPTH:
            self._problem(line, path[:1], f"nested deeper than {_MAX_DEPTH} levels")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            self._problem(line, path, f"the tag {quote(node.tag)} is not used here; leave it out")
        self._around.add(id(node))
        data = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self._around.discard(id(node))
        return data

    def _list(self, node: yaml.Node, path: Path) -> list[Any]:
        return [self.walk(child, (*path, position)) for position, child in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(line, path, "a key that is a list or a mapping; keys are plain words")
                continue
            if key_node.tag == f"{_TAG}merge":
                self._problem(line, path, "a merge key (<<) hides what is set; write the keys out")
                continue
            key = str(self._scalar(key_node, path) or "")
            inner = (*path, key)
            if key in data:
                first = self.lines[inner]
                self._problem(line, inner, f"written twice, in line {first} and in line {line}; keep one")
                continue
            self.lines[inner] = line
            data[key] = self.walk(value_node, inner)
        return data

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text: str = node.value
        tag = node.tag.removeprefix(_TAG)
        if tag == "str":
            return text
        if tag == "null":
            return None
        line = node.start_mark.line + 1
        if tag not in _KINDS:
            if text == "=" and tag == "value":  # YAML 1.1's default-value key
                return text
            self._problem(line, path, f"the tag {quote(node.tag)} is not used here; write {quote(text)}")
            return text
        if tag in self.kinds and (tag != "int" or text.isdecimal()):  # 0x1F, 1_000 and 12:30 are "int" too
            return self.loader.construct_object(node)
        try:
            value = str(self.loader.construct_object(node))
        except (ValueError, yaml.YAMLError):
            value = ""
        kind = f"a {_KINDS[tag]}" if value in ("", text) else f"the {_KINDS[tag]} {value}"
        self._problem(line, path, f"YAML reads {text} as {kind}; write {quote(text)}")
        return text

    def _problem(self, line: int, path: Path, message: str) -> None:
        self.problems.append(Problem(line, path, message))
