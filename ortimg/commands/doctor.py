"""`ortimg doctor`: what is wrong with a host, a container, an image or a root, and what a log means."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ortimg.core.doctor.findings import DoctorReport
from ortimg.core.drivers import is_driver
from ortimg.core.problems import quote
from ortimg.doctor.diagnosing import Wish, diagnose
from ortimg.errors import ConfigError
from ortimg.helping import Guide, Verb
from ortimg.verify.report import FindingVerdict, Verdict


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg doctor", "this machine, or the container in which it runs"),
            ("ortimg doctor --log error.txt", "what an error text means"),
            ("ortimg doctor --run -- ./app --test", "runs a program, and tells how it ends"),
        ),
        done="no fault; there may be warnings",
        failed="something is wrong",
        environment="the machine is at fault: no driver, no GPU, an engine that hands out none",
        more=("docs/doctor.md", "docs/guide/faults.md"),
    ),
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[TARGET] | --run -- PROGRAM...")
@click.option("--log", metavar="FILE", help="A log or error text of ONNX Runtime; - is stdin.")
@click.option(
    "--profile",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A profile of ONNX Runtime: how many nodes ran on CUDA.",
)
@click.option(
    "--cuda-share",
    type=click.FloatRange(0, 100),
    default=100,
    show_default=True,
    metavar="PERCENT",
    help="With --profile: the least share of nodes on CUDA.",
)
@click.option(
    "--program",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A program or library of yours: does it load with the ONNX Runtime of TARGET?",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option that you give the CUDA provider. Repeatable.",
)
@click.option(
    "--maps",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A copy of /proc/PID/maps: which libraries a process had.",
)
@click.option(
    "--pid", type=click.IntRange(1), metavar="PID", help="Judge a running process instead of TARGET."
)
@click.option(
    "--driver",
    metavar="VERSION",
    help="The driver to judge by, such as 535.104.05. [default: this machine's]",
)
@click.option("--run", "run", is_flag=True, help="Run PROGRAM and tell how it ends.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 86400),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="With --run: the limit of the program.",
)
@click.option("--here", is_flag=True, help="Also judge this machine, where something else is asked about.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def doctor(
    context: click.Context,
    words: tuple[str, ...],
    log: str | None,
    profile: Path | None,
    cuda_share: float,
    program: Path | None,
    options: tuple[str, ...],
    maps: Path | None,
    pid: int | None,
    driver: str | None,
    run: bool,
    timeout: float,
    here: bool,
    as_json: bool,
) -> None:
    """Tell what keeps ONNX Runtime from using CUDA, each fault with its cure.

    TARGET is an image reference or a folder with an unpacked root file system; none is this machine, or the
    container in which this runs. With --log, --profile, --program, --option, --maps or --run only those are
    judged, unless a TARGET or --here is given.
    """
    target = None if run else _target(words, pid)
    if run and not words:
        raise ConfigError("--run needs a program", hint="Write: ortimg doctor --run -- PROGRAM ARGUMENT…")
    if driver is not None and not is_driver(driver):
        raise ConfigError(
            f"--driver {quote(driver)} is no driver version", hint="Write it as nvidia-smi does: 535.104.05."
        )
    wish = Wish(
        log=log,
        profile=profile,
        share=cuda_share / 100,
        program=program,
        options=options,
        maps=maps,
        pid=pid,
        driver=driver,
        run=words if run else (),
        seconds=timeout,
        here=here,
    )
    report = diagnose(target, wish)
    click.echo(msgspec.json.encode(report).decode() if as_json else _words(report))
    context.exit(report.exit_code)


def _target(words: tuple[str, ...], pid: int | None) -> str | None:
    if len(words) > 1:
        raise ConfigError(
            f"one TARGET at a time, not {' '.join(words)}",
            hint="To run a program: --run -- PROGRAM ARGUMENT…",
        )
    if words and pid is not None:
        raise ConfigError("--pid goes without TARGET", hint="Leave one of them out.")
    if words and not words[0]:  # such as of a variable that is not set
        raise ConfigError("an empty TARGET", hint="Name an image or a folder, or leave it out.")
    if words and words[0].startswith(("/", "./", "../", "~")) and not Path(words[0]).is_dir():
        what = "is no folder" if Path(words[0]).exists() else "is not there"
        raise ConfigError(f"{words[0]} {what}", hint="Name an unpacked root, or an image.")
    # `--profile *.json` leaves the second file here; an image is not asked for by the name of such a file.
    if words and Path(words[0]).suffix and Path(words[0]).is_file():
        raise ConfigError(
            f"{words[0]} is a file: TARGET is an image or a folder",
            hint="--profile, --log and their like take one file each: run `ortimg doctor` once for each.",
        )
    return words[0] if words else None


def _words(report: DoctorReport) -> str:
    """What is fine first and short; the worst last, where a terminal shows it, each with its cure."""
    lines = [report.target]
    for row in reversed(report.findings):
        lines.append(f"  {row.verdict.value:8}{row.check:24} {row.evidence}")
        if row.cure and row.verdict is not FindingVerdict.OK:
            lines.append(f"{'':35}cure: {row.cure}")
    faults = sum(row.verdict is FindingVerdict.FAIL for row in report.findings)
    lines.append(
        {
            Verdict.PASS: "  no fault found",
            Verdict.FAIL: f"  {faults} fault{'s' if faults != 1 else ''} found",
            Verdict.ENVIRONMENT: "  this machine is at fault or cannot tell, not ONNX Runtime or the image",
        }[report.verdict]
    )
    return "\n".join(lines)
