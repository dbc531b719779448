"""What may be the name of an image: tags and repositories."""

from __future__ import annotations

import re

from ortimg.core.problems import quote

# Grammar: https://github.com/distribution/reference/blob/main/reference.go
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_HOST = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?\.?)+(?::[0-9]+)?|\[[0-9a-fA-F:]+\](?::[0-9]+)?"
)
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_MAX_REPOSITORY = 255
_MAX_PORT = 65535
UNITS = (
    "localhost/ortimg"  # in front of the names of what images are made of; the engine never asks a registry
)


def tag_problem(tag: str) -> str | None:
    """Why `tag` cannot be an image tag, or None."""
    if _TAG.fullmatch(tag):
        return None
    if not tag:
        return "a tag cannot be empty"
    if len(tag) > 128:
        return f"the tag has {len(tag)} characters, 128 are allowed"
    if tag[0] in ".-":
        return (
            f"{quote(tag)} is no image tag: it begins with {quote(tag[0])}; begin with a letter, a digit or _"
        )
    bad = next(character for character in tag if not re.fullmatch(r"[A-Za-z0-9_.-]", character))
    return f"{quote(tag)} is no image tag: {quote(bad)} is not allowed; letters, digits, _ . and - are"


def repository_problem(repository: str) -> str | None:
    """Why `repository` cannot name a repository (`name`, `team/name` or `host/team/name`), or None."""
    if not repository:
        return "a repository cannot be empty"
    if len(repository) > _MAX_REPOSITORY:
        return f"the repository has {len(repository)} characters, {_MAX_REPOSITORY} are allowed"
    if "://" in repository:
        return (
            f"{quote(repository)} is no repository: leave out {quote(repository.partition('://')[0] + '://')}"
        )
    first, slash, rest = repository.partition("/")
    if slash and "@" in first:  # it may be a password: it is not said again
        return "a log-in cannot stand in the name of a repository; `docker login` keeps it"
    has_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    if has_host and not _HOST.fullmatch(first):
        return f"{quote(repository)} is no repository: {quote(first)} is no host name"
    port = first.rpartition("]")[2].rpartition(":")[2] if has_host and ":" in first else ""
    if port.isdecimal() and not 0 < int(port) <= _MAX_PORT:
        return f"{quote(repository)} is no repository: ports are 1 to {_MAX_PORT}, not {port}"
    components = (rest if has_host else repository).split("/")
    for component in components:
        if _COMPONENT.fullmatch(component):
            continue
        if "@" in component or ":" in component:
            return f"{quote(repository)} is no repository: leave out the tag or digest"
        if component != component.lower() and _COMPONENT.fullmatch(component.lower()):
            wanted = quote(repository.lower())
            return f"{quote(repository)} is no repository: names are lower case; write {wanted}"
        return (
            f"{quote(repository)} is no repository: {quote(component)} is no part of a name; "
            "lower-case letters and digits are, joined by . _ or -"
        )
    return None


def reserved_problem(repository: str) -> str | None:
    """Why images cannot have the name of a repository that is one of ortimg's own, or None."""
    if repository != UNITS and not repository.startswith(f"{UNITS}/"):
        return None
    return (
        f"{quote(repository)} is among the names of ortimg's own units, which `ortimg prune` removes; "
        "take another"
    )
