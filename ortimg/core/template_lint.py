"""What a user's own templates should not do: faults that people met, each told before anything is built."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    text: str  # what, and what would be right


def _rule(pattern: str, text: str) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE | re.MULTILINE), text)


_INSTALL = r"\b(?:apt|apt-get|dnf|microdnf|yum)\b[^\n|;&]*"
_RULES = (
    _rule(
        r"\bcurl\b[^\n|;&]*\s(?-i:-[a-zA-Z]*k[a-zA-Z]*(?=\s)|--insecure\b)|--no-check-certificate|--trusted-host"
        r"|GIT_SSL_NO_VERIFY|--allow-unauthenticated|Verify-Peer",
        "nobody checks who answers; add the certificate of your authority instead",
    ),
    _rule(
        rf"{_INSTALL}\s(?:(?:dist-|full-)?upgrade|(?<=dnf )update|(?<=yum )update)\b",
        "an upgrade makes each build another one; take a newer base, and pin it with `ortimg lock --update`",
    ),
    _rule(
        rf"{_INSTALL}\sinstall\b[^\n|;&]*\s(?:(?:lib)?(?:cudnn|cublas|cufft|curand|nvrtc)|cuda-(?!keyring))\S*",
        "the image has the CUDA libraries of its cell; a second copy may be of another version: leave it out",
    ),
    # https://developer.nvidia.com/blog/updating-the-cuda-linux-gpg-repository-key/
    _rule(
        r"cuda-keyring",
        "beside an older list of the same repository, apt refuses both; nothing here needs it: leave it out",
    ),
    # https://docs.docker.com/reference/dockerfile/#copy
    _rule(
        r"^\s*(?:COPY|ADD)\s[^\n]*\.so[^\s/]*\*|^\s*(?:COPY|ADD)\s[^\n]*\*\.so",
        "COPY of a pattern makes a whole file of each link; copy the folder",
    ),
    _rule(
        r"^\s*ENV\s[^\n]*\bLD_LIBRARY_PATH[= ]",
        "it hides what the image was verified with; name the folder in /etc/ld.so.conf.d, ahead of ldconfig",
    ),
)
_COMMENT = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)


def template_warnings(templates: Mapping[str, str]) -> tuple[str, ...]:
    """`templates/NAME:LINE: what, and what would be right`, in the order of names and lines."""
    return tuple(
        f"templates/{name}:{line}: {said}"
        for name, text in sorted(templates.items())
        for line, said in sorted({*_faults(text.replace("\r\n", "\n"))})
    )


def _faults(text: str) -> Iterator[tuple[int, str]]:
    # Neither changes a position: lines are counted in the text as it was.
    plain = _COMMENT.sub(lambda match: " " * len(match[0]), text).replace("\\\n", "  ")
    for rule in _RULES:
        for match in rule.pattern.finditer(plain):
            yield text.count("\n", 0, match.end()) + 1, f"{match[0].split()[-1]}: {rule.text}"
