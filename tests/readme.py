"""Blocks and commands of the project's own Markdown files.

A block fenced as "sh run" is a promise: it is run as it stands, in the file's order, in a fresh clone. One
fenced as "sh" shows commands that are not run (`make test` cannot run itself); their names and options are
looked up all the same.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from ortimg.cli import VERBS, cli

ROOT = Path(__file__).parents[1]
RUN = "sh run"
SHELL = ("sh", RUN)

_BLOCK = re.compile(
    r"(?:^<!--[ \t]*(?P<marker>[^\n]*?)[ \t]*-->\n)?^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_INLINE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    line: int  # of its first line in the file
    info: str  # what stands behind the opening fence
    text: str
    marker: str | None = None  # the comment on the line above the opening fence; guide.py reads it


@dataclass(frozen=True)
class Command:
    """A command line that names ortimg or make."""

    line: int
    words: tuple[str, ...]  # from "ortimg" or "make" on

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(word.partition("=")[0] for word in self.words if word.startswith("-"))


def blocks(text: str) -> Iterator[Block]:
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(line, match["info"].strip(), match["text"], match["marker"])


def commands(text: str) -> Iterator[Command]:
    """Those in shell blocks and those in `code` between words; "…" and "[--option]" are how people write."""
    for block in blocks(text):
        if block.info in SHELL:
            for number, line in enumerate(block.text.splitlines()):
                yield from _commands(line, block.line + number)
    prose = _BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in _INLINE.finditer(prose):
        yield from _commands(match[1], prose.count("\n", 0, match.start()) + 1)


def fault_of(command: Command) -> str | None:
    """What ortimg does not know of the command's verb and options; None if it knows them all."""
    words = [word for word in command.words[1:] if not word.startswith("-")]
    if not words:
        return None  # the program's name
    verb = cli.get_command(click.Context(cli), words[0]) if words[0] in VERBS else None
    if verb is None:
        return f"{words[0]} is no command"
    known = {"--help"} | {option for parameter in [*cli.params, *verb.params] for option in parameter.opts}
    if isinstance(verb, click.Group):
        if not {*words[1:]} <= verb.commands.keys():
            return f"{' '.join(words[1:])} is no command of {words[0]}"
        known |= {o for sub in verb.commands.values() for p in sub.params for o in p.opts}
    unknown = {*command.options} - known
    return f"{words[0]} has no {' '.join(sorted(unknown))}" if unknown else None


def _commands(line: str, number: int) -> Iterator[Command]:
    for part in re.split(r"&&|\|\||;", line.replace("\\|", " ").replace("|", " ")):
        lexer = shlex.shlex(part.replace("[", " ").replace("]", " "), posix=True, punctuation_chars=False)
        lexer.whitespace_split = True
        try:
            words = [*lexer]
        except ValueError:  # prose with an apostrophe
            continue
        if words and words[0].rpartition("/")[2] in ("ortimg", "make"):
            yield Command(number, (words[0].rpartition("/")[2], *words[1:]))
