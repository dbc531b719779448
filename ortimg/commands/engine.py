"""`ortimg engine start|stop|status`: the container engine that builds run on."""

from __future__ import annotations

import click

from ortimg.helping import Guide, Verb, Verbs


@click.group(
    cls=Verbs,
    guide=Guide(
        examples=(
            ("ortimg engine start", "what `make engine` does"),
            ("ortimg engine status", "which engine builds would use"),
        ),
        done="done",
        environment="no engine, and none can be started; the next step is shown",
        more=("docs/reliability.md",),
    ),
)
def engine() -> None:
    """See to the container engine (Docker >= 25 with buildx >= 0.13)."""


@engine.command(
    cls=Verb,
    short_help="Use a good engine as it is, or install and start one.",
    guide=Guide(
        examples=(("ortimg engine start", "as often as you like: a good engine is used as it is"),),
        done="a good engine runs",
        environment="none can be had here; what to run is shown",
        more=("docs/reliability.md",),
    ),
)
def start() -> None:
    """Use a good engine as it is; install and start one otherwise (root, Debian or Ubuntu)."""
    from ortimg.engine.setup import start_engine

    start_engine(_say)
    _print_status()


@engine.command(
    cls=Verb,
    guide=Guide(
        examples=(("ortimg engine stop", "images stay on the disk"),),
        done="no engine that ortimg started is running",
        environment="it does not end",
        more=("docs/reliability.md",),
    ),
)
def stop() -> None:
    """End the engine, if ortimg started it."""
    from ortimg.engine.setup import stop_engine

    stop_engine(_say)


@engine.command(
    cls=Verb,
    guide=Guide(
        examples=(("ortimg engine status", "before a build, or for a bug report"),),
        done="shown",
        environment="no engine, or one that is too old",
        more=("docs/reliability.md",),
    ),
)
def status() -> None:
    """Show client, server, buildx, image store and builder, one line each."""
    _print_status()


def _say(line: str) -> None:
    click.echo(line, err=True)


def _print_status() -> None:
    from ortimg.engine.status import status_lines

    for line in status_lines():
        click.echo(line)
