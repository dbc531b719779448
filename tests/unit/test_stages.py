"""Reading the stages of a rendered Dockerfile."""

from __future__ import annotations

from ortimg.core.stages import FINAL, closure, split_stages

TEXT = """\
# a comment
FROM python:3 AS tools
RUN --mount=type=bind,source=tools/requirements.txt,target=/r \\
    pip install
# another

FROM scratch AS archive
ADD http://x /a

FROM tools AS unpack
RUN --mount=type=bind,from=archive,target=/a \\
    --mount=type=bind,source=tools,target=/t <<'EOF'
set -eux
# a comment of the script
EOF

FROM scratch AS unit
COPY --from=unpack /u/ /

FROM debian AS base

FROM unit
COPY --link --from=base / /
RUN --mount=type=bind,from=python:3,target=/p true
"""


def test_names_in_the_files_order() -> None:
    assert [*split_stages(TEXT)] == ["tools", "archive", "unpack", "unit", "base", FINAL]


def test_what_a_stage_uses() -> None:
    stages = split_stages(TEXT)
    assert {name: stage.uses for name, stage in stages.items()} == {
        "tools": (),
        "archive": (),
        "unpack": ("tools", "archive"),
        "unit": ("unpack",),
        "base": (),
        FINAL: ("unit", "base"),  # an image is no stage
    }


def test_what_a_stage_mounts_from_the_context() -> None:
    stages = split_stages(TEXT)
    assert stages["tools"].context == ("tools/requirements.txt",)
    assert stages["unpack"].context == ("tools",)
    assert stages["unit"].context == ()


def test_comments_and_empty_lines_do_not_count() -> None:
    commented = TEXT.replace("FROM scratch AS unit", "# why\n\n#\nFROM scratch AS unit")
    assert split_stages(commented) == split_stages(TEXT)


def test_every_other_line_counts() -> None:
    lines = TEXT.splitlines()
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith("#"):
            changed = "\n".join([*lines[:number], line + " x", *lines[number + 1 :]]) + "\n"
            assert split_stages(changed) != split_stages(TEXT), line


def test_closure() -> None:
    stages = split_stages(TEXT)

    def names(target: str, *replaced: str) -> list[str]:
        return [stage.name for stage in closure(stages, target, frozenset(replaced))]

    assert names("unit") == ["tools", "archive", "unpack", "unit"]
    assert names("unit", "archive") == ["tools", "unpack", "unit"]
    assert names("archive") == ["archive"]
    assert names(FINAL) == [*stages]
    assert names(FINAL, "unit") == ["base", FINAL]
    assert names("unit", "unit") == ["tools", "archive", "unpack", "unit"], "a target is always run"
