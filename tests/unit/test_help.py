"""`--help` does without other pages: options are told, examples are real, exit codes and more stand there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from readme import ROOT

from ortimg.cli import VERBS, cli
from ortimg.helping import REPEATABLE, Guide

PROJECT = ["-C", str(ROOT)]
# What the values of an option are: a word of its own, or the choice that click writes.
METAVAR = re.compile(r"[A-Z]|^sha256:|^1,|\|")


def every(command: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each command with its name as it is typed, the program itself too."""
    yield " ".join(("ortimg", *words)), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from every(child, (*words, name))


COMMANDS = dict(every())
OPTIONS = [
    pytest.param(option, id=f"{name} {option.opts[-1]}")
    for name, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option)
]


def guide(name: str) -> Guide:
    found = COMMANDS[name].guide  # type: ignore[attr-defined]  # a command without one fails here
    assert isinstance(found, Guide)
    return found


def shown(name: str) -> str:
    result = CliRunner().invoke(cli, [*name.split()[1:], "--help"])
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_told(option: click.Option) -> None:
    assert option.help, "no help"
    assert option.help[0].isupper() or option.help.startswith(("all", "glibc", "built", "Tier")), option.help
    assert option.help.rstrip().endswith((".", "]", "?")), option.help
    if not (option.is_flag or option.is_bool_flag):
        metavar = option.make_metavar(click.Context(cli))
        assert METAVAR.search(metavar), f"{metavar} does not say what to give"
        assert "INTEGER" not in metavar and "TEXT" not in metavar, metavar


@pytest.mark.parametrize("option", OPTIONS)
def test_every_default_and_every_repeatable_option_says_so(option: click.Option) -> None:
    told = option.get_help_record(click.Context(cli))
    text = told[1] if told else ""
    assert (REPEATABLE in text) is option.multiple
    default = option.to_info_dict()["default"]
    if not option.is_flag and default not in (None, (), ".") and not option.hidden:
        assert "[default: " in text, f"{option.opts}: {default}"
    if option.metavar == "SECONDS" or isinstance(option.type, click.IntRange):
        assert "[default: " in text or option.metavar == "PID", option.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_has_examples_exit_codes_and_where_to_read_more(name: str) -> None:
    told, text = guide(name), shown(name)
    assert 1 <= len(told.examples) <= 3
    for line, says in told.examples:
        assert f"\n  {line}\n" in text, "not there, or wrapped"
        assert says in " ".join(text.split())
    assert [code for code, _ in told.exits if f"\n  {code} " in text] == [code for code, _ in told.exits]
    assert {"0", "2", "130"} <= {code for code, _ in told.exits}
    assert f"\n  man {name.replace(' ', '-')}" in text
    for page in told.more:
        assert page.startswith("`") or (ROOT / page).exists(), page


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "ortimg engine"])
def test_every_example_is_a_command_that_exists(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed as a shell and as click do; its files are there, empty."""
    monkeypatch.chdir(tmp_path)
    for line, _ in guide(name).examples:
        words = shlex.split(line.partition(" > ")[0])
        assert words[0] == "ortimg"
        if name != "ortimg":
            assert " ".join(words).startswith(name), line
        for word in words:
            if re.fullmatch(r"[\w-]+\.(txt|json|onnx)", word):
                Path(word).touch()
        path = words[1:3] if words[1] == "engine" else words[1:2]
        command = COMMANDS[" ".join(("ortimg", *path))]
        command.make_context(path[-1], words[1 + len(path) :])  # raises UsageError


# Those that read only, and ask neither an engine nor the network.
QUICK = ("list", "fit", "render", "compare", "ci", "report", "init")


@pytest.mark.parametrize("verb", QUICK)
def test_examples_of_quick_verbs_run(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for line, _ in guide(f"ortimg {verb}").examples:
        words = shlex.split(line.partition(" > ")[0])[1:]
        reads_only = verb not in ("render", "report") or "--check" in words or "--no-engine" in words
        if not reads_only or "--here" in words or any(word.endswith("/") for word in words):
            continue
        place = [] if verb == "init" else PROJECT
        result = CliRunner().invoke(cli, [*place, *words])
        assert result.exit_code in (0, 1), f"{line}\n{result.output}"
        assert result.exception is None or isinstance(result.exception, SystemExit)
        ran += 1
    assert ran


def test_every_verb_is_there_and_begins_with_what_it_does() -> None:
    assert [name.split()[1] for name in COMMANDS if name.count(" ") == 1] == [*VERBS]
    for command in COMMANDS.values():
        first = (command.help or "").partition("\n\n")[0]
        assert re.match(r"[A-Z][a-z]+ .*\.$", " ".join(first.split())), first


def test_the_same_option_has_the_same_words() -> None:
    """Of flags and of what chooses cells: these mean the same everywhere."""
    said: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for option in command.params:
            if isinstance(option, click.Option) and option.opts[-1] in ("--json", "--skip", "--shard"):
                said.setdefault(option.opts[-1], set()).add(option.help or "")
    assert {name: len(texts) for name, texts in said.items()} == {"--json": 1, "--skip": 1, "--shard": 1}


def test_the_start_of_the_program_is_not_slower_for_it() -> None:
    """What each start imports: click, and four small modules of ortimg."""
    code = "import sys; from ortimg.cli import cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {*done.stdout.split()}
    own = {name for name in loaded if name.startswith("ortimg")}
    assert own == {"ortimg", "ortimg.cli", "ortimg.errors", "ortimg.helping"}
    assert not loaded & {"dataclasses", "msgspec", "yaml", "jinja2"}
