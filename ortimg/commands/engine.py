"""`ortimg engine start|stop|status`: the container engine that builds run on."""

from __future__ import annotations

import click


@click.group()
def engine() -> None:
    """See to the container engine (Docker >= 25 with buildx >= 0.13)."""


@engine.command()
def start() -> None:
    """Use a good engine as it is; install and start one otherwise (root, Debian or Ubuntu)."""
    from ortimg.engine.setup import start_engine

    start_engine(_say)
    _print_status()


@engine.command()
def stop() -> None:
    """End the engine, if ortimg started it."""
    from ortimg.engine.setup import stop_engine

    stop_engine(_say)


@engine.command()
def status() -> None:
    """Client, server, buildx, image store and builder, one line each."""
    _print_status()


def _say(line: str) -> None:
    click.echo(line, err=True)


def _print_status() -> None:
    from ortimg.engine.status import status_lines

    for line in status_lines():
        click.echo(line)
