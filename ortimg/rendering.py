"""A project on the disk → the text of all that is generated from it."""

from __future__ import annotations

from ortimg.core.lock import Lock
from ortimg.core.render import Pins, render
from ortimg.inputs.lockfile import read_lock
from ortimg.project import Project
from ortimg.sources import read_sources

TEMPLATES = "templates"


def render_project(project: Project, lock: Lock | None = None) -> dict[str, str]:
    """Path → text. A `templates/` folder beside images.yaml replaces partials by name."""
    sources = read_sources(project.root / TEMPLATES)
    pins = pins_of(lock if lock is not None else read_lock(project.root))
    return render(project.plan.repository, project.plan.cells, sources, pins)


def pins_of(lock: Lock) -> Pins:
    """What rendering takes from the lock: hashes of release archives, digests of bases."""
    return Pins(
        ort_sha256={key: row.upstream for key, row in lock.ort.items() if row.upstream},
        base_digest={name: base.digest for name, base in lock.bases.items() if base.digest},
    )
