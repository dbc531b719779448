"""The stages of a rendered Dockerfile: their text, and what each stands on.

Only the Dockerfiles of our own templates are read, so that a content hash can follow what a stage depends on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

_FROM = re.compile(r"^FROM (?P<parent>\S+)(?: AS (?P<name>\S+))?$", re.MULTILINE)
_TAKES = re.compile(r"\bfrom=(?P<stage>[\w.-]+)")
_SOURCE = re.compile(r"--mount=type=bind,source=(?P<path>[\w./-]+)")

FINAL = ""  # name of the last stage, which has none


class Stage(msgspec.Struct, frozen=True):
    """One stage, without its comments."""

    name: str
    text: str
    uses: tuple[str, ...]  # other stages: its parent, `COPY --from=`, mounts
    context: tuple[str, ...]  # files or folders of the build context that it mounts


def split_stages(dockerfile: str) -> dict[str, Stage]:
    """Name → stage, in the file's order; the last stage's name is `FINAL`."""
    lines = [line for line in dockerfile.splitlines() if line.strip() and not line.startswith("#")]
    text = "\n".join(lines) + "\n"
    heads = list(_FROM.finditer(text))
    names = {head["name"] or FINAL for head in heads}
    stages = {}
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        body = text[head.start() : following.start() if following else len(text)]
        used = [head["parent"], *_TAKES.findall(body)]
        name = head["name"] or FINAL
        stages[name] = Stage(
            name=name,
            text=body,
            uses=tuple(dict.fromkeys(stage for stage in used if stage in names)),
            context=tuple(dict.fromkeys(_SOURCE.findall(body))),
        )
    return stages


def stage_names(dockerfile: str) -> set[str]:
    """Names of the stages; that of the last is `FINAL`. Quicker than to split the file."""
    return {head["name"] or FINAL for head in _FROM.finditer(dockerfile)}


def closure(stages: Mapping[str, Stage], target: str, replaced: frozenset[str]) -> tuple[Stage, ...]:
    """The stages that building `target` runs, in the file's order; `replaced` ones are handed in."""
    wanted: set[str] = set()
    todo = [target]
    while todo:
        name = todo.pop()
        if name not in wanted and (name not in replaced or name == target):
            wanted.add(name)
            todo.extend(stages[name].uses)
    return tuple(stage for name, stage in stages.items() if name in wanted)
