"""`ortimg bench`: what a GPU gains for a model in an image or an unpacked root."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ortimg.errors import CheckFailed, ConfigError, ExitCode
from ortimg.helping import Guide, Verb
from ortimg.records.options import device_of
from ortimg.verify.report import FindingVerdict, Report, encode, parse_report
from ortimg.verify.wish import BenchWish, Provider, RunWish

_FILE = click.Path(path_type=Path)


def _numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    """`1,8,32`."""
    words = value.split(",") if value is not None else []
    if not all(word.isascii() and word.isdigit() and int(word) > 0 for word in words):
        text = f"{value!r}: write whole numbers with commas between, as 1,8,32"
        raise click.BadParameter(text, context, parameter)
    return tuple(int(word) for word in words)


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            (
                "ortimg bench onnxruntime-gpu:1.16.2-cuda11.8-cudnn8-debian12 --model net.onnx --batch 1,8",
                "two batch sizes, on the CPU and on CUDA",
            ),
            ("ortimg bench root/ --model net.onnx --shape x=1x256 --cpu-only", "where there is no GPU"),
            (
                "ortimg bench --from bench.json --plot bench.svg",
                "a measurement of another machine, as a picture",
            ),
        ),
        done="measured",
        failed="TARGET fails before or while it is measured",
        environment="CUDA could not be measured here",
        more=("docs/bench.md", "docs/guide/measuring.md"),
    ),
)
@click.argument("target", required=False)
@click.option("--model", type=_FILE, metavar="FILE", help="Your ONNX model. [default: a very small network]")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1x3x8x8",
    help="Shape of an input. Repeatable. Those of one input are measured one after the other.",
)
@click.option(
    "--batch", callback=_numbers, metavar="1,8,32", help="Sizes of an open first dimension. [default: 1]"
)
@click.option(
    "--concurrency",
    callback=_numbers,
    metavar="1,4",
    help="Threads that call the session at once. [default: 1]",
)
@click.option(
    "--warmup",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="Runs of each thread before the timed ones.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="Timed runs of each thread.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="Threads of the CPU provider for one operator. [default: one a core]",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the CUDA provider. Repeatable.",
)
@click.option(
    "--gpu-device", metavar="GPU", help="all, a number, or a UUID of `nvidia-smi -L`. [default: all]"
)
@click.option("--cpu-only", is_flag=True, help="Measure the CPU alone; no GPU is no fault then.")
@click.option(
    "--timeout",
    type=click.IntRange(1, 86400),
    metavar="SECONDS",
    help="Limit of each of the three sessions. [default: 3600]",
)
@click.option(
    "--from",
    "source",
    type=_FILE,
    metavar="FILE",
    help="Instead of TARGET: show a measurement of another machine, its JSON.",
)
@click.option(
    "--plot",
    type=_FILE,
    metavar="FILE",
    help="Also draw it, as .svg or .png; needs `pip install matplotlib`.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def bench(
    context: click.Context,
    target: str | None,
    model: Path | None,
    shapes: tuple[str, ...],
    batch: tuple[int, ...],
    concurrency: tuple[int, ...],
    warmup: int,
    runs: int,
    threads: int | None,
    options: tuple[str, ...],
    gpu_device: str | None,
    cpu_only: bool,
    timeout: int | None,
    source: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure a model in TARGET on the CPU and on CUDA: latency, throughput, copies, how idle the GPU is.

    TARGET is an image reference or a folder with an unpacked root.
    """
    from ortimg.benching.plot import check_plot, write_plot

    if (target is None) is (source is None):
        raise ConfigError("give a TARGET, or --from FILE", hint="`ortimg bench --help` shows both.")
    if plot is not None:
        check_plot(plot)
    if source is not None:
        report = _read(source)
    else:
        from ortimg.benching.measure import measure

        where = _target(str(target))
        device = device_of(gpu_device)
        wish = RunWish(
            model=model,
            shapes=shapes,
            options=options,
            warmup=warmup,
            runs=runs,
            provider=Provider.CPU if cpu_only else Provider.CUDA,
            bench=BenchWish(batch, concurrency, threads),
        )
        click.echo(f"measuring in {target}: {warmup} + {runs} runs of each kind", err=True)
        report = measure(where, wish, timeout, device)
    if plot is not None and report.bench:
        write_plot(report.bench, plot)
    click.echo(_as_json(report) if as_json else _words(report), nl=as_json)
    context.exit(ExitCode.DONE if cpu_only and report.bench and not report.failures else report.exit_code)


def _target(word: str) -> str:
    hint = "Name an image, or an unpacked root."
    if not word:  # such as of a variable that is not set: it would mean this folder
        raise ConfigError("an empty TARGET", hint=hint)
    if word.startswith(("/", "./", "../")) and not Path(word).is_dir():
        raise ConfigError(f"there is no folder {word}", hint=hint)
    return word


def _read(path: Path) -> Report:
    try:
        report = parse_report(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", hint="Give what `ort-verify --bench` printed."
        ) from None
    except CheckFailed as error:
        raise ConfigError(
            f"{path}: {error.message}", hint="Give what `ort-verify --bench` printed."
        ) from None
    if not report.bench:
        raise ConfigError(f"{path} holds no measurement", hint="Give what `ort-verify --bench` printed.")
    return report


def _as_json(report: Report) -> str:
    from ortimg.benching.judgement import judge

    told = json.loads(encode(report))
    if report.bench:
        import msgspec

        told["judgement"] = [msgspec.to_builtins(one) for one in judge(report.bench)]
    return json.dumps(told)


def _words(report: Report) -> str:
    from ortimg.benching.words import tell

    text = f"{report.target}\n"
    for finding in report.findings:
        if finding.verdict is FindingVerdict.FAIL:
            text += f"FAIL {finding.check}: {finding.evidence}\n     cure: {finding.cure}\n"
    return text + (tell(report.bench) if report.bench else _why_not(report))


def _why_not(report: Report) -> str:
    skipped = [one for one in report.findings if one.check.startswith("bench.")]
    return "".join(f"not measured: {one.evidence}\n     cure: {one.cure}\n" for one in skipped)
