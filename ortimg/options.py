"""Command line options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ortimg.core.model import Cell
from ortimg.core.shards import ShardName, of_shard

F = TypeVar("F", bound=Callable[..., Any])


def shard_option(function: F) -> F:
    """`--shard I/N`, as the argument `shard`: its text, or None."""
    text = "Only part I of N, such as 1/4. No two parts make the same heavy layer."
    return click.option("--shard", metavar="I/N", help=text)(function)


def take_shard(cells: tuple[Cell, ...], shard: str | None) -> tuple[Cell, ...]:
    """The cells of that shard, all without one. An empty shard is said on stderr, and is no fault.

    Raises ConfigError where `shard` is none.
    """
    if shard is None:
        return cells
    name = ShardName.parse(shard)
    found = of_shard(cells, name)
    if not found.cells:
        sets = len({cell.cuda_set.key for cell in cells})
        many = f"{sets} CUDA set{'s' if sets != 1 else ''}"
        click.echo(
            f"shard {name} is empty: {many} fill{'s' if sets == 1 else ''} {sets}, none is split", err=True
        )
    return found.cells
