"""`--help` that does without other pages: examples, exit codes, where to read more.

It stands beside the verb, as a Guide; `scripts/make_man.py` writes the man pages from the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import click

# What two codes mean in each verb.
USAGE, INTERRUPTED = "wrong usage or configuration", "interrupted"
REPEATABLE = "Repeatable."  # the same words in each verb


class Guide(NamedTuple):
    """What a verb's help says after its options. No dataclass: each start would import what makes these."""

    examples: tuple[tuple[str, str], ...]  # a command line as it is typed, and what it does
    done: str  # what exit code 0 says
    failed: str | None = None  # 1; None: the verb never ends so
    environment: str | None = "engine, network or disk"  # 3
    more: tuple[str, ...] = ()  # pages of the repository, such as docs/push.md
    variables: Mapping[str, str] = MappingProxyType({})  # of the environment, and what they do

    @property
    def exits(self) -> tuple[tuple[str, str], ...]:
        """Exit codes and what they say, in order."""
        told = {"0": self.done, "1": self.failed, "2": USAGE, "3": self.environment, "130": INTERRUPTED}
        return tuple((code, text) for code, text in told.items() if text is not None)


class _Guided(click.Command):
    guide: Guide

    def __init__(self, *arguments: Any, guide: Guide, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.guide = guide

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Sections after the options. A command line is never wrapped: it is there to be copied."""
        with formatter.section("Examples"):
            for command, says in self.guide.examples:
                formatter.write(f"{'':{formatter.current_indent}}{command}\n")
                with formatter.indentation():
                    formatter.indent()
                    formatter.write_text(says)
                    formatter.dedent()
        if self.guide.variables:
            with formatter.section("Environment"):
                formatter.write_dl([*self.guide.variables.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([*self.guide.exits])
        with formatter.section("More"):
            formatter.write_text(", ".join((page_name(ctx, "man "), *self.guide.more)))


class Verb(_Guided):
    """A command with a Guide."""


class Verbs(_Guided, click.Group):
    """A group of commands with a Guide."""


def page_name(ctx: click.Context, before: str = "") -> str:
    """Name of a command's man page: `ortimg-engine-start`."""
    return f"{before}{ctx.command_path.replace(' ', '-')}"
