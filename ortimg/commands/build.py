"""`ortimg build`: images of the cells, each verified while it is built."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ortimg.errors import ConfigError, ExitCode
from ortimg.helping import Guide
from ortimg.options import shard_option, take_shard
from ortimg.project import Project, pass_project
from ortimg.records.options import device_option
from ortimg.resuming import Resumable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ortimg.core.model import Cell
    from ortimg.factory.result import CellResult
    from ortimg.factory.run import Report


@click.command(
    cls=Resumable,
    guide=Guide(
        examples=(
            ("ortimg build --available", "every image whose inputs can be had; this is `make images`"),
            ("ortimg build '1.16.2-*' --skip '*-debian13'", "some of them"),
            (
                "ortimg build --push --tier load --registry-prefix registry.example.com/team",
                "build, then publish",
            ),
        ),
        done="every image was built and verified, or was there",
        failed="an image failed; the summary says which and why",
        environment="engine, network or disk; an input could not be had (without --available)",
        more=("docs/fleets.md", "docs/gpu.md", "docs/reliability.md"),
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option("--skip", multiple=True, metavar="SELECTOR", help="Leave these cells out. Repeatable.")
@click.option("--available", is_flag=True, help="A cell whose inputs cannot be had is listed, not a failure.")
@click.option("--fail-fast", is_flag=True, help="End the build with the first cell that fails.")
@shard_option
@click.option("--builder", metavar="NAME", help="A buildx builder of any driver. [default: the engine's own]")
@click.option(
    "--units", metavar="REGISTRY/PATH", help="With --builder: share heavy layers through a registry."
)
@click.option("--load", is_flag=True, help="With --builder: send the images to the engine here.")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --builder: write the images as OCI layouts.",
)
@click.option("--verify-only", is_flag=True, help="With --builder: build and verify, keep no image.")
@click.option("--push", is_flag=True, help="Push what was built; with --builder, let the builder do it.")
@click.option(
    "--tier",
    type=click.Choice(["static", "load", "run"]),
    help="With --push: how far an image must be verified; a build reaches load. [default: run]",
)
@click.option(
    "--registry-prefix",
    metavar="HOST[/PATH]",
    help="With --push: push below this. [default: images.yaml's own registry]",
)
@click.option(
    "--provenance",
    is_flag=True,
    help="With --builder: attach how each image was built. Its digest is then another one with each build.",
)
@click.option(
    "--changed-since",
    metavar="REPOSITORY|LOCK",
    help="Build only what this repository (`registry`: images.yaml's own) does not have with the same"
    " content, or whose pins differ from this lock file's.",
)
@click.option("--gpu", is_flag=True, help="Run each image on a GPU after its build, and keep the verdict.")
@device_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@pass_project
def build(
    project: Project,
    selectors: tuple[str, ...],
    skip: tuple[str, ...],
    available: bool,
    fail_fast: bool,
    shard: str | None,
    builder: str | None,
    units: str | None,
    load: bool,
    output: Path | None,
    verify_only: bool,
    push: bool,
    tier: str | None,
    registry_prefix: str | None,
    provenance: bool,
    changed_since: str | None,
    gpu: bool,
    gpu_device: str | None,
    as_json: bool,
) -> None:
    """Build images of the cells, each verified while it is built.

    SELECTOR is a glob over identifiers and tags; without one, all cells are built. Generated files are
    written first. A cell that fails does not stop the others. What is there already is not built again.
    """
    from ortimg.core.model import Tier
    from ortimg.core.selectors import select
    from ortimg.factory.gpu import judged, open_stage
    from ortimg.factory.result import SCHEMA
    from ortimg.factory.run import run, with_kept
    from ortimg.factory.site import Wish
    from ortimg.factory.summary import summary

    if not push:
        _only_for_a_push("--tier", tier)
        _only_for_a_push("--registry-prefix", None if changed_since == "registry" else registry_prefix)
    cells = take_shard(select(project.plan.cells, selectors, skip, project.plan.excluded), shard)
    if shard and not cells:
        if as_json:
            click.echo(json.dumps({"schema": SCHEMA, "cells": []}))
        return
    own_push = push and builder is None
    kept: dict[str, CellResult] = {}
    prefixes = [registry_prefix] if registry_prefix else []
    if own_push:
        from ortimg.publishing.built import check_target

        check_target(project, registry_prefix, available, Tier(tier or "run"), gpu)
    if changed_since is not None:
        from ortimg.publishing.changed import since

        kept = since(project, cells, changed_since, prefixes)
    wish = Wish(
        builder=builder,
        units=units,
        load=load,
        output=output,
        verify_only=verify_only,
        push=push and not own_push,
        tier=Tier(tier) if tier else None,
        registry_prefix=registry_prefix,
        provenance=provenance,
    )
    stage = open_stage(project.root, gpu, gpu_device, wish)

    def make(todo: Sequence[Cell]) -> Report:
        made = run(project, todo, available=available, fail_fast=fail_fast, wish=wish)
        return judged(project.root, made, stage, wish)

    report = with_kept(cells, kept, make)
    data, pushed = report.as_data(), None
    if not as_json:
        click.echo(summary(report.results), nl=False)
        click.echo(report.timing_line())
    if own_push and report.exit_code is not ExitCode.INTERRUPTED:
        from ortimg.publishing.built import push_built

        pushed = push_built(
            project,
            cells,
            report,
            kept,
            tier=Tier(tier or "run"),
            prefix=registry_prefix,
            whole=shard is None,
        )
        data["push"] = pushed.as_data() if pushed else None
    if as_json:
        click.echo(json.dumps(data))
    elif pushed:
        from ortimg.publishing.result import summary as push_summary

        click.echo(push_summary(pushed), nl=False)
    if report.exit_code is not ExitCode.DONE:
        sys.exit(report.exit_code)
    if pushed and pushed.exit_code is not ExitCode.DONE:
        sys.exit(pushed.exit_code)


def _only_for_a_push(option: str, value: str | None) -> None:
    if value is not None:
        raise ConfigError(f"{option} is for --push", hint="Add --push, or leave the option out.")
