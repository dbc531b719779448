"""Alias tags alone: they move to images that the registry has, and only when it has every one of them.

A fleet pushes images from many machines; when all are done, one of them moves the aliases. No image is held
here, so the tier is told by an image's label and by the records of GPU runs that are attached to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ortimg.core.mirrors import Reference
from ortimg.core.model import Cell, Tier
from ortimg.errors import CheckFailed
from ortimg.project import Project
from ortimg.publishing.targets import reaches, repositories, tier_fault
from ortimg.records.attach import attached
from ortimg.records.record import best_tier
from ortimg.registry.client import Registries, Repository
from ortimg.registry.labels import labels_of
from ortimg.registry.model import Manifest
from ortimg.registry.transport import Patience

SCHEMA = 1  # version of the JSON; more keys may come, none goes
_QUESTIONS = 8


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """One alias tag and the image it is on now."""

    alias: str  # full reference
    identifier: str
    digest: str
    moved: bool  # False: it was there already


class _Found(msgspec.Struct, frozen=True):
    cell: Cell
    manifest: Manifest


def of_project(
    project: Project,
    cells: Sequence[Cell],
    tier: Tier,
    prefixes: Sequence[str],
    plain_http: bool,
    *,
    retries: int = 5,
) -> tuple[Alias, ...]:
    """Move the alias tags of `cells` in images.yaml's repository, or below each of `prefixes`."""
    targets = repositories(project.plan.repository, prefixes)
    plain = [Reference.parse(name).registry for name in targets] if plain_http else []
    registries = Registries(Patience(retries=retries), plain)
    return tuple(row for name in targets for row in move_aliases(registries.repository(name), cells, tier))


def move_aliases(repository: Repository, cells: Sequence[Cell], tier: Tier) -> tuple[Alias, ...]:
    """Move the alias tags of `cells`.

    Raises CheckFailed, with nothing moved, where a cell is not in the registry or is verified to less than
    `tier`; `Unreachable` and `Denied`.
    """
    with ThreadPoolExecutor(_QUESTIONS, thread_name_prefix="aliases") as pool:
        answers = list(pool.map(lambda cell: _look(repository, cell, tier), cells))
    pairs = zip(cells, answers, strict=True)
    faults = [f"{cell.identifier}: {answer}" for cell, answer in pairs if isinstance(answer, str)]
    if faults:
        raise CheckFailed(
            "\n".join([*faults, "No alias tag was moved."]),
            "Push those cells as wanted, then run this again.",
        )
    moved = []
    for found in answers:
        assert isinstance(found, _Found)
        for tag in found.cell.tags:
            other = repository.digest(tag) != found.manifest.digest
            if other:
                repository.put_manifest(found.manifest.data, found.manifest.media_type, tag)
            moved.append(
                Alias(
                    alias=f"{repository.name}:{tag}",
                    identifier=found.cell.identifier,
                    digest=found.manifest.digest,
                    moved=other,
                )
            )
    return tuple(moved)


def as_data(rows: Sequence[Alias]) -> dict[str, object]:
    """The stable JSON."""
    return {"schema": SCHEMA, "aliases": [msgspec.to_builtins(row) for row in rows]}


def summary(rows: Sequence[Alias]) -> str:
    """A line an alias."""
    lines = [f"{row.alias} -> {row.identifier}{'' if row.moved else ' (unchanged)'}" for row in rows]
    moved = sum(row.moved for row in rows)
    return "\n".join([*lines, f"{moved} moved, {len(rows) - moved} unchanged"])


def _look(repository: Repository, cell: Cell, tier: Tier) -> _Found | str:
    """The image of a cell, or why its aliases must stay."""
    manifest = repository.manifest(cell.identifier)
    if manifest is None:
        return f"{repository.name} does not have it"
    label = labels_of(repository, manifest).get("ortimg.tier")
    told = best_tier(label, manifest.digest, attached(repository, manifest.digest)[0])
    return _Found(cell, manifest) if reaches(told, tier) else tier_fault(told, tier, "--push-record")
