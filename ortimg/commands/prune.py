"""`ortimg prune`: give the disk back."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ortimg.errors import ConfigError
from ortimg.helping import Guide, Verb
from ortimg.project import load_project


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg prune --dry-run", "what would go, and how much that is"),
            ("ortimg prune", "what no build of images.yaml needs"),
            ("ortimg prune --all --images", "everything that ortimg made, the built images too"),
        ),
        done="given back, or nothing could go",
        more=("docs/reliability.md",),
    ),
)
@click.option("--units", is_flag=True, help="Also the units, bases and tools that builds would use.")
@click.option("--cache", "whole_cache", is_flag=True, help="Also the whole cache of inputs.")
@click.option("--all", "everything", is_flag=True, help="Both: --units and --cache.")
@click.option("--images", is_flag=True, help="Also the built images of images.yaml's repository.")
@click.option("--dry-run", is_flag=True, help="Show what would go, remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def prune(
    context: click.Context,
    units: bool,
    whole_cache: bool,
    everything: bool,
    images: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give the disk back: units that no cell of images.yaml needs, old inputs, leftovers of killed runs.

    What is needed to build again, and every built image, stays unless an option says otherwise. An image that
    a container stands on is left, and named.
    """
    from ortimg.core.lock import Lock
    from ortimg.engine.client import Engine
    from ortimg.inputs.cache import Cache
    from ortimg.inputs.lockfile import read_lock
    from ortimg.pruning import Needs, Scope
    from ortimg.pruning import prune as run

    scope = Scope(units=units or everything, cache=whole_cache or everything, images=images, dry_run=dry_run)
    folder = context.find_object(Path) or Path()
    try:
        project = load_project(folder)
        needs = Needs.of(project, read_lock(project.root))
    except ConfigError:
        # Without a plan all would look stale. With --all all goes anyway, and a full disk does not wait.
        if not (scope.units and scope.cache) or scope.images:
            raise
        needs = Needs(repository=None, cells=(), files={}, lock=Lock())
    report = run(needs, Cache.default(), Engine(), scope)
    if as_json:
        click.echo(json.dumps(report.as_data()))
        return
    for row in report.removed:
        click.echo(f"{_size(row.bytes):>10}  {row.name}  ({row.reason})")
    for left in report.kept:
        click.echo(f"{'left':>10}  {left.name}  ({left.reason})")
    if report.engine_fault is not None:
        click.echo(f"units and the builder's records are left out: {report.engine_fault}", err=True)
    words = "would be given back" if dry_run else "given back"
    click.echo(f"{_size(report.bytes)} {words}" if report.removed else "Nothing can go.")


def _size(count: int) -> str:
    """Bytes for people: `1.4 GB`, `0.2 MB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
