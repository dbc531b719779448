"""A project on the disk → the text of all that is generated from it."""

from __future__ import annotations

from collections.abc import Mapping

from ortimg.core.lock import Lock
from ortimg.core.render import DOCKERFILES, Pins, render
from ortimg.inputs.lockfile import read_lock
from ortimg.project import Project
from ortimg.sources import read_sources

TEMPLATES = "templates"


def render_project(project: Project, lock: Lock | None = None) -> dict[str, str]:
    """Path → text. A `templates/` folder beside images.yaml replaces partials by name."""
    sources = read_sources(project.root / TEMPLATES)
    pins = pins_of(lock if lock is not None else read_lock(project.root))
    return render(project.plan.repository, project.plan.cells, sources, pins)


def build_context(files: Mapping[str, str]) -> dict[str, str]:
    """The part of the generated files that builds get as their context: its path there → text."""
    return {
        path.removeprefix(f"{DOCKERFILES}/"): text
        for path, text in files.items()
        if path.startswith(f"{DOCKERFILES}/") and not path.endswith("/Dockerfile")
    }


def pins_of(lock: Lock) -> Pins:
    """What rendering takes from the lock: hashes of release archives, digests of bases."""
    return Pins(
        ort_sha256={key: row.upstream for key, row in lock.ort.items() if row.upstream},
        base_digest={name: base.digest for name, base in lock.bases.items() if base.digest},
    )
