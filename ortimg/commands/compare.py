"""`ortimg compare`: what an upgrade, or a way back, asks of those who use ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ortimg.core.compare_model import Outcome
from ortimg.errors import ExitCode
from ortimg.helping import Guide, Verb

_FILE = click.Path(path_type=Path)


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg compare 1.16.2 1.18.0-cuda12", "two releases, from the catalogue"),
            ("ortimg compare 1.16.2 1.23.2 --driver 470.82.01 --gpu T4", "does it still run on these hosts?"),
            (
                "ortimg compare old-root/ new-root/ --program ./app --model net.onnx",
                "two unpacked roots, with your program and your model",
            ),
        ),
        done="NEW is a drop-in",
        failed="you must act; what to do is shown",
        environment="this machine cannot tell",
        more=("docs/upgrading.md", "docs/guide/upgrading.md"),
    ),
)
@click.argument("old")
@click.argument("new")
@click.option("--driver", metavar="VERSION", help="NVIDIA driver of your hosts, such as 535.104.05.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GPU",
    help='A GPU of your hosts: "Tesla T4", 8.9. Repeatable.',
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="A program of yours: must it be linked again? Repeatable.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="C or C++ of yours: does it still compile? Repeatable.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="An option of the CUDA provider that you set. Repeatable.",
)
@click.option(
    "--model",
    type=_FILE,
    metavar="FILE",
    help="Your ONNX model: known to both? In images and roots it is run.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1x3x8x8",
    help="Shape of one of its inputs; open sizes are 1 if left out. Repeatable.",
)
@click.option(
    "--allow-cpu",
    multiple=True,
    metavar="OP",
    help="An operator that may run on the CPU. Repeatable. [default: none]",
)
@click.option(
    "--provider",
    type=click.Choice(["cuda", "cpu"]),
    help="Where the model runs. [default: cuda where this machine has a GPU]",
)
@click.option("--runs", type=click.IntRange(1), metavar="N", help="Timed runs of the model. [default: 20]")
@click.option(
    "--timeout",
    type=click.IntRange(1, 86400),
    metavar="SECONDS",
    help="Limit of one attempt to run it. [default: 600]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def compare(
    context: click.Context,
    old: str,
    new: str,
    driver: str | None,
    gpus: tuple[str, ...],
    programs: tuple[Path, ...],
    sources: tuple[Path, ...],
    options: tuple[str, ...],
    model: Path | None,
    shapes: tuple[str, ...],
    allow_cpu: tuple[str, ...],
    provider: str | None,
    runs: int | None,
    timeout: int | None,
    as_json: bool,
) -> None:
    """Tell what changes from OLD to NEW, and what you must do about it.

    OLD and NEW are each a version (1.18.1, 1.18.0-cuda12) or a cell of images.yaml, compared from the
    catalogue, without network; or an image reference, or a folder with an unpacked root or release archive,
    compared from their files. What is not known is said to be unknown.
    """
    from ortimg.comparing.asking import Question, answer, facts
    from ortimg.comparing.targets import Targets
    from ortimg.core.compare import compare as compare_sides
    from ortimg.core.compare_report import as_data, as_text
    from ortimg.inputs.cache import Cache

    question = Question(
        driver, gpus, programs, sources, options, model, shapes, allow_cpu, provider, runs, timeout
    )
    tables = facts()
    question.check(tables)  # before gigabytes are read

    def say(text: str) -> None:
        click.echo(text, err=True)

    cache = Cache.default()
    first, second = Targets(context.find_object(Path) or Path(), cache, say).both(old, new)
    asked = answer(question, first, second, cache, say)
    found = compare_sides(first.side, second.side, asked, tables)
    click.echo(json.dumps(as_data(found)) if as_json else as_text(found), nl=as_json)
    context.exit(ExitCode.DONE if found.outcome is Outcome.DROP_IN else ExitCode.FAILED)
