"""BuildKit's step names in words for a person who watches. Pure."""

from __future__ import annotations

import re

_WORDS = (
    (re.compile(r"ort-verify --tier"), "verifying"),
    (re.compile(r"RUN .*\bldconfig\b"), "writing the loader's cache"),
    (re.compile(r"^\[(ort|cuda)-unpack .*RUN "), "unpacking"),
    (re.compile(r"^\[ort-verify-compile .*RUN "), "compiling the verifier"),
    (re.compile(r"ADD root\.tar"), "unpacking"),
    (re.compile(r"COPY --from="), "collecting"),
    (re.compile(r"COPY --link"), "stacking layers"),
    (re.compile(r"^exporting"), "storing"),
    (re.compile(r"\bADD .*https?://"), "downloading the archive"),
    (re.compile(r"pip (install|download)"), "downloading wheels"),
)
_QUIET = re.compile(r"^(\[internal\]|\[context |resolve image|sending|load |merging|local source)")
_WIDTH = 70


def step_words(step: str) -> str | None:
    """What a step does; None for one that is of no interest. Unknown steps keep their own first words."""
    if _QUIET.search(step):
        return None
    for pattern, words in _WORDS:
        if pattern.search(step):
            return words
    return step.splitlines()[0][:_WIDTH] if step else None
