"""What need not be built: cells that a registry has with the same content, or whose pins are as in a lock.

A content hash is made of the rendered text, the build context and the hashes of all inputs, so nothing is
fetched or built to compare it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ortimg.core.lock import Lock, merge, planned
from ortimg.core.lock import parse as parse_lock
from ortimg.core.mirrors import Reference
from ortimg.core.model import Cell
from ortimg.core.problems import quote
from ortimg.errors import ConfigError
from ortimg.factory.contents import possible_contents
from ortimg.factory.result import CellResult, Outcome
from ortimg.inputs.cache import Cache
from ortimg.inputs.lockfile import read_lock
from ortimg.project import Project
from ortimg.publishing.targets import repositories
from ortimg.reading import read_text
from ortimg.records.attach import attached
from ortimg.records.record import best_tier
from ortimg.registry.client import Registries, Repository
from ortimg.registry.labels import labels_of
from ortimg.rendering import build_context, render_project

OWN = "registry"  # stands for images.yaml's own repository
_EXAMPLE = "registry.example.com/team/name"
_QUESTIONS = 8
_CONTENT, _TIER = "ortimg.content", "ortimg.tier"  # labels


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A cell in a registry."""

    cell: Cell
    repository: str
    digest: str | None = None
    tier: str | None = None
    stale: str | None = None  # why it must be built; None: it is up to date


def is_lock(text: str) -> bool:
    """Whether the value of an option means a lock file, not a repository."""
    return text.endswith(".lock") or Path(text).is_file()


def repository_of(project: Project, text: str, prefixes: Sequence[str] = ()) -> str:
    """Full name of the repository that `text` means. Raises ConfigError where it names no registry."""
    if text == OWN:
        try:
            return repositories(project.plan.repository, prefixes)[0]
        except ConfigError as error:
            if prefixes:
                raise
            own = f"Write it whole there, or name a repository here: {_EXAMPLE}."
            raise ConfigError(error.message, hint=own) from None
    if Reference.parse(f"{text}:x").registry != text.partition("/")[0]:
        raise ConfigError(
            f"{quote(text)} names no registry and is no lock file",
            hint=f"Write {_EXAMPLE}, `{OWN}` for images.yaml's own, or a path of a lock.",
        )
    return text


def in_registry(
    project: Project, cells: Sequence[Cell], repository: str, plain: bool = False
) -> list[Published]:
    """Each cell against the registry. Raises `Unreachable` and `Denied`."""
    registries = Registries(plain=[Reference.parse(repository).registry] if plain else [])
    asked = registries.repository(repository)
    lock = merge(read_lock(project.root), planned(cells))
    files, cache = render_project(project), Cache.default()
    context = build_context(files)

    def look(cell: Cell) -> Published:
        wanted = possible_contents(cell, files, context, cache, lock)
        return _look(asked, repository, cell, wanted)

    with ThreadPoolExecutor(_QUESTIONS, thread_name_prefix="changed") as pool:
        return [*pool.map(look, cells)]


def _look(asked: Repository, repository: str, cell: Cell, wanted: frozenset[str]) -> Published:
    manifest = asked.manifest(cell.identifier)
    if manifest is None:
        return Published(cell=cell, repository=repository, stale="the registry does not have it")
    labels = labels_of(asked, manifest)
    same = labels.get(_CONTENT) in wanted
    return Published(
        cell=cell,
        repository=repository,
        digest=manifest.digest,
        tier=best_tier(labels.get(_TIER), manifest.digest, attached(asked, manifest.digest)[0]),
        stale=None if same else "made of other inputs, or of another text",
    )


def since_lock(project: Project, cells: Sequence[Cell], path: Path) -> dict[str, CellResult]:
    """Cells whose pins are the same in the lock at `path` and now, as results of a build.

    Only archives, wheels and bases count here: a registry tells a changed text too.
    """
    try:
        old = parse_lock(read_text(path, str(path)), str(path))
    except ConfigError as error:
        raise ConfigError(
            *error.problems,
            hint="Name a lock, such as an earlier commit's (`git show HEAD~1:images.lock`), or a repository.",
        ) from None
    new = merge(read_lock(project.root), planned(cells))
    return {
        cell.identifier: CellResult(identifier=cell.identifier, result=Outcome.UNCHANGED)
        for cell in cells
        if _pins(cell, old) == _pins(cell, new)
    }


def _pins(cell: Cell, lock: Lock) -> tuple[object, ...]:
    key = cell.release.key
    rows: tuple[Mapping[str, object], ...] = (lock.ort, lock.headers)
    found = [row.get(key) for row in rows] if not cell.wheels else [lock.python.get(cell.ort_key)]
    return (*found, lock.cuda.get(cell.cuda_set.key), lock.bases.get(cell.base.name))


def since(
    project: Project, cells: Sequence[Cell], text: str, prefixes: Sequence[str] = (), plain: bool = False
) -> dict[str, CellResult]:
    """Cells that `--changed-since TEXT` leaves out, by identifier, each as the result of a build."""
    if is_lock(text):
        return since_lock(project, cells, Path(text))
    rows = in_registry(project, cells, repository_of(project, text, prefixes), plain)
    return {
        row.cell.identifier: CellResult(
            identifier=row.cell.identifier,
            result=Outcome.UNCHANGED,
            image=f"{row.repository}:{row.cell.identifier}",
            digest=row.digest,
            tier=row.tier,
        )
        for row in rows
        if row.stale is None
    }
