"""`--resume`: go on with the last run of a verb that did not come to its end.

What a run was asked for is kept from its beginning to its end, so that it is there after Ctrl-C, a kill and a
power cut alike. That nothing is done twice is no matter of this: every build skips what is there.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ortimg.errors import ConfigError, EnvironmentFault, ExitCode
from ortimg.helping import Verb

OPTION = "--resume"


class Resumable(Verb):
    """A command with `--resume`, which stands for all arguments of the run that was interrupted."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        text = "Go on with the last run here that was interrupted, with its arguments."
        self.params.append(click.Option([OPTION], is_flag=True, expose_value=False, help=text))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        last = LastRun(ctx.find_object(Path) or Path(), self.name or "")
        if OPTION in args:
            if len(args) > 1:
                raise click.UsageError(f"{OPTION} takes all arguments from the run that was interrupted", ctx)
            args = last.recall()
            click.echo(f"resuming: {ctx.command_path} {shlex.join(args)}", err=True)
        ctx.meta[OPTION] = (last, tuple(args))
        return super().parse_args(ctx, [*args])

    def invoke(self, ctx: click.Context) -> Any:
        last, args = ctx.meta[OPTION]
        last.keep(args)
        try:
            found = super().invoke(ctx)
        except (KeyboardInterrupt, EnvironmentFault):
            raise  # once an engine that died is back, or a full disk has room, the run can go on
        except BaseException as end:
            if not isinstance(end, SystemExit) or end.code not in (
                ExitCode.INTERRUPTED,
                ExitCode.ENVIRONMENT,
            ):
                last.forget()
            raise
        last.forget()
        return found


class LastRun:
    """What a verb was asked for last in one project."""

    def __init__(self, root: Path, verb: str) -> None:
        self._root = root
        self._verb = verb

    def keep(self, arguments: Sequence[str]) -> None:
        """The run begins. That a cache cannot be written is told where the verb itself needs it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(arguments), encoding="utf-8")
        except OSError:
            return

    def forget(self) -> None:
        """The run came to its end, good or bad."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return

    def recall(self) -> list[str]:
        """The arguments. Raises ConfigError where nothing was interrupted."""
        try:
            found = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            found = None
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise ConfigError(
                f"no `ortimg {self._verb}` of this project was interrupted",
                hint=f"Run `ortimg {self._verb}` as usual: it skips what is done.",
            )
        return found

    @property
    def _path(self) -> Path:
        from ortimg.inputs.cache import Cache

        name = hashlib.sha256(str(self._root.resolve()).encode()).hexdigest()[:16]
        return Cache.default().root / "unfinished" / f"{self._verb}-{name}.json"
