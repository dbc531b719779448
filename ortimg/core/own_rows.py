"""A user's own rows of the catalogue: tomorrow's release, another base, another set of CUDA libraries. Pure.

The files and rows have the shape of ortimg's own (`ortimg/data/*.yaml`). A row with the key of one that is
there already takes its place only if it says `replaces: true`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from ortimg.core import strict_yaml
from ortimg.core.gpu import is_architecture
from ortimg.core.mirrors import RELEASES, url_problem
from ortimg.core.model import (
    Base,
    Catalogue,
    Confidence,
    CudaSet,
    Installer,
    Layout,
    NoAsset,
    OrtRelease,
    PythonRelease,
    PythonSet,
)
from ortimg.core.problems import Path, Problem, near, quote
from ortimg.core.tags import repository_problem, tag_problem
from ortimg.core.versions import is_version
from ortimg.errors import ConfigError

FOLDER = "catalogue"
_AT = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")
_PROSE = {"notes", "faults", "reason", "jit_fails"}  # for people, never part of a Dockerfile
_UNSAFE = re.compile(r'[\x00-\x1f\x7f"\\$`]')
_WORD = re.compile(r"[A-Za-z0-9_.+=-]+")
# Keys for what rows share by anchors (`&name`, `*name`), as in ortimg's own files: nobody reads them.
_SHARED = re.compile(r"\w+_sets|shared_\w+")
_WORDS = {
    *("asset", "devel", "dlopened", "dropped", "filename", "libraries", "needed", "package"),
    *("python", "requirement", "soname", "suite"),
}
_VERSIONS = {"version", "cuda", "cudnn", "glibc", "glibcxx", "cuda_build", "ptx_isa"}
_COORDINATES = re.compile(r"[A-Za-z0-9_.-]+(?::[A-Za-z0-9_.-]+){2}")
_CHOICES: Mapping[str | int, type[StrEnum]] = {"installer": Installer}  # others tell how sure a fact is
_FOLDER = re.compile(r"(?:/[A-Za-z0-9_.+-]+)+")
_BASE = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")


class _Section(NamedTuple):
    """One list of rows of a file."""

    field: str  # of Catalogue
    kind: type[msgspec.Struct]
    key: Callable[[Any], str]  # what must be told apart


_SECTIONS: Mapping[str, tuple[_Section, ...]] = {
    "ort.yaml": (
        _Section("releases", OrtRelease, lambda row: f"ONNX Runtime {row.version} for CUDA {row.cuda_major}"),
        _Section("no_assets", NoAsset, lambda row: f"ONNX Runtime {row.version}"),
        _Section("layouts", Layout, lambda row: f"the layout {row.name}"),
    ),
    "cuda.yaml": (_Section("cuda_sets", CudaSet, lambda row: f"CUDA {row.cuda} with cuDNN {row.cudnn}"),),
    "python.yaml": (
        _Section("python_releases", PythonRelease, lambda row: f"the wheels of ONNX Runtime {row.version}"),
        _Section("python_sets", PythonSet, lambda row: f"Python {row.python} with NumPy {row.numpy}"),
    ),
    "bases.yaml": (_Section("bases", Base, lambda row: f"the base {row.name}"),),
}


def with_own_rows(catalogue: Catalogue, texts: Mapping[str, str]) -> Catalogue:
    """The catalogue with the rows of `texts`: file name → text. Raises ConfigError with every fault."""
    lines: list[str] = []
    for name, text in sorted(texts.items()):
        if name not in _SECTIONS:
            lines.append(f"{FOLDER}/{name}:1: {_not_for_projects(name)}")
            continue
        reader = _Reader(strict_yaml.read(text, ("int", "bool")), name)
        catalogue = reader.add_to(catalogue)
        problems = sorted(reader.problems, key=lambda problem: problem.line)
        lines += dict.fromkeys(problem.show(f"{FOLDER}/{name}") for problem in problems)
    if lines:
        raise ConfigError(*lines)
    return catalogue


def _not_for_projects(name: str) -> str:
    there = ", ".join(_SECTIONS)
    if name in ("gpus.yaml", "drivers.yaml"):
        return (
            f"GPUs and drivers come with ortimg alone; a project adds to {there}. "
            "Say a compute capability, such as 12.0, for a GPU without a name here"
        )
    return f"no file of the catalogue is called so{near(name, _SECTIONS) or f'; there are {there}'}"


class _Reader:
    """Reads one file."""

    def __init__(self, document: strict_yaml.Document, name: str) -> None:
        self._document = document
        self._sections = _SECTIONS[name]
        self.problems = list(document.problems)

    def add_to(self, catalogue: Catalogue) -> Catalogue:
        data = self._document.data
        if data is None:
            return catalogue
        if not isinstance(data, dict):
            self._problem((), f"the file is not a mapping; it begins with `{self._sections[0].field}:`")
            return catalogue
        known = [section.field for section in self._sections]
        known += ["url"] if "releases" in known else []
        for key in data:
            if key not in known and not _SHARED.fullmatch(key):
                self._problem((key,), f"unknown key{near(key, known) or '; known are ' + ', '.join(known)}")
        for section in self._sections:
            rows = data.get(section.field) or []
            if not isinstance(rows, list):
                self._problem((section.field,), "a list of rows belongs here")
                continue
            merged = self._merge(section, getattr(catalogue, section.field), rows)
            catalogue = msgspec.structs.replace(catalogue, **{section.field: merged})
        return catalogue

    def _merge(self, section: _Section, there: tuple[Any, ...], rows: list[Any]) -> tuple[Any, ...]:
        merged = {section.key(row): row for row in there}
        own: dict[str, int] = {}  # key → line
        for position, raw in enumerate(rows):
            path: Path = (section.field, position)
            row = self._row(section.kind, raw, path)
            if row is None:
                continue
            key, replaces = section.key(row), raw.get("replaces", False) is True
            if key in own:
                self._problem(path, f"{key} is here twice, first in line {own[key]}")
            elif key in merged and not replaces:
                self._problem(
                    path,
                    f"{key} is in ortimg's own catalogue already; write `replaces: true` here if this row is"
                    " to take its place",
                )
            elif key not in merged and replaces:
                self._problem((*path, "replaces"), f"{key} is not in ortimg's own catalogue; leave this out")
            own.setdefault(key, self._document.line(path))
            merged[key] = row
        return tuple(merged.values())

    def _row(self, kind: type[msgspec.Struct], raw: Any, path: Path) -> Any | None:
        if not isinstance(raw, dict):
            self._problem(path, "a mapping belongs here")
            return None
        if not isinstance(raw.get("replaces", False), bool):
            self._problem((*path, "replaces"), "true or nothing belongs here")
        data = {key: value for key, value in raw.items() if key != "replaces"}
        if kind is OrtRelease and "url" not in data:
            data["url"] = self._url(data)
        try:
            row = msgspec.convert(data, kind)
        except msgspec.ValidationError as error:
            where, message = _plain(error, path, data, kind)
            # What YAML made of a number says the opposite: "write it in quotes".
            self.problems = [problem for problem in self.problems if problem.path != where]
            self._problem(where, message)
            return None
        faults = [*_faults(msgspec.to_builtins(row))]
        for inner, message in faults:
            self._problem((*path, *inner), message)
        return None if faults else row

    def _url(self, row: dict[str, Any]) -> str:
        pattern = self._document.data.get("url") or RELEASES + "/v{version}/{asset}"
        return (
            str(pattern)
            .replace("{version}", str(row.get("version")))
            .replace("{asset}", str(row.get("asset")))
        )

    def _problem(self, path: Path, message: str) -> None:
        self.problems.append(Problem(self._document.line(path), path, message))


def _plain(
    error: msgspec.ValidationError, path: Path, data: dict[str, Any], kind: type[msgspec.Struct]
) -> tuple[Path, str]:
    """msgspec's message in plain words, and the path it is about."""
    text = str(error)
    match = _AT.search(text)
    steps = _STEP.findall(match[1]) if match else []
    inner: Path = tuple(name or int(position) for name, position in steps)
    message = _AT.sub("", text)
    value: Any = data
    for step in inner:
        value = value[step]
    if found := re.search(r"unknown field `(.*)`", message):
        known = kind.__struct_fields__ if not inner else ()
        return (*path, *inner, found[1]), f"unknown key{near(found[1], known)}"
    if found := re.search(r"missing required field `(.*)`", message):
        return (*path, *inner), f"{quote(found[1])} is missing"
    if isinstance(value, int) and "`str" in message:
        message = f"this is the number {value}; write {quote(str(value))}"
    elif isinstance(value, str) and message.startswith("Expected `int"):
        message = f"a whole number such as 12 belongs here, without quotes; this is {quote(value)}"
    elif message.startswith("Invalid enum value"):
        message = f"{quote(str(value))} is none of {', '.join(_CHOICES.get(inner[-1], Confidence))}"
    else:
        message = message.replace("`array`", "a list").replace("`object`", "a mapping").replace("`", "")
    return (*path, *inner), message


