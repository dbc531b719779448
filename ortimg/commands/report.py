"""`ortimg report`: one page to look at."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from ortimg.core.problems import quote
from ortimg.core.selectors import select
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.helping import Guide, Verb
from ortimg.project import Project, pass_project

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg report", "writes report.html"),
            ("ortimg report '1.16.2-*' --no-engine -o - > page.html", "some cells, without asking an engine"),
            (
                "ortimg report --bench bench.json --registry-prefix registry.example.com/team",
                "with more on it",
            ),
        ),
        done="written",
        environment="the page cannot be written",
        more=("docs/report.md",),
        variables={"SOURCE_DATE_EPOCH": "Seconds since 1970 to which ages are counted, instead of now."},
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option("--skip", multiple=True, metavar="SELECTOR", help="Leave these cells out. Repeatable.")
@click.option(
    "-o", "--output", default="report.html", show_default=True, metavar="FILE", help="The page; - is stdout."
)
@click.option(
    "--bench",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="Also show what `ortimg bench --json` or `verify --tier run --json` printed. Repeatable.",
)
@click.option(
    "--build",
    "builds",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="Sizes from `ortimg build --json`. Repeatable.",
)
@click.option(
    "--registry-prefix", metavar="HOST[/PATH]", help="Where the images were pushed to, for pull commands."
)
@click.option("--no-engine", is_flag=True, help="Do not ask the engine for sizes and layers.")
@pass_project
def report(
    project: Project,
    selectors: tuple[str, ...],
    skip: tuple[str, ...],
    output: str,
    bench: tuple[Path, ...],
    builds: tuple[Path, ...],
    registry_prefix: str | None,
    no_engine: bool,
) -> None:
    """Write one HTML page of the images: where they run, what they share, where their inputs came from.

    The page is one file that loads nothing. Measurements below bench/results and docs/gpu-runs are shown
    without being named. Ages are counted to SOURCE_DATE_EPOCH where that is set, else to now.
    """
    from ortimg.core.report import report_page
    from ortimg.reporting.gather import gather
    from ortimg.reporting.html import as_html

    cells = select(project.plan.cells, selectors, skip, project.plan.excluded)
    facts = gather(
        project,
        cells,
        now=_now(),
        prefix=registry_prefix,
        bench=bench,
        builds=builds,
        ask_engine=not no_engine,
    )
    for note in facts.notes:
        click.echo(note, err=True)
    if facts.engine is not None and not no_engine:
        click.echo(f"sizes are left out: {facts.engine}", err=True)
    text = as_html(report_page(facts))
    if output == "-":
        click.echo(text, nl=False)
        return
    _write(Path(output), text)
    click.echo(f"{output}: {len(facts.cells)} images, {len(facts.images)} of them in this engine", err=True)


def _now() -> datetime:
    """https://reproducible-builds.org/specs/source-date-epoch/"""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            f"SOURCE_DATE_EPOCH is {quote(epoch)}", hint="It is whole seconds since 1970; or unset it."
        ) from None


def _write(path: Path, text: str) -> None:
    from ortimg.generated import write_atomically

    if path.is_dir():
        raise ConfigError(f"{path} is a folder", hint="Give -o the name of a file.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="Make it, or give -o another place.")
    if path.is_file() and not _is_page(path):
        raise ConfigError(
            f"{path} is there and is no page, so it stays", hint="Give -o another name, or remove the file."
        )
    try:
        write_atomically(path, text)
    except OSError as error:
        raise EnvironmentFault(
            f"{path} cannot be written: {error.strerror}", "name another place, or make room"
        ) from error


def _is_page(path: Path) -> bool:
    """Whether a page was written there, or nothing yet."""
    with path.open("rb") as stream:
        start = stream.read(64).lstrip().lower()
    return not start or start.startswith(b"<!doctype html")
