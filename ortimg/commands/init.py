"""`ortimg init`: start a repository of images, or add what one lacks."""

from __future__ import annotations

from pathlib import Path

import click

from ortimg.starter import add_missing, starter_files, template_files


@click.command()
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--templates", is_flag=True, help="Copy the templates of the Dockerfiles too, to be changed.")
@click.pass_context
def init(context: click.Context, directory: Path, templates: bool) -> None:
    """Start a repository of images in DIR: images.yaml, Makefile, README.md, .gitignore.

    A file that is there already is left as it is, and named.
    """
    folder = (context.find_object(Path) or Path()) / directory
    files = starter_files() | (template_files() if templates else {})
    added = add_missing(folder, files)
    for path in files:
        click.echo(f"{'wrote' if path in added else 'left alone'}: {folder / path}")
    if "images.yaml" in added:
        place = "" if folder.resolve() == Path.cwd() else f"cd {folder}, "
        click.echo(f"Next: {place}change images.yaml, see `ortimg list`, then `make images`.")
