"""`ortimg verify`: check images and unpacked roots, whoever built them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ortimg.core.gpu_access import Device
from ortimg.core.model import Tier
from ortimg.errors import ConfigError, EnvironmentFault, ExitCode
from ortimg.helping import Guide, Verb
from ortimg.project import CONFIG_NAME, load_project
from ortimg.records.options import device_of, device_option, record_options
from ortimg.records.wish import RecordWish
from ortimg.verify.report import FindingVerdict, Report, Verdict, encode, unable
from ortimg.verify.wish import Provider, RunWish

if TYPE_CHECKING:
    from ortimg.verify.binary import Verifier

SCHEMA = 1  # of the JSON for several targets; more keys may come, none goes


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg verify onnxruntime-gpu:1.16.2-cuda11.8-cudnn8-debian12", "no GPU needed"),
            ("ortimg verify '1.16.2-*' --gpu --record", "on a GPU; the verdicts are kept in verdicts/"),
            (
                "ortimg verify root/ --tier run --model net.onnx --shape x=1x256",
                "your model, in an unpacked root",
            ),
        ),
        done="every target passes",
        failed="a target fails; what is at fault and the cure are shown",
        environment="this machine cannot tell: no engine, no GPU, no driver",
        more=("docs/gpu.md", "docs/guide/on-the-gpu.md"),
    ),
)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--tier",
    type=click.Choice([tier.value for tier in Tier]),
    default=Tier.LOAD.value,
    show_default=True,
    help="How far: static (files and links), load (up to 'no device', no GPU needed), run (on a GPU).",
)
@click.option("--gpu", is_flag=True, help="The same as --tier run: the GPU is handed in.")
@device_option
@click.option(
    "--timeout",
    type=click.IntRange(1, 86400),
    metavar="SECONDS",
    help="Limit of one attempt. [default: 120; 600 in tier run]",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Tier run: your ONNX model. [default: a small network]",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1x3x8x8",
    help="Tier run: shape of an input; open sizes are 1 if left out. Repeatable.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Tier run: an option of the CUDA provider. Repeatable.",
)
@click.option(
    "--allow-cpu",
    multiple=True,
    metavar="OP",
    help="Tier run: an operator that may run on the CPU. Repeatable. [default: none]",
)
@click.option(
    "--warmup", type=click.IntRange(0), metavar="N", help="Tier run: runs before the timed ones. [default: 5]"
)
@click.option("--runs", type=click.IntRange(1), metavar="N", help="Tier run: timed runs. [default: 20]")
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
    help="Tier run: hold the outputs against those that another run kept; limit 1e-3, relative.",
)
@record_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def verify(
    context: click.Context,
    targets: tuple[str, ...],
    tier: str,
    gpu: bool,
    gpu_device: str | None,
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
    record: RecordWish,
    as_json: bool,
) -> None:
    """Tell whether ONNX Runtime in TARGET brings up its CUDA provider, and if not, which library is at fault.

    TARGET is an image reference, a folder with an unpacked root file system, or a selector of cells of
    images.yaml ('1.16.2-*'). Tier run runs a model on the GPU, all of it, and compares with the CPU.
    """
    project = context.find_object(Path) or Path()
    wish = RunWish(
        model, shapes, options, allow_cpu, warmup, runs, Provider(provider), save_outputs, reference
    )
    given = context.get_parameter_source("tier") is not ParameterSource.DEFAULT
    asked = _tier(tier if given or not gpu else Tier.RUN.value, gpu, wish, gpu_device)
    found = _resolve(project, targets)
    record.check(len(found), sum(Path(target).is_dir() for target in found), asked, wish)
    if save_outputs is not None and len(found) > 1:
        raise ConfigError(
            "--save-outputs with several targets", hint="Give each a run and a folder of its own."
        )
    if record.bring is not None:
        _bring(project, found[0], record, as_json)
        return
    task = _Task(project, asked, timeout, wish, device_of(gpu_device), record)
    reports = [task.verify(found[0])] if len(found) == 1 else [task.say_why_not(one) for one in found]
    if as_json:
        click.echo(_as_json(reports))
    else:
        for report in reports:
            click.echo(_words(report), nl=False)
    context.exit(_exit_code(reports))


def _tier(tier: str, gpu: bool, wish: RunWish, device: str | None) -> Tier:
    asked = Tier(tier)
    if gpu and (asked is not Tier.RUN or wish.provider is not Provider.CUDA):
        raise ConfigError("--gpu means tier run on the GPU", hint="Leave out --tier and --provider.")
    if device is not None and (asked is not Tier.RUN or wish.provider is not Provider.CUDA):
        raise ConfigError("--gpu-device chooses the GPU of tier run", hint="Add --gpu.")
    return asked


@dataclass(frozen=True)
class _Task:
    """What to do with each target."""

    project: Path
    tier: Tier
    seconds: int | None
    wish: RunWish
    device: Device
    record: RecordWish

    def verify(self, target: str) -> Report:
        from ortimg.inputs.cache import Cache
        from ortimg.verify.binary import get_verifier
        from ortimg.verify.root import verify_root

        verifier = get_verifier(Cache.default().root)
        if not Path(target).is_dir():
            return self._image(target, verifier)
        report = verify_root(Path(target), self.tier, verifier, self.seconds, self.wish, self.device)
        if self.record.wanted:
            from ortimg.records.recording import record_root

            record_root(self.project, Path(target), report, self.record)
        return report

    def _image(self, target: str, verifier: Verifier) -> Report:
        from ortimg.engine.client import Engine
        from ortimg.engine.gpus import refuse_podman
        from ortimg.verify.image import verify_image

        engine, image = Engine(), None
        if self.tier is Tier.RUN and self.wish.provider is Provider.CUDA:
            refuse_podman(target, self.device)
        if self.record.wanted:
            from ortimg.records.recording import record_image, recordable_digest, require_pushed

            image = engine.inspect(target)
            if image is not None:
                digest = recordable_digest(target, image)
                if self.record.push:
                    require_pushed(target, digest)
        report = verify_image(
            engine, target, self.tier, verifier, self.seconds, self.wish, self.device, image
        )
        if image is not None:
            record_image(engine, self.project, target, image, report, self.record)
        return report

    def say_why_not(self, target: str) -> Report:
        """One of several targets: that it cannot be looked at does not hide the others."""
        try:
            return self.verify(target)
        except EnvironmentFault as fault:
            return unable(target, self.tier, fault.message, fault.hint or "see `ortimg engine`")


def _bring(project: Path, target: str, wish: RecordWish, as_json: bool) -> None:
    from ortimg.engine.client import Engine
    from ortimg.records.record import row
    from ortimg.records.recording import import_record

    record, path = import_record(Engine(), project, target, wish)
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "target": target, "file": str(path), "record": row(record)}))
    else:
        click.echo(f"{target}: {record.verdict.value} on {record.gpu_words}, {record.date}, kept in {path}")


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
