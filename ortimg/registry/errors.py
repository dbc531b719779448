"""What registries refuse, and how they say so."""

from __future__ import annotations

import requests

from ortimg.errors import CheckFailed
from ortimg.inputs.download import Unreachable

_WORDS = 300  # characters of a registry's own words that are shown


class NoImage(CheckFailed):
    """The registry answers, and has no such image."""


class Denied(Unreachable):
    """The registry wants another log-in, or does not let this one in (401, 403). Never tried again."""


def refusal(registry: str, what: str, answer: requests.Response) -> Unreachable:
    """The error for an answer that is no success; `what`: "push onnxruntime-gpu:1", for people."""
    code = answer.status_code
    said = f"{registry}: {what}: {code} {answer.reason}{_own_words(answer)}"
    if code == requests.codes.unauthorized:
        return Denied(said, f"run `docker login {registry}`")
    if code == requests.codes.forbidden:
        return Denied(said, f"look at its name and who may do that, or run `docker login {registry}`")
    if code == requests.codes.too_many_requests:
        return Unreachable(f"{said}: too many requests", f"wait, or run `docker login {registry}`")
    if code == requests.codes.not_found:
        return Unreachable(said, "look at the name; some registries want a repository made before a push")
    if code == requests.codes.request_entity_too_large:
        return Unreachable(said, "a proxy in front of the registry limits uploads: raise its limit")
    if code >= 500:
        return Unreachable(said, "the registry is in trouble: look at its log, then run the same again")
    return Unreachable(said)


def _own_words(answer: requests.Response) -> str:
    """`: DENIED: requested access …`, as the specification lets registries explain themselves.

    https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes
    """
    try:
        rows = answer.json()["errors"]
        words = "; ".join(f"{row.get('code', '')}: {row.get('message', '')}".strip(": ") for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError, requests.RequestException):
        return ""
    return f": {words[:_WORDS]}" if words else ""
