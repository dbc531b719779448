"""`--resume`: what an interrupted run was asked for is asked again, and nothing else."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from ortimg.errors import ConfigError, EnvironmentFault, ExitCode
from ortimg.helping import Guide
from ortimg.resuming import Resumable

ARGUMENTS = ["a*", "b c", "--shard", "1/2", "--skip", "x", "--skip", "y"]


class Verb:
    """A command that ends as it is told to, and keeps what it was given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.end: BaseException | None = None
        self.seen: list[dict[str, object]] = []

    def __call__(self, *arguments: str) -> Result:
        @click.command(name="verb", cls=Resumable, guide=Guide(examples=(), done="done"))
        @click.argument("selectors", nargs=-1)
        @click.option("--shard")
        @click.option("--skip", multiple=True)
        def verb(**params: object) -> None:
            self.seen.append(params)
            if self.end is not None:
                raise self.end

        return CliRunner().invoke(verb, arguments, obj=self.root)


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verb:
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))
    return Verb(tmp_path)


@pytest.mark.parametrize(
    "end",
    [
        KeyboardInterrupt(),
        SystemExit(ExitCode.INTERRUPTED),
        SystemExit(ExitCode.ENVIRONMENT),
        EnvironmentFault("the disk is full"),
    ],
)
def test_what_was_interrupted_is_asked_again(verb: Verb, end: BaseException) -> None:
    verb.end = end
    assert verb(*ARGUMENTS).exit_code != 0
    again = verb("--resume")  # and once more, since this one is interrupted too
    assert again.stderr.startswith("resuming: verb 'a*' 'b c' --shard 1/2 --skip x --skip y\n")
    verb.end = None
    assert verb("--resume").exit_code == 0
    assert verb.seen == [verb.seen[0]] * 3
    assert verb.seen[0] == {"selectors": ("a*", "b c"), "shard": "1/2", "skip": ("x", "y")}


@pytest.mark.parametrize(
    "end", [None, SystemExit(ExitCode.FAILED), SystemExit(0), ConfigError("x"), ValueError("bug")]
)
def test_what_came_to_its_end_is_over(verb: Verb, end: BaseException | None) -> None:
    verb.end = end
    verb(*ARGUMENTS)
    result = verb("--resume")
    assert isinstance(result.exception, ConfigError)
    assert "no `ortimg verb` of this project was interrupted" in str(result.exception)
    assert len(verb.seen) == 1


def test_another_project_has_its_own(verb: Verb, tmp_path: Path) -> None:
    verb.end = KeyboardInterrupt()
    verb(*ARGUMENTS)
    other = Verb(tmp_path / "other")
    assert isinstance(other("--resume").exception, ConfigError)


def test_nothing_else_goes_with_it(verb: Verb) -> None:
    result = verb("--resume", "a*")
    assert result.exit_code == 2
    assert "takes all arguments from the run that was interrupted" in result.stderr
    assert verb.seen == []


def test_a_damaged_memory_counts_as_none(verb: Verb, tmp_path: Path) -> None:
    verb.end = KeyboardInterrupt()
    verb("a*")
    (path,) = (tmp_path / "cache" / "unfinished").iterdir()
    path.write_text('["a*"')
    assert isinstance(verb("--resume").exception, ConfigError)


def test_a_cache_that_cannot_be_written_is_not_this_ones_fault(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "file"))
    assert verb(*ARGUMENTS).exit_code == 0
