"""`ortimg verify`: check images and unpacked roots, whoever built them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click

from ortimg.core.model import Tier
from ortimg.errors import ConfigError, EnvironmentFault, ExitCode
from ortimg.project import CONFIG_NAME, load_project
from ortimg.verify.report import FindingVerdict, Report, Verdict, encode, unable
from ortimg.verify.wish import Provider, RunWish

SCHEMA = 1  # of the JSON for several targets; more keys may come, none goes


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--tier",
    type=click.Choice([tier.value for tier in Tier]),
    default=Tier.LOAD.value,
    show_default=True,
    help="How far: static (files and links), load (up to 'no device', no GPU needed), run (on a GPU).",
)
@click.option(
    "--timeout",
    type=click.IntRange(1, 86400),
    metavar="SECONDS",
    help="Limit of one attempt. [default: 120, in tier run 600]",
)
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", help="Tier run: your ONNX model.")
@click.option("--shape", "shapes", multiple=True, metavar="NAME=1x3x8x8", help="Tier run: shape of an input.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Tier run: an option of the CUDA provider.",
)
@click.option(
    "--allow-cpu", multiple=True, metavar="OP", help="Tier run: an operator that may run on the CPU."
)
@click.option("--warmup", type=click.IntRange(0), metavar="N", help="Tier run: runs before the timed ones.")
@click.option("--runs", type=click.IntRange(1), metavar="N", help="Tier run: timed runs.")
@click.option(
    "--provider",
    type=click.Choice([provider.value for provider in Provider]),
    default=Provider.CUDA.value,
    show_default=True,
    help="Tier run: cpu runs the model where there is no GPU, and proves nothing about CUDA.",
)
@click.option(
    "--save-outputs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Tier run: keep inputs and outputs as .npy files.",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Tier run: hold the outputs against those that another run kept.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def verify(
    context: click.Context,
    targets: tuple[str, ...],
    tier: str,
    timeout: int | None,
    model: Path | None,
    shapes: tuple[str, ...],
    options: tuple[str, ...],
    allow_cpu: tuple[str, ...],
    warmup: int | None,
    runs: int | None,
    provider: str,
    save_outputs: Path | None,
    reference: Path | None,
    as_json: bool,
) -> None:
    """Tell whether ONNX Runtime in TARGET brings up its CUDA provider, and if not, which library is at fault.

    TARGET is an image reference, a folder with an unpacked root file system, or a selector of cells of
    images.yaml ('1.16.2-*'). Tier run runs a model on the GPU, all of it, and compares with the CPU.
    Exit code 1 if a target fails, 3 if this machine cannot tell.
    """
    wish = RunWish(
        model, shapes, options, allow_cpu, warmup, runs, Provider(provider), save_outputs, reference
    )
    found = _resolve(context.find_object(Path) or Path(), targets)
    if save_outputs is not None and len(found) > 1:
        raise ConfigError(
            "--save-outputs with several targets", hint="Give each a run and a folder of its own."
        )
    if len(found) == 1:
        reports = [_verify(found[0], Tier(tier), timeout, wish)]
    else:
        reports = [_verify_or_say_why_not(target, Tier(tier), timeout, wish) for target in found]
    if as_json:
        click.echo(_as_json(reports))
    else:
        for report in reports:
            click.echo(_words(report), nl=False)
    context.exit(_exit_code(reports))


def _verify(target: str, tier: Tier, seconds: int | None, wish: RunWish) -> Report:
    from ortimg.engine.client import Engine
    from ortimg.inputs.cache import Cache
    from ortimg.verify.binary import get_verifier
    from ortimg.verify.image import verify_image
    from ortimg.verify.root import verify_root

    verifier = get_verifier(Cache.default().root)
    if Path(target).is_dir():
        return verify_root(Path(target), tier, verifier, seconds, wish)
    return verify_image(Engine(), target, tier, verifier, seconds, wish)


def _verify_or_say_why_not(target: str, tier: Tier, seconds: int | None, wish: RunWish) -> Report:
    """One of several targets: that it cannot be looked at does not hide the others."""
    try:
        return _verify(target, tier, seconds, wish)
    except EnvironmentFault as fault:
        return unable(target, tier, fault.message, fault.hint or "see `ortimg engine`")


def _resolve(project: Path, targets: Iterable[str]) -> list[str]:
    """Selectors become the image references of their cells, the rest stays."""
    found: list[str] = []
    for target in targets:
        if not target:  # such as of a variable that is not set: it would mean this folder
            raise ConfigError("an empty TARGET", hint="Name an image, a folder or a selector.")
        if Path(target).is_dir():
            found.append(target)
        elif target.startswith(("/", "./", "../")):
            raise ConfigError(f"there is no folder {target}", hint="Name an image, a folder or a selector.")
        else:
            found += _cells(project, target) or [target]
    return list(dict.fromkeys(found))


def _cells(project: Path, selector: str) -> list[str]:
    from ortimg.core.selectors import select

    glob = any(letter in selector for letter in "*?[")
    if not (project / CONFIG_NAME).is_file():
        if glob:
            raise ConfigError(
                f"{selector} is a selector, but there is no {CONFIG_NAME} here",
                hint="Name an image, or another folder with --project.",
            )
        return []
    plan = load_project(project).plan
    if not glob and not any(selector in (cell.identifier, *cell.tags) for cell in plan.cells):
        return []
    return [
        f"{plan.repository}:{cell.identifier}" for cell in select(plan.cells, [selector], (), plan.excluded)
    ]


def _exit_code(reports: list[Report]) -> int:
    codes = {report.exit_code for report in reports}
    return next((code for code in (ExitCode.FAILED, ExitCode.ENVIRONMENT) if code in codes), ExitCode.DONE)


def _as_json(reports: list[Report]) -> str:
    if len(reports) == 1:
        return encode(reports[0])
    return json.dumps({"schema": SCHEMA, "reports": [json.loads(encode(report)) for report in reports]})


def _words(report: Report) -> str:
    """Findings that are not fine come last, with what to do."""
    rank = {
        FindingVerdict.OK: 0,
        FindingVerdict.SKIPPED: 1,
        FindingVerdict.WARNING: 2,
        FindingVerdict.FAIL: 3,
    }
    text = f"{report.target}\n"
    for finding in sorted(report.findings, key=lambda finding: rank[finding.verdict]):
        text += f"  {finding.verdict.value:8}{finding.check:22} {finding.evidence}\n"
        if finding.cure and finding.verdict is not FindingVerdict.OK:
            text += f"{'':33}cure: {finding.cure}\n"
    words = {
        Verdict.PASS: f"passes tier {report.tier.value}",
        Verdict.FAIL: f"FAILS tier {report.tier.value}",
        Verdict.ENVIRONMENT: f"this machine cannot tell tier {report.tier.value}",
    }
    return f"{text}  {words[report.verdict]}\n"
