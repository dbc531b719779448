"""Two sides, compared: pure, from what was gathered about each (ortimg/comparing)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ortimg.core.compare_api import SourceResult, api_findings, source_findings
from ortimg.core.compare_gpu import gpu_findings
from ortimg.core.compare_libraries import library_findings
from ortimg.core.compare_links import link_findings
from ortimg.core.compare_model import Comparison, Finding, Program, Side, Source, skipped
from ortimg.core.compare_options import OptionRow, option_findings
from ortimg.core.compare_rest import model_findings, python_findings, system_findings, version_findings
from ortimg.core.compare_runs import Run, run_findings
from ortimg.core.drivers import Driver, Drivers
from ortimg.core.gpu import Capability
from ortimg.core.gpu_names import Gpu
from ortimg.core.onnx_support import OnnxRow, Stamp


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Tables that hold for every comparison."""

    drivers: Drivers
    capabilities: tuple[Capability, ...]  # those that GPUs for x86-64 have
    options: tuple[OptionRow, ...]
    onnx: tuple[OnnxRow, ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the user adds to the question; empty: not told."""

    driver: Driver = Driver(None)
    gpus: tuple[Gpu, ...] = ()
    programs: tuple[Program, ...] = ()
    sources: tuple[SourceResult, ...] = ()
    options: tuple[str, ...] = ()  # keys that the user's program sets
    model: str | None = None
    stamp: Stamp | None = None
    runs: tuple[Run, Run] | None = None  # OLD's and NEW's


def compare(old: Side, new: Side, asked: Asked, facts: Facts) -> Comparison:
    """Everything that differs between two sides, and what must be done about it."""
    return Comparison(old=old, new=new, findings=tuple(_findings(old, new, asked, facts)))


def _findings(old: Side, new: Side, asked: Asked, facts: Facts) -> Iterator[Finding]:
    yield from version_findings(old, new)
    yield from library_findings(old, new, asked.driver, facts.drivers)
    yield from gpu_findings(old, new, facts.capabilities, asked.gpus, facts.drivers)
    yield from link_findings(old, new, asked.programs)
    yield from api_findings(old, new)
    yield from source_findings(asked.sources)
    yield from option_findings(old, new, facts.options, asked.options)
    yield from python_findings(old, new)
    yield from system_findings(old, new)
    if asked.model is not None and asked.stamp is not None:
        yield from model_findings(old, new, asked.model, asked.stamp, facts.onnx)
    if asked.model is not None and asked.runs is not None:
        yield from run_findings(*asked.runs, asked.model)
    elif asked.model is not None and {old.source, new.source} != {Source.CATALOGUE}:
        yield skipped("model.run", "it takes images or whole roots on both sides to run the model on both")
