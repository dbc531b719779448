"""A project on the disk → the text of all that is generated from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ortimg.core.front_page import tags_table, with_bases, with_tables
from ortimg.core.lock import Lock
from ortimg.core.model import Cell
from ortimg.core.render import DOCKERFILES, Pins, render
from ortimg.data import images_schema, read_host_facts
from ortimg.generated import SCHEMA_FILE, read_pipelines, read_readmes
from ortimg.inputs.lockfile import read_lock
from ortimg.project import Project
from ortimg.sources import own_templates, read_sources

TEMPLATES = "templates"


def render_project(project: Project, lock: Lock | None = None) -> dict[str, str]:
    """Path → text. A `templates/` folder beside images.yaml replaces partials by name.

    README.md, and its translations such as README.zh-CN.md, are among them if they have markers for tables:
    their own text, with those filled in. So are pipelines that `ortimg ci` made, with the options that they
    were made with.
    """
    sources = read_sources(project.root / TEMPLATES)
    plan = project.plan
    pins = pins_of(lock if lock is not None else read_lock(project.root), plan.cells)
    files = render(plan.repository, plan.cells, sources, pins, plan.mirrors.tools_image)
    files[SCHEMA_FILE] = json.dumps(images_schema(), indent=2) + "\n"
    if readmes := read_readmes(project.root):
        tables = _tables(plan.cells)
        files |= {name: with_tables(text, tables, name) for name, text in readmes.items()}
    return files | _pipelines(project)


def template_faults(project: Project) -> tuple[str, ...]:
    """Lines of a user's own templates that people came to regret."""
    from ortimg.core.template_lint import template_warnings  # most projects have no templates

    own = own_templates(project.root / TEMPLATES)
    return template_warnings(own) if own else ()


def _pipelines(project: Project) -> dict[str, str]:
    texts = read_pipelines(project.root)
    if not texts:
        return {}
    from ortimg.ci.pipeline import pipeline, wish_of  # many projects have none

    wishes = {path: wish_of(text) for path, text in texts.items()}
    return {
        path: pipeline(wish, project.plan.repository, project.plan.cells) if wish else texts[path]
        for path, wish in wishes.items()
    }


def _tables(cells: Sequence[Cell]) -> dict[str, str]:
    from ortimg.core.fit_table import fit_table  # only for a front page

    fit = with_bases(fit_table(cells, read_host_facts()), cells)
    return {"fit": fit, "tags": tags_table(cells)}


def build_context(files: Mapping[str, str]) -> dict[str, str]:
    """The part of the generated files that builds get as their context: its path there → text."""
    return {
        path.removeprefix(f"{DOCKERFILES}/"): text
        for path, text in files.items()
        if path.startswith(f"{DOCKERFILES}/") and not path.endswith("/Dockerfile")
    }


def pins_of(lock: Lock, cells: Sequence[Cell]) -> Pins:
    """What rendering takes from the lock: hashes of release archives, digests of bases.

    A digest that was resolved for another image, as before a mirror was set, pins nothing.
    """
    images = {cell.base.name: cell.base.image for cell in cells}
    return Pins(
        ort_sha256={key: row.upstream for key, row in lock.ort.items() if row.upstream},
        base_digest={
            name: base.digest
            for name, base in lock.bases.items()
            if base.digest and images.get(name) == base.image
        },
    )
