"""images.yaml: what a person wishes, checked for form. Whether it can exist is for `core/cells.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
import msgspec

from ortimg.core import strict_yaml
from ortimg.core.aliases import name_problem
from ortimg.core.mirrors import NO_MIRRORS, Mirrors, mirror_problems
from ortimg.core.problems import Path, Problem, config_error, near, quote
from ortimg.core.tags import repository_problem, reserved_problem
from ortimg.data import images_schema

AXES = ("ort", "cuda", "cudnn", "base", "flavour")
DEFAULT_FLAVOUR = "runtime"
NO_ARM = (
    "there is no ONNX Runtime GPU archive for Linux on arm64 (aarch64), so every image is for linux/amd64; "
    "leave the platform out"
)
_PLATFORM_KEYS = {"platform", "platforms", "arch", "archs", "architecture", "architectures"}


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """One value that a person wrote, and where."""

    value: str
    line: int
    path: Path


class IncludeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell, written whole."""

    values: tuple[str, str, str, str, str]  # in the order of AXES
    line: int
    path: Path


class ExcludeRow(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of the matrix that are not wanted: those that agree on every axis that is named."""

    values: dict[str, str]  # axis → value
    reason: str
    line: int
    path: Path

    def matches(self, values: tuple[str, str, str, str, str]) -> bool:
        """True for a combination (in the order of AXES) that this row takes out."""
        return all(self.values.get(axis, value) == value for axis, value in zip(AXES, values, strict=True))


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """images.yaml, well-formed."""

    filename: str
    repository: str
    matrix: dict[str, tuple[Wish, ...]]  # axis → values; empty without a matrix
    include: tuple[IncludeRow, ...] = ()
    exclude: tuple[ExcludeRow, ...] = ()
    mirrors: Mirrors = NO_MIRRORS
    gpus: tuple[Wish, ...] = ()  # names or compute capabilities; core/gpu_wishes.py
    tags: tuple[tuple[str, Wish], ...] = ()  # name or rule → identifier or glob; core/aliases.py


def parse_config(text: str, filename: str) -> Config:
    """Read images.yaml. Raises ConfigError with every fault of form."""
    config, problems = read_config(text, filename)
    if problems or config is None:
        raise config_error(filename, problems)
    return config


def read_config(text: str, filename: str) -> tuple[Config | None, list[Problem]]:
    """As `parse_config`, for a caller with more checks to make: what could be read, and the faults so far."""
    document = strict_yaml.read(text)
    problems = list(document.problems)
    if not document.lines:
        return None, problems
    ill_formed = False
    for problem, unknown_key in _schema_problems(document):
        problems.append(problem)
        ill_formed |= not unknown_key
    if ill_formed:
        return None, problems
    config = _build(document, filename)
    problems += _name_problems(config, document)
    return config, problems


def _build(document: strict_yaml.Document, filename: str) -> Config:
    data: dict[str, Any] = document.data
    origins = data.get("origins") or {}
    matrix = {
        axis: tuple(_wish(document, value, ("matrix", axis, i)) for i, value in enumerate(values))
        for axis, values in (data.get("matrix") or {}).items()
        if axis in AXES
    }
    if matrix and "flavour" not in matrix:
        matrix["flavour"] = (_wish(document, DEFAULT_FLAVOUR, ("matrix",)),)
    include = [
        IncludeRow(
            values=(row["ort"], row["cuda"], row["cudnn"], row["base"], row.get("flavour", DEFAULT_FLAVOUR)),
            line=document.line(("include", i)),
            path=("include", i),
        )
        for i, row in enumerate(data.get("include") or [])
    ]
    exclude = [
        ExcludeRow(
            values={axis: row[axis] for axis in AXES if axis in row},
            reason=row["reason"],
            line=document.line(("exclude", i)),
            path=("exclude", i),
        )
        for i, row in enumerate(data.get("exclude") or [])
    ]
    return Config(
        filename=filename,
        repository=data["repository"],
        matrix=matrix,
        include=tuple(include),
        exclude=tuple(exclude),
        mirrors=Mirrors(releases=origins.get("releases"), registry=origins.get("registry")),
        gpus=tuple(_wish(document, value, ("gpus", i)) for i, value in enumerate(data.get("gpus") or [])),
        tags=tuple(
            (tag, _wish(document, value, ("tags", tag))) for tag, value in (data.get("tags") or {}).items()
        ),
    )


def _wish(document: strict_yaml.Document, value: str, path: Path) -> Wish:
    return Wish(value=value, line=document.line(path), path=path)


def _name_problems(config: Config, document: strict_yaml.Document) -> Iterator[Problem]:
    if fault := repository_problem(config.repository) or reserved_problem(config.repository):
        yield Problem(document.line(("repository",)), ("repository",), fault)
    for setting, fault in mirror_problems(config.mirrors):
        path: Path = ("origins", setting)
        yield Problem(document.line(path), path, fault)
    for tag, wish in config.tags:
        if fault := name_problem(tag):
            yield Problem(wish.line, wish.path, fault)
    for row in config.exclude:
        if not row.reason.strip():
            yield Problem(
                row.line, row.path, "the reason is blank; say why, `ortimg list --excluded` shows it"
            )


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(images_schema())


def _schema_problems(document: strict_yaml.Document) -> Iterator[tuple[Problem, bool]]:
    """Each fault, and whether it is a key that nobody knows, beside which the rest can still be checked."""
    if not isinstance(document.data, dict):
        yield Problem(1, (), "the file is not a mapping; it begins with a key such as `repository:`"), False
        return
    for error in _validator().iter_errors(document.data):
        path: Path = tuple(error.instance_path)
        for inner, message in _plain(error, path, document.data):
            unknown_key = error.kind.name == "additionalProperties"
            yield Problem(document.line(inner), inner, message), unknown_key


def _plain(error: jsonschema_rs.ValidationError, path: Path, data: Any) -> Iterator[tuple[Path, str]]:
    """A schema error in plain words, each with the path it is about."""
    kind, details = error.kind.name, error.kind.as_dict()
    value = _at(data, path)
    if kind == "additionalProperties":
        known = _known_keys(path)
        for key in details["unexpected"]:
            if key.lower() in _PLATFORM_KEYS:
                yield (*path, key), NO_ARM
            else:
                yield (*path, key), f"unknown key{near(key, known) or '; known are ' + ', '.join(known)}"
    elif kind == "required":
        yield path, f"{quote(details['property'])} is missing"
    elif kind == "anyOf":
        yield path, 'neither "matrix" nor "include" is there, so there is nothing to build'
    elif kind == "minProperties":
        if "reason" in value:  # otherwise "missing" says enough
            yield path, "no axis is named; name what is not wanted, such as {base: rocky9, reason: ...}"
    elif kind in ("minItems", "minLength") or value is None:
        yield path, "nothing is written here"
    elif kind == "type":
        wanted = {"array": "a list", "object": "a mapping", "string": "one text"}[details["types"][0]]
        is_kind = (
            "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else "one text"
        )
        example = f"; write [{quote(value)}]" if isinstance(value, str) and wanted == "a list" else ""
        yield path, f"this is {is_kind}, {wanted} belongs here{example}"
    else:
        yield path, error.message


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _known_keys(path: Path) -> list[str]:
    """Keys that the schema has at `path`."""
    schema: Any = images_schema()
    for part in path:
        schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
    return list(schema["properties"])
