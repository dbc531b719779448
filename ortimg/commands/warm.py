"""`ortimg warm`: bake what a GPU's driver compiles into an image, for a quick first start."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ortimg.errors import ConfigError, ExitCode
from ortimg.helping import Guide, Verb


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg warm onnxruntime-gpu:1.16.2-cuda11.8-cudnn8-debian12", "where the engine has a GPU"),
            ("ortimg warm root/ --out warm-h200", "where there is a GPU and no engine"),
            (
                "ortimg warm onnxruntime-gpu:1.16.2-cuda11.8-cudnn8-debian12 --from warm-h200",
                "where the engine is",
            ),
        ),
        done="warmed; --check: the cache is of use here",
        failed="a start failed, or the record does not allow the image; --check: the cache is of no use here",
        environment="no GPU, no engine, no room",
        more=("docs/warm.md", "docs/guide/warm-up.md"),
    ),
)
@click.argument("target", required=False, metavar="[IMAGE|ROOT_DIR]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A new folder for the record and the cache. [default, of an image: below warm/ in ortimg's cache]",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Make the image from such a folder, made on a machine with a GPU.",
)
@click.option(
    "--seed/--no-seed",
    default=None,
    help="With or without an entrypoint that copies the cache to where the program can write to it. "
    "[default: with it, unless the record shows that this driver uses a cache that it cannot write to]",
)
@click.option(
    "--tag",
    metavar="NAME:TAG",
    help="Name of the warmed image. [default: IMAGE-warm-sm90-DRIVER, for compute 9.0]",
)
@click.option(
    "--max-size",
    metavar="SIZE",
    help="CUDA_CACHE_MAXSIZE of the image: 2G, 512M, or bytes. [default: 1G or 4 times the cache]",
)
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", help="Also warm your ONNX model.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1x3x8x8",
    help="Shape of one of its inputs; open sizes are 1 if left out. Repeatable.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the CUDA provider. Repeatable.",
)
@click.option(
    "--allow-cpu",
    multiple=True,
    metavar="OP",
    help="An operator that may run on the CPU. Repeatable. [default: none]",
)
@click.option(
    "--starts",
    type=click.IntRange(1, 99),
    default=3,
    show_default=True,
    metavar="N",
    help="Timed starts of each kind.",
)
@click.option(
    "--cold-starts",
    type=click.IntRange(1, 99),
    default=1,
    show_default=True,
    metavar="N",
    help="Starts that compile all.",
)
@click.option(
    "--timeout",
    type=click.IntRange(1, 86400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Limit of one start.",
)
@click.option("--force", is_flag=True, help="Go on where the GPU has native kernels and gains nothing.")
@click.option("--check", is_flag=True, help="Tell whether the cache in a warmed IMAGE fits this host.")
@click.option("--script", is_flag=True, help="Print warm.sh, for a machine without Docker and Python.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def warm(
    context: click.Context,
    target: str | None,
    out: Path | None,
    source: Path | None,
    seed: bool | None,
    tag: str | None,
    max_size: str | None,
    model: Path | None,
    shapes: tuple[str, ...],
    options: tuple[str, ...],
    allow_cpu: tuple[str, ...],
    starts: int,
    cold_starts: int,
    timeout: int,
    force: bool,
    check: bool,
    script: bool,
    as_json: bool,
) -> None:
    """Add to IMAGE what its kernels are compiled to on this machine's GPU, as one more layer and another tag.

    ROOT_DIR: the same for an unpacked root, on a machine without an engine; the folder of --out is then given
    to `ortimg warm IMAGE --from DIR` where the engine is. Without a GPU newer than the kernels there is
    nothing to gain, and nothing is done.

    The cache is of use with the same driver, compute capability and build of ONNX Runtime only. Not every
    driver uses a cache that it cannot write to: the record tells, and where it must the image gets an
    entrypoint that copies the cache first.
    """
    from ortimg.core.warm_words import as_data, as_text
    from ortimg.verify.wish import RunWish
    from ortimg.warming.measure import Course
    from ortimg.warming.warmup import ImageWish, from_record, of_image, of_root

    if script:
        from ortimg.warming.folder import SCRIPT

        click.echo(SCRIPT.read_text("utf-8"), nl=False)
        return
    if not target:
        raise ConfigError("no TARGET", hint="Name an image, or a folder with an unpacked root.")
    if check:
        context.exit(_check(target, as_json))
    of_model = bool(model or shapes or options or allow_cpu)
    wish = RunWish(model=model, shapes=shapes, options=options, allow_cpu=allow_cpu)
    course = Course(wish, starts, cold_starts, timeout, force)
    image = ImageWish(tag=tag, max_size=max_size, seed=seed)
    if Path(target).is_dir():
        if source or image != ImageWish():
            raise ConfigError(
                "--from, --[no-]seed, --tag and --max-size are for images",
                hint="Warm the root with --out DIR, then run `ortimg warm IMAGE --from DIR`.",
            )
        if out is None:
            raise ConfigError("--out is missing", hint="Name a new folder for the record and the cache.")
        outcome = of_root(Path(target), out, course)
    elif target.startswith(("/", "./", "../")):
        raise ConfigError(f"there is no folder {target}", hint="Name an image, or an unpacked root.")
    elif source is None:
        outcome = of_image(target, out, course, image)
    elif of_model:
        raise ConfigError("--from runs no model", hint="Leave --model, --shape, --option, --allow-cpu out.")
    else:
        outcome = from_record(target, source, out, image)
    click.echo(json.dumps(as_data(outcome)) if as_json else as_text(outcome), nl=as_json)


def _check(reference: str, as_json: bool) -> ExitCode:
    from ortimg.core.warm_words import check_data, check_text
    from ortimg.warming.warmup import check

    findings = check(reference)
    text = json.dumps(check_data(reference, findings)) if as_json else check_text(reference, findings)
    click.echo(text, nl=as_json)
    fits = all(finding.verdict == "ok" for finding in findings)
    return ExitCode.DONE if fits else ExitCode.FAILED
