"""`ortimg ci`: a CI pipeline for the images of images.yaml."""

from __future__ import annotations

import click

from ortimg.ci.pipeline import MAX_DISK, System, Wish, pipeline
from ortimg.helping import Guide, Verb
from ortimg.project import Project, pass_project


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg ci github > .github/workflows/images.yml", "the pipeline for GitHub, in its place"),
            (
                "ortimg ci gitlab --registry-prefix registry.example.com --gpu-runner gpu > .gitlab-ci.yml",
                "the one for GitLab, which publishes, and runs on a GPU",
            ),
        ),
        done="printed",
        environment=None,
        more=("docs/ci.md",),
    ),
)
@click.argument("system", type=click.Choice([system.value for system in System]))
@click.option(
    "--max-disk",
    default=MAX_DISK,
    show_default=True,
    metavar="SIZE",
    help="Disk of a runner, such as 14GB or 13GiB: it decides the shards.",
)
@click.option(
    "--registry-prefix",
    metavar="HOST[/PATH]",
    help="Publish below this. [default: images.yaml's own registry; if it names none, nothing is published]",
)
@click.option(
    "--branch",
    metavar="NAME",
    help="Branch whose images are published. [default: main; in GitLab the project's default branch]",
)
@click.option("--runner", metavar="LABEL", help="Runners to use. [default: hosted ones]")
@click.option(
    "--gpu-runner", metavar="LABEL", help="Also run each image, on runners with a GPU that have this label."
)
@click.option("--install", metavar="COMMAND", help="How a runner gets ortimg. [default: from PyPI]")
@click.option(
    "--also",
    multiple=True,
    metavar="COMMAND",
    help="A further command of the check. Repeatable.",
)
@pass_project
def ci(
    project: Project,
    system: str,
    max_disk: str,
    registry_prefix: str | None,
    branch: str | None,
    runner: str | None,
    gpu_runner: str | None,
    install: str | None,
    also: tuple[str, ...],
) -> None:
    """Print a pipeline: check, build in shards, run on GPUs, publish, move alias tags last.

    Put it where SYSTEM looks for it; `ortimg render` keeps it up to date from then on.
    """
    wish = Wish(
        system=System(system),
        max_disk=max_disk,
        registry_prefix=registry_prefix,
        branch=branch,
        runner=runner,
        gpu_runner=gpu_runner,
        install=install,
        also=also,
    )
    text = pipeline(wish, project.plan.repository, project.plan.cells)
    click.echo(text, nl=False)
    if "--push" not in text:
        click.echo(
            f"note: repository {project.plan.repository} names no registry, so nothing is published"
            "; --registry-prefix names one",
            err=True,
        )
    click.echo(f"Its place is {wish.system.path}.", err=True)
