"""`build --gpu`: what was built runs on a GPU, and the verdict is kept; tiers of a build from verdicts.

The run takes place after the build, in a container. `RUN --device` would do it inside, and would want a
`# syntax` line in the Dockerfile and a layer that depends on the GPU: text and image stay as they are.
https://docs.docker.com/reference/dockerfile/#run---device
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from ortimg.core.gpu_access import Device, docker_options
from ortimg.core.model import Tier
from ortimg.engine.check import check_engine
from ortimg.engine.client import Engine
from ortimg.engine.gpus import devices_of, require_gpu
from ortimg.errors import ConfigError, EnvironmentFault, ExitCode
from ortimg.factory.disk import builder_name
from ortimg.factory.result import CellResult, Outcome, exit_code
from ortimg.factory.run import Report as BuildReport
from ortimg.factory.site import Wish
from ortimg.inputs.cache import Cache
from ortimg.records.options import device_of
from ortimg.records.record import Record, best_tier, of_other_digests
from ortimg.records.recording import record_image
from ortimg.records.store import read_records
from ortimg.records.wish import RecordWish
from ortimg.verify.binary import Verifier, get_verifier
from ortimg.verify.image import verify_image
from ortimg.verify.report import FindingVerdict, Report, Verdict

_THERE = (Outcome.BUILT, Outcome.UNCHANGED)


class GpuStage:
    """Runs images of a build, one after the other: they share the GPU, and times of one are its own."""

    def __init__(self, engine: Engine, verifier: Verifier, device: Device, project: Path) -> None:
        self._engine = engine
        self._verifier = verifier
        self._device = device
        self._project = project

    @classmethod
    def open(cls, device: Device, project: Path, builder: str) -> GpuStage:
        """Before anything is built: raises EnvironmentFault where no container gets a GPU."""
        check_engine()
        engine = Engine()
        require_gpu(engine, lambda way: docker_options(way, device))
        stage = cls(engine, get_verifier(Cache.default().root), device, project)
        stage._tell_devices(builder)
        return stage

    def run(self, report: BuildReport) -> BuildReport:
        """The report of a build after its images ran; Ctrl-C keeps what had run before it."""
        if report.exit_code is ExitCode.INTERRUPTED:
            return report
        results, interrupted = list(report.results), False
        try:
            for index, result in enumerate(results):
                results[index] = self.check(result)
        except KeyboardInterrupt:
            interrupted = True
        return _with_results(report, results, interrupted)

    def _tell_devices(self, builder: str) -> None:
        offered = [name for name in devices_of(builder) if name.startswith("nvidia.com/")]
        if offered:
            click.echo(
                f"builder {builder} offers {', '.join(offered)} to steps of a build; not used: images run"
                " after they are built, so that a GPU changes neither them nor their Dockerfiles",
                err=True,
            )

    def check(self, result: CellResult) -> CellResult:
        """The result of a cell after its run; one that is not there stays as it is."""
        image = self._engine.inspect(result.image) if result.image and result.result in _THERE else None
        if image is None or result.image is None:
            return result
        click.echo(f"{result.identifier}: runs on the GPU", err=True)
        try:
            report = verify_image(
                self._engine, result.image, Tier.RUN, self._verifier, device=self._device, image=image
            )
            if image.digest is not None:
                wish = RecordWish(keep=True)
                record_image(self._engine, self._project, result.image, image, report, wish)
        except EnvironmentFault as fault:
            return _failed(result, str(fault).replace("\n", "\n  "), environment=True)
        if report.verdict is Verdict.PASS:
            return result
        return _failed(result, cause_of(report), environment=report.verdict is Verdict.ENVIRONMENT)


def cause_of(report: Report) -> str:
    """Why a report does not pass, each check with its cure."""
    wanted = FindingVerdict.FAIL if report.verdict is Verdict.FAIL else FindingVerdict.SKIPPED
    lines = [
        f"{finding.check}: {finding.evidence}" + (f"\n  {finding.cure}" if finding.cure else "")
        for finding in report.findings
        if finding.verdict is wanted and (finding.cure or wanted is FindingVerdict.FAIL)
    ]
    return "\n  ".join(lines) or f"tier run: {report.verdict.value}"


def _failed(result: CellResult, cause: str, environment: bool) -> CellResult:
    """The image stays, since it is what it was: built, and verified up to its label's tier."""
    return msgspec.structs.replace(
        result, result=Outcome.FAILED, cause=f"on the GPU: {cause}", environment=environment
    )


def open_stage(project: Path, gpu: bool, device: str | None, wish: Wish) -> GpuStage | None:
    """What `--gpu` and `--gpu-device` ask for, before anything is built.

    Raises ConfigError for what cannot go together, EnvironmentFault where no container gets a GPU.
    """
    if not gpu:
        if device is not None:
            raise ConfigError("--gpu-device chooses the GPU of --gpu", hint="Add --gpu.")
        return None
    if _elsewhere(wish):
        raise ConfigError(
            "--gpu runs what the engine here holds, and this build puts its images elsewhere",
            hint="Take --load, or run `ortimg verify IMAGE --gpu --record --push-record` on a GPU machine.",
        )
    return GpuStage.open(device_of(device), project, wish.builder or builder_name())


def judged(project: Path, report: BuildReport, stage: GpuStage | None, wish: Wish) -> BuildReport:
    """The report of a build after the runs of `stage`, with the verdicts that are kept of its images."""
    if stage is not None:
        report = stage.run(report)
    return report if _elsewhere(wish) else with_verdicts(project, report)


def _elsewhere(wish: Wish) -> bool:
    return wish.output is not None or (wish.push and wish.builder is not None)


def _with_results(report: BuildReport, results: Sequence[CellResult], interrupted: bool) -> BuildReport:
    return msgspec.structs.replace(report, results=tuple(results), exit_code=exit_code(results, interrupted))


def with_verdicts(project: Path, report: BuildReport) -> BuildReport:
    """The report with digests, and tier `run` where a verdict of that very digest is kept.

    For images that the engine here holds. Verdicts of other images of a cell are told on stderr, and count
    for nothing.
    """
    found = read_records(project)
    for problem in found.problems:
        click.echo(problem, err=True)
    engine = Engine()
    try:
        results = [_with_verdict(engine, found.records, result) for result in report.results]
    except EnvironmentFault:  # the engine is gone since: what the build came to is told all the same
        return report
    return msgspec.structs.replace(report, results=tuple(results))


def _with_verdict(engine: Engine, records: Sequence[Record], result: CellResult) -> CellResult:
    image = engine.inspect(result.image) if result.image else None
    if image is None:
        return result
    tier = best_tier(result.tier, image.digest, records)
    if tier != Tier.RUN.value and (others := of_other_digests(result.identifier, image.digest, records)):
        digests = ", ".join(dict.fromkeys(str(record.digest)[:19] for record in others))
        click.echo(
            f"{result.identifier}: ignored: the verdict in verdicts/ is of {digests}…, this image is"
            f" {str(image.digest)[:19]}…",
            err=True,
        )
    return msgspec.structs.replace(result, tier=tier, digest=image.digest)
