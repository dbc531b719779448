"""`ortimg sbom`: what images are made of, as SPDX or CycloneDX."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault
from ortimg.helping import Guide, Verb
from ortimg.project import Project, pass_project


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg sbom 1.16.2-cuda11.8-cudnn8-debian12 > image.spdx.json", "one image, to stdout"),
            ("ortimg sbom --format cyclonedx-json -o boms/", "every image that is built, a file each"),
        ),
        done="written",
        failed="the engine has none of these images",
        environment="no engine, or the folder cannot be written",
        more=("docs/supply-chain.md", "docs/guide/security.md"),
    ),
)
@click.argument("names", nargs=-1, metavar="[SELECTOR|IMAGE]...")
@click.option(
    "--format",
    "formats",
    type=click.Choice(["spdx-json", "cyclonedx-json"]),
    multiple=True,
    default=["spdx-json"],
    show_default=True,
    help="Format of the document. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a file for each image there. [default: one document, to stdout]",
)
@pass_project
def sbom(project: Project, names: tuple[str, ...], formats: tuple[str, ...], output: Path | None) -> None:
    """Tell what the images of SELECTOR, or an IMAGE of the engine, are made of.

    ONNX Runtime, CUDA and cuDNN stand there with their versions, licences, hashes and origins, beside the
    distribution's packages. SELECTOR is a glob over identifiers and tags; without one, all cells are meant.
    The formats need ortimg's extra `sbom`: in a clone `pip install '.[sbom]'`.
    """
    from ortimg.engine.client import Engine
    from ortimg.generated import write_atomically
    from ortimg.inputs.cache import Cache
    from ortimg.inputs.lockfile import read_lock
    from ortimg.sbom.choice import choose
    from ortimg.sbom.documents import Format, make_bom, writer

    writers = {Format(name): writer(Format(name)) for name in dict.fromkeys(formats)}
    engine = Engine()
    chosen, absent = choose(project, names, engine)
    if not chosen:
        raise CheckFailed("the engine has none of these images", "Run `ortimg build` first.")
    if output is None and len(chosen) * len(writers) > 1:
        raise ConfigError(
            f"{len(chosen) * len(writers)} documents do not go to stdout together",
            hint="Name a folder with -o, or one image and one format.",
        )
    for name in absent:
        click.echo(f"left out: {name} is not built", err=True)
    if output is not None:
        with _told(output):  # before gigabytes are read
            output.mkdir(parents=True, exist_ok=True)
    lock, cache = read_lock(project.root), Cache.default()
    for row in chosen:
        bom = make_bom(engine, row.image, row.reference, row.cell, lock, cache)
        for note in bom.notes:
            click.echo(f"{row.cell.identifier}: {note}", err=True)
        for wanted, write in writers.items():
            if output is None:
                click.echo(write(bom), nl=False)
                continue
            path = output / f"{row.cell.identifier}{wanted.suffix}"
            with _told(output):
                write_atomically(path, write(bom))
            click.echo(str(path))


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """A folder that cannot be written is the machine's fault, and no traceback."""
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"{place} cannot be written: {error.strerror}", "name another place, or make room"
        ) from error
