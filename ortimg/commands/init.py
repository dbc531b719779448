"""`ortimg init`: start a repository of images, or add what one lacks."""

from __future__ import annotations

from pathlib import Path

import click

from ortimg.ci.pipeline import System
from ortimg.helping import Guide, Verb
from ortimg.starter import add_missing, starter_files, template_files


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg init my-images", "a new repository in the folder my-images, with a pipeline for GitHub"),
            ("ortimg init --ci gitlab", "the same in this folder, with a pipeline for GitLab"),
            (
                "ortimg init --ci none --templates",
                "no pipeline, and the templates of the Dockerfiles to change",
            ),
        ),
        done="all files are there",
        environment="the folder cannot be written",
        more=("docs/images-yaml.md", "docs/ci.md"),
    ),
)
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(path_type=Path))
@click.option(
    "--ci",
    type=click.Choice([*(system.value for system in System), "none"]),
    default=System.GITHUB.value,
    show_default=True,
    help="Which CI system gets a pipeline; none writes none.",
)
@click.option("--templates", is_flag=True, help="Also copy the templates of the Dockerfiles, to be changed.")
@click.pass_context
def init(context: click.Context, directory: Path, ci: str, templates: bool) -> None:
    """Start a repository of images in DIR: images.yaml, Makefile, README.md, .gitignore, a CI pipeline.

    DIR is the current folder if left out. A file that is there already is left as it is, and named.
    """
    folder = (context.find_object(Path) or Path()) / directory
    files = starter_files() | (template_files() if templates else {})
    added = add_missing(folder, files)
    if ci != "none" and (pipeline := _pipeline(folder, System(ci))):
        files |= pipeline
        added |= add_missing(folder, pipeline)
    for path in files:
        click.echo(f"{'wrote' if path in added else 'left alone'}: {folder / path}")
    if "images.yaml" in added:
        place = "" if folder.resolve() == Path.cwd() else f"cd {folder}, "
        click.echo(f"Next: {place}change images.yaml, see `ortimg list`, then `make images`.")


def _pipeline(folder: Path, system: System) -> dict[str, str]:
    """The pipeline for the images.yaml that is there; none where that one cannot be planned yet."""
    from ortimg.ci.pipeline import Wish, pipeline
    from ortimg.errors import ConfigError
    from ortimg.project import load_project

    try:
        plan = load_project(folder).plan
        return {system.path: pipeline(Wish(system=system), plan.repository, plan.cells)}
    except ConfigError as error:
        click.echo(f"no pipeline: {error}", err=True)
        return {}