def _faults(data: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """What is wrong with values that have the right type."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in _PROSE:
                yield from _faults(value, (*path, key))
    elif isinstance(data, list | tuple):
        for position, value in enumerate(data):
            yield from _faults(value, (*path, position))
    elif isinstance(data, str) and (message := _fault(path, data)):
        yield path, message


def _fault(path: Path, value: str) -> str | None:
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    if bad := _UNSAFE.search(value):
        return f"{quote(bad[0])} cannot stand in a Dockerfile's line"
    if name == "sha256" and not re.fullmatch(r"[0-9a-f]{64}", value):
        return f"{quote(value)} is no sha256: 64 digits of 0-9a-f are"
    if name in _VERSIONS and not is_version(value):
        return f"{quote(value)} is no version"
    if name == "url":
        return url_problem(value)
    if name == "image":
        repository, colon, tag = value.rpartition(":")
        return (tag_problem(tag) if colon else "an image needs a tag") or repository_problem(repository)
    if path == ("name",) and not _BASE.fullmatch(value) and not value.isupper():
        return (
            f"{quote(value)} is no part of an image tag: lower-case letters and digits are, joined by . _ -"
        )
    if name in ("sass", "ptx") and not is_architecture(value):
        return f'{quote(value)} is no GPU architecture, such as "89" or "90a"'
    if name == "coordinates" and not _COORDINATES.fullmatch(value):
        return f'{quote(value)} is no "group:artifact:version"'
    if name == "site" and not _FOLDER.fullmatch(value):
        return f"{quote(value)} is no plain folder such as /usr/lib/python3/dist-packages"
    if name in _WORDS and not _WORD.fullmatch(value):
        return f"{quote(value)} is no plain name"
    return None
