"""`ortimg fit`: which cells run on a host, which not and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ortimg.core.catalogue import Index
from ortimg.core.drivers import Driver, Drivers, Runs, is_driver, looks_like_cuda
from ortimg.core.fit import Answer, may_fit
from ortimg.core.fit import fit as fit_cells
from ortimg.core.fit_cells import Wish, every_cell, wished
from ortimg.core.fit_rules import Host
from ortimg.core.gpu_names import GpuNames
from ortimg.core.problems import quote
from ortimg.core.rules import Rules
from ortimg.core.selectors import select
from ortimg.core.versions import is_version
from ortimg.data import read_host_facts
from ortimg.errors import ConfigError, ExitCode
from ortimg.helping import Guide, Verb
from ortimg.project import CONFIG_NAME, Project, load_project, own_catalogue

SCHEMA = 1  # version of the JSON; more keys may come, none goes
_ALL = "--all knows the flavour runtime alone; other flavours are asked about as cells of images.yaml."
REPOSITORY = "onnxruntime-gpu"  # with --all, outside a project


@click.command(
    cls=Verb,
    guide=Guide(
        examples=(
            ("ortimg fit --here", "which cells run on this machine"),
            ('ortimg fit --driver 535.104.05 --gpu "Tesla T4"', "the same for a host that is told"),
            (
                "ortimg fit --all --cuda 11 --gpu 9.0",
                "all releases for CUDA 11 that are known, on a Hopper GPU",
            ),
        ),
        done="at least one cell fits, as far as was told",
        failed="none does",
        environment="--here finds no NVIDIA driver",
        more=("docs/guide/which-version.md",),
    ),
)
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.option("--driver", metavar="VERSION", help="NVIDIA driver of the host, such as 535.104.05.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="GPU",
    help='Name ("Tesla T4") or compute capability (8.9, sm_90). Repeatable.',
)
@click.option(
    "--glibc",
    metavar="VERSION",
    help="glibc of a host on which the libraries are to be unpacked, such as 2.36.",
)
@click.option(
    "--here", is_flag=True, help="Read driver, GPUs and glibc of this machine, instead of the three above."
)
@click.option("--ort", metavar="VERSION", help="Only cells of this ONNX Runtime, such as 1.16.2.")
@click.option("--cuda", metavar="VERSION", help="Only cells of this CUDA version or major: 12.2, 12.")
@click.option("--cudnn", metavar="MAJOR", help="Only cells of this cuDNN: 8, 9 or none.")
@click.option("--base", metavar="NAME", help="Only cells on this base, such as debian12.")
@click.option(
    "--all",
    "whole",
    is_flag=True,
    help="Ask about the whole catalogue, flavour runtime, not only images.yaml.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def fit(
    context: click.Context,
    selectors: tuple[str, ...],
    driver: str | None,
    gpus: tuple[str, ...],
    glibc: str | None,
    here: bool,
    ort: str | None,
    cuda: str | None,
    cudnn: str | None,
    base: str | None,
    whole: bool,
    as_json: bool,
) -> None:
    """Tell which cells run on a host with this driver and GPU, best first.

    native: every library has machine code for the GPU. jit: the driver must compile kernels at the first
    start. unknown: a fact is missing. refused: it cannot run, with the reason and the nearest cell that does.

    A container brings its own glibc: --glibc asks about unpacking the libraries on the host itself.
    """
    wish = Wish(ort=ort, cuda=cuda, cudnn=cudnn, base=base)
    told = {"--driver": driver is not None, "--gpu": bool(gpus), "--glibc": glibc is not None}
    _check_question(told, here, wish)
    facts = read_host_facts()
    host = _host(GpuNames(facts), driver, gpus, glibc, here)
    if whole:
        index = Index(own_catalogue(context.find_object(Path) or Path()))
        repository = REPOSITORY
        rules = Rules(index)
        among = every_cell(index, rules, wish.cudnn)
        cells = select(among, selectors, hint=_ALL)
    else:
        project = _project(context.find_object(Path) or Path())
        index, repository = Index(project.catalogue), project.plan.repository
        rules = Rules(index)
        among = project.plan.cells
        cells = select(among, selectors, (), project.plan.excluded)
    drivers = Drivers(facts.drivers)
    try:
        cells = wished(cells, wish, index=index, rules=rules, facts=facts, whole=whole)
    except ConfigError as error:
        raise ConfigError(
            error.message, hint=error.hint or _about_driver(wish, host.driver, drivers)
        ) from None
    answers = fit_cells(cells, host, drivers, among)
    if as_json:
        click.echo(json.dumps(as_data(answers, host, repository)))
    else:
        click.echo(as_text(answers, host, repository), nl=False)
    context.exit(ExitCode.DONE if may_fit(answers, host) else ExitCode.FAILED)


def _check_question(told: dict[str, bool], here: bool, wish: Wish) -> None:
    given = [option for option, there in told.items() if there]
    if here and given:
        raise ConfigError(f"--here reads the host itself and contradicts {', '.join(given)}; leave one out")
    if not here and not given and not str(wish):
        raise ConfigError(
            "nothing to fit to is told", hint='Say --here, or such as --driver 535.104.05 --gpu "Tesla T4".'
        )


def _host(names: GpuNames, driver: str | None, gpus: tuple[str, ...], glibc: str | None, here: bool) -> Host:
    if here:
        from ortimg.host import read_host

        return read_host(names)
    problems: list[str] = []
    hint = None
    if driver is not None and not is_driver(driver):
        problems.append(_no_driver(driver))
    if glibc is not None and not is_version(glibc):
        problems.append(f"--glibc {quote(glibc)} is no version such as 2.36 (`ldd --version` tells it)")
    found = []
    for text in gpus:
        try:
            found.append(names.find(text))
        except ConfigError as error:
            problems.append(f"--gpu: {error.message}")
            hint = error.hint or hint
    if problems:
        raise ConfigError(*problems, hint=hint)
    return Host(driver=Driver(driver), gpus=tuple(found), glibc=glibc, unpacked=glibc is not None)


def _about_driver(wish: Wish, driver: Driver, drivers: Drivers) -> str | None:
    """What the driver is to the CUDA that was asked for, though no cell has it."""
    if not wish.cuda or "." not in wish.cuda or not driver.told:
        return None
    lowest = drivers.lowest(wish.cuda)
    words = {
        Runs.FULLY: f"CUDA {wish.cuda} itself runs on {driver}.",
        Runs.BY_MINOR_VERSION: f"CUDA {wish.cuda} itself runs on {driver} by minor-version compatibility.",
        Runs.NOT: f"CUDA {wish.cuda} itself needs driver {lowest} or newer, the host has {driver.version}.",
    }
    return words.get(drivers.runs(driver, wish.cuda))


def _no_driver(text: str) -> str:
    wrong = "looks like a CUDA version; a driver is" if looks_like_cuda(text) else "is no driver version"
    return f'--driver {quote(text)} {wrong} such as 535.104.05 ("Driver Version" of nvidia-smi)'


def _project(folder: Path) -> Project:
    if not (folder / CONFIG_NAME).exists():
        hint = "Add --all to ask about every cell of the catalogue, or name a folder with --project."
        raise ConfigError(f"there is no {CONFIG_NAME} in {folder.resolve()}", hint=hint)
    return load_project(folder)


def as_data(answers: Sequence[Answer], host: Host, repository: str) -> dict[str, object]:
    """What `--json` prints."""
    best = _best(answers)
    return {
        "schema": SCHEMA,
        "host": {
            "driver": host.driver.version,
            "cuda": host.driver.cuda,
            "gpus": [{"name": gpu.name, "compute_capability": str(gpu.capability)} for gpu in host.gpus],
            "glibc": host.glibc,
            "unpacked": host.unpacked,
        },
        "cells": [
            {
                "identifier": answer.cell.identifier,
                "verdict": answer.verdict.value,
                "reasons": [*answer.reasons],
                "nearest": answer.nearest,
            }
            for answer in answers
        ],
        "run": _run_line(best, repository) if best and not host.unpacked else None,
    }


def as_text(answers: Sequence[Answer], host: Host, repository: str) -> str:
    """A table; cells that differ in their base only share a row, rows with the same reasons are told once."""
    text = f"{_title(host)}\n\n"
    grouped: dict[tuple[str, tuple[str, ...]], list[Answer]] = {}
    for answer in answers:
        grouped.setdefault((answer.verdict.value, answer.reasons), []).append(answer)
    for (verdict, reasons), rows in grouped.items():
        for line in _cells(rows):
            text += f"{verdict:8} {line}\n"
        text += "".join(f"           {reason}\n" for reason in reasons)
    if (best := _best(answers)) and not host.unpacked:
        text += f"\n{_run_line(best, repository)}\n"
    return text


def _title(host: Host) -> str:
    parts = [str(host.driver)] if host.driver.told else []
    parts += [str(gpu) for gpu in host.gpus]
    if host.glibc:
        parts.append(f"glibc {host.glibc}{' (unpacked on the host itself)' if host.unpacked else ''}")
    return f"Host: {', '.join(parts) or 'nothing told'}"


def _cells(rows: Sequence[Answer]) -> list[str]:
    """`1.16.2-cuda11.8-cudnn8-{debian12,debian13}`, with the nearest cell where they are refused."""
    bases: dict[tuple[str, str | None], list[str]] = {}
    for answer in rows:
        stem, nearest = _stem(answer)
        bases.setdefault((stem, nearest), []).append(answer.cell.identifier.removeprefix(stem))
    lines = []
    for (stem, nearest), ends in bases.items():
        name = f"{stem}{ends[0]}" if len(ends) == 1 else f"{stem}{{{','.join(ends)}}}"
        lines.append(name + (f"  (nearest: {nearest})" if nearest else ""))
    return lines


def _stem(answer: Answer) -> tuple[str, str | None]:
    """What the identifiers of all bases share, of the cell and of the nearest one on the same base."""
    identifier, nearest = answer.cell.identifier, answer.nearest
    at = identifier.index(f"-{answer.cell.base.name}") + 1
    end = identifier[at - 1 :]
    if nearest is not None and nearest.endswith(end):
        nearest = f"{nearest.removesuffix(end)}-…"
    return identifier[:at], nearest


def _best(answers: Sequence[Answer]) -> Answer | None:
    return next((answer for answer in answers if answer.fits), None)


def _run_line(best: Answer, repository: str) -> str:
    return f"docker run --rm --gpus all {repository}:{best.cell.identifier}"
