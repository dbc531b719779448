"""`build --push` with the engine's own builder: what a build brought goes to the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortimg.core.model import Cell, Tier
from ortimg.errors import ConfigError, ExitCode
from ortimg.factory.result import CellResult, Outcome
from ortimg.factory.run import Report
from ortimg.project import Project
from ortimg.publishing import aliases, run
from ortimg.publishing.push import Wish
from ortimg.publishing.result import PushReport
from ortimg.publishing.targets import repositories
from ortimg.records.store import read_records

_THERE = (Outcome.BUILT, Outcome.UNCHANGED)


def push_built(
    project: Project,
    cells: Sequence[Cell],
    report: Report,
    kept: Mapping[str, CellResult],
    *,
    tier: Tier,
    prefix: str | None,
    whole: bool,
) -> PushReport | None:
    """Push the cells of `report` that passed; None where there is none.

    `kept`: cells that the registry had already. `whole`: alias tags move too, if all of `cells` are there in
    the end; a shard leaves them to `push --aliases-only`. Raises as `run.push` and `aliases.move_aliases`.
    """
    passed = {row.identifier for row in report.results if row.result in _THERE} - kept.keys()
    chosen = [cell for cell in cells if cell.identifier in passed]
    prefixes = [prefix] if prefix else []
    pushed = None
    if chosen:
        pushed = run.push(project, chosen, Wish(tier=tier, aliases=False), prefixes=prefixes)
        run.write_digests(project, pushed)
    good = report.exit_code is ExitCode.DONE and (pushed is None or pushed.exit_code is ExitCode.DONE)
    if whole and good:
        aliases.of_project(project, cells, tier, prefixes, False)
    return pushed


def check_target(project: Project, prefix: str | None, available: bool, tier: Tier, gpu: bool) -> None:
    """Raises ConfigError where nothing says which registry, where what is pushed depends on the weather, or
    where no image can have reached `tier`: no GPU is asked for, and no verdict of one was ever kept.

    Asked before anything is built.
    """
    if available:
        raise ConfigError(
            "--available and --push are two different wishes: what is published must not depend on luck",
            hint="Leave out --available, and select the cells with globs or --skip.",
        )
    if tier is Tier.RUN and not gpu and not read_records(project.root).records:
        raise ConfigError(
            "--push would push images that no GPU has run: a build verifies up to tier load",
            hint="Say --tier load if that is what you mean, or add --gpu.",
        )
    repositories(project.plan.repository, [prefix] if prefix else [])
