"""Writes man/: a man page for each command, from what its `--help` says.

Run: `python scripts/make_man.py`, after a change of a command's help; `make man` does it.
An own writer, not click-man: that one leaves out verbs that are imported late, examples and exit codes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ortimg import __version__
from ortimg.cli import VERBS, cli
from ortimg.helping import Guide, page_name

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "man"
# A release and no day, so that the same text gives the same file.
_HEADER = '.TH "{name}" "1" "" "ortimg {version}" "ortimg"'


def pages() -> dict[str, str]:
    """File name → text of every page."""
    root = _context(cli, "ortimg", None)
    return {f"{page_name(context)}.1": "\n".join(_lines(context)) + "\n" for context in _contexts(root)}


def write(folder: Path = FOLDER) -> None:
    """Writes the pages into `folder`, and takes away those of commands that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in folder.glob("*.1"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, "utf-8")


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    for name, command in _children(context):
        yield from _contexts(_context(command, name, context))


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def _children(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield name, command


def _lines(context: click.Context) -> Iterator[str]:
    command = context.command
    guide = command.guide  # type: ignore[attr-defined]  # each has one: tests/unit/test_help.py
    assert isinstance(guide, Guide)
    purpose, _, rest = (command.help or "").partition("\n\n")
    name = page_name(context)
    yield _HEADER.format(name=name.upper(), version=__version__)
    yield ".SH NAME"
    yield f"{_text(name)} \\- {_text(_one_line(purpose).rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f"\\fB{_text(context.command_path)}\\fR {_text(' '.join(command.collect_usage_pieces(context)))}"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(f"{purpose}\n\n{rest}".strip())
    yield ".SH OPTIONS"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None:
            yield from _row(_option(record[0]), record[1])
    children = [*_children(context)]
    if children:
        yield ".SH COMMANDS"
    for child, of_child in children:
        told = VERBS[child] if context.parent is None else of_child.get_short_help_str(limit=200)
        yield from _row(f"\\fB{_text(child)}\\fR", told)
    yield ".SH EXAMPLES"
    for line, says in guide.examples:
        yield from _row(f"\\fB{_text(line)}\\fR", says)
    if guide.variables:
        yield ".SH ENVIRONMENT"
    for variable, says in guide.variables.items():
        yield from _row(f"\\fB{variable}\\fR", says)
    yield ".SH EXIT STATUS"
    for code, says in guide.exits:
        yield from _row(f"\\fB{code}\\fR", says)
    yield ".SH SEE ALSO"
    near = [context.parent] if context.parent else []
    near += [_context(of_child, child, context) for child, of_child in children]
    links = [f"\\fB{_text(page_name(one))}\\fR(1)" for one in near]
    yield from _see(links, guide.more)


def _see(links: Sequence[str], more: Sequence[str]) -> Iterator[str]:
    if links:
        yield ", ".join(links)
    if more:
        yield ".PP"
        yield f"In the repository of ortimg: {_text(', '.join(more))}"


def _row(term: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield term
    yield from _wrapped(text)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text)):
        if number:
            yield ".PP"
        yield from _wrapped(paragraph)


def _option(names: str) -> str:
    """`-o, --output DIR`: names are bold, what they take is not."""
    words = (f"\\fB{_text(w)}\\fR" if w.startswith("-") else _text(w) for w in names.split(" "))
    return " ".join(words).replace(",\\fR", "\\fR,")


def _wrapped(text: str) -> Iterator[str]:
    """Each sentence begins a line, as roff wants it."""
    for sentence in re.split(r"(?<=[.:?]) (?=[A-Z-])", _one_line(text)):
        for line in textwrap.wrap(sentence, 72, break_long_words=False, break_on_hyphens=False):
            yield _text(line)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _text(text: str) -> str:
    """As roff's input: a hyphen that can be copied, no escape, no request at the start of a line."""
    for plain, roff in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("~", "\\(ti")):
        text = text.replace(plain, roff)
    text = text.replace("^", "\\(ha").replace("…", "...")
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    write()
