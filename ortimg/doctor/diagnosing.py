"""Puts together what was asked about: gathers, judges, and has ort-verify check what it can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ortimg.core.doctor.findings import DoctorReport, Found, make_report, parse_advice
from ortimg.core.doctor.names import Check
from ortimg.core.drivers import Drivers
from ortimg.core.model import Tier
from ortimg.data import read_catalogue, read_host_facts
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.verify.report import FindingVerdict, Report, Verdict

if TYPE_CHECKING:
    from ortimg.core.doctor.facts import Machine, Place, Snapshot
    from ortimg.core.doctor.loader import Loader
    from ortimg.core.doctor.log import LogReader


@dataclass(frozen=True)
class Wish:
    """What the user asked about, besides the target."""

    log: str | None
    profile: Path | None
    share: float
    program: Path | None
    options: tuple[str, ...]
    maps: Path | None
    pid: int | None
    driver: str | None
    run: tuple[str, ...]
    seconds: float
    here: bool

    @property
    def inputs(self) -> bool:
        """Something besides a system is to be judged."""
        return bool(self.log or self.profile or self.program or self.options or self.maps or self.run)


def diagnose(target: str | None, wish: Wish) -> DoctorReport:
    """What is wrong with the target (None: this machine), and with what the user handed in.

    Raises ConfigError for an input that cannot be read, EnvironmentFault for an image without an engine.
    """
    from ortimg.core.doctor.loader import Loader
    from ortimg.doctor.machine import read_machine

    advice = parse_advice((files("ortimg.data") / "doctor-checks.yaml").read_bytes())
    machine = read_machine(wish.driver)
    reader = _read_log(wish.log) if wish.log else None
    snapshot = _snapshot(target, wish, machine)
    named = target is not None or wish.pid is not None or wish.here
    facts = read_host_facts()
    drivers = Drivers(facts.drivers)
    loader = Loader(snapshot)
    found: list[Found] = []
    if reader is not None:
        found += _log_findings(reader, snapshot, loader, drivers, named)
    if wish.run:
        found += _run(wish, snapshot, loader, drivers)
    found += _inputs(wish, snapshot, loader)
    verified: Report | None = None
    if named or not wish.inputs:
        found += _system(snapshot, loader, drivers, wish)
        verified, told = _verify(target)
        found += told
    report = make_report(
        _name(target, wish, snapshot.place, named), found, advice, verified.findings if verified else ()
    )
    if verified is None:
        unsure = any(one.check is Check.VERIFIER for one in found) and report.verdict is Verdict.PASS
        return msgspec.structs.replace(report, verdict=Verdict.ENVIRONMENT) if unsure else report
    if verified.verdict is Verdict.ENVIRONMENT and report.verdict is Verdict.PASS:
        report = msgspec.structs.replace(report, verdict=Verdict.ENVIRONMENT)
    return msgspec.structs.replace(report, tier=Tier.STATIC)


def _snapshot(target: str | None, wish: Wish, machine: Machine) -> Snapshot:
    import dataclasses

    from ortimg.doctor import targets

    if wish.pid is not None:
        return targets.a_process(wish.pid, machine)
    if target is None:
        snapshot = targets.this_system(machine)
    elif Path(target).is_dir():
        snapshot = targets.a_root(Path(target), machine)
    else:
        snapshot = targets.an_image(target, machine)
    if wish.maps is not None:
        mapped = targets.mapped_files(wish.maps.read_text(errors="replace"))
        if not mapped:
            raise ConfigError(
                f"{wish.maps} is no copy of /proc/PID/maps", hint="Make one: cat /proc/PID/maps."
            )
        snapshot = dataclasses.replace(snapshot, maps=mapped, process="the process")
    return snapshot


def _system(snapshot: Snapshot, loader: Loader, drivers: Drivers, wish: Wish) -> Iterator[Found]:
    """Every check of a system."""
    from ortimg.core.doctor.cudnn import check_cudnn
    from ortimg.core.doctor.devices import check_devices
    from ortimg.core.doctor.driver import check_driver
    from ortimg.core.doctor.libraries import check_libraries
    from ortimg.core.doctor.ort import check_ort
    from ortimg.core.doctor.paths import check_paths
    from ortimg.core.doctor.require import check_require

    yield from check_driver(snapshot, loader, drivers)
    yield from check_require(snapshot, drivers, read_host_facts().drivers)
    yield from check_paths(snapshot, loader)
    yield from check_libraries(snapshot, loader)
    yield from check_cudnn(snapshot, loader)
    yield from check_ort(snapshot, loader)
    if not any(word.startswith("device_id=") for word in wish.options):  # else told with that option
        gpus = snapshot.machine.gpus if snapshot.place.runs else None
        yield from check_devices(snapshot.environment, gpus, snapshot.place)


def _inputs(wish: Wish, snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    """What the user handed in besides a log."""
    if wish.options:
        yield from _options(wish, snapshot, loader)
    if wish.profile is not None:
        from ortimg.core.doctor.profile import check_profile, read_profile

        try:
            nodes = read_profile(wish.profile.read_text(errors="replace"))
        except ConfigError as error:
            raise ConfigError(f"{wish.profile}: {error.message}", hint=error.hint) from None
        yield from check_profile(nodes, wish.share)
    if wish.program is not None:
        from ortimg.core.doctor.program import check_program
        from ortimg.doctor.files import read_elf

        elf = read_elf(wish.program) if wish.program.is_file() else None
        if elf is None:
            raise ConfigError(f"{wish.program} is no ELF program or library", hint="Name the compiled file.")
        yield from check_program(str(wish.program), elf, snapshot, loader, read_catalogue().releases)
    if wish.maps is not None:
        from ortimg.core.doctor.driver import check_maps

        told = [*check_maps(snapshot)]
        count = len(snapshot.maps)
        yield from told or [
            Found(Check.DRIVER_STUB, FindingVerdict.OK, f"none of the {count} mapped files is foreign")
        ]


def _options(wish: Wish, snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    from ortimg.core.doctor.devices import check_devices
    from ortimg.core.doctor.options import check_options, is_whole, parse_options, split_option
    from ortimg.core.doctor.ort import cores, version_of

    known = parse_options((files("ortimg.data") / "cuda-options.yaml").read_bytes())
    pairs = [split_option(word) for word in wish.options]
    there = cores(snapshot, loader)
    gpus = snapshot.machine.gpus if snapshot.place.runs else None
    device = next((int(value) for key, value in pairs if key == "device_id" and is_whole(value)), None)
    chosen = gpus[device or 0] if gpus and (device or 0) < len(gpus) else None
    yield from check_options(
        pairs, known, version_of(there[0]) if there else None, chosen.memory if chosen else 0
    )
    if device is not None:
        yield from check_devices(snapshot.environment, gpus, snapshot.place, device)


def _reader() -> LogReader:
    from ortimg.core.doctor.log import LogReader, parse_faults, parse_loader_words

    data = files("ortimg.data")
    return LogReader(
        parse_faults((data / "log-faults.yaml").read_bytes()),
        parse_loader_words((data / "loader-words.yaml").read_bytes()),
    )


def _read_log(name: str) -> LogReader:
    from ortimg.doctor.log_file import pieces_of

    reader = _reader()
    for piece in pieces_of(name):
        reader.read(piece)
    return reader


def _log_findings(
    reader: LogReader, snapshot: Snapshot, loader: Loader, drivers: Drivers, named: bool
) -> Iterator[Found]:
    from ortimg.core.doctor.error35 import explain_35
    from ortimg.core.doctor.log import ERROR_35

    if reader.saw(ERROR_35):
        missing = reader.saw("driver-not-found")
        where = reader.evidence(ERROR_35)
        yield explain_35(where, snapshot, loader, drivers, named=named, missing=missing)
    yield from reader.findings()


def _run(wish: Wish, snapshot: Snapshot, loader: Loader, drivers: Drivers) -> Iterator[Found]:
    from ortimg.core.doctor.ending import check_ending
    from ortimg.doctor.log_file import clean_pieces
    from ortimg.doctor.running import run_watched

    ending, said = run_watched(wish.run, wish.seconds)
    reader: LogReader | None = None
    if said.strip():
        reader = _reader()
        for piece in clean_pieces(said):
            reader.read(piece)
    mixed = reader is not None and (reader.saw("cpu-and-cuda-nodes") or reader.saw("nodes-not-on-cuda"))
    yield from check_ending(ending, mixed)
    if reader is not None:
        yield from (
            one
            for one in _log_findings(reader, snapshot, loader, drivers, named=True)
            if one.verdict is not FindingVerdict.OK or one.fault
        )


def _verify(target: str | None) -> tuple[Report | None, list[Found]]:
    """The static checks of ort-verify, on images and roots: doctor does not write them again."""
    from ortimg.inputs.cache import Cache
    from ortimg.verify.binary import get_verifier
    from ortimg.verify.image import verify_image
    from ortimg.verify.root import verify_root

    if target is None:
        return None, []
    try:
        verifier = get_verifier(Cache.default().root)
        if Path(target).is_dir():
            return verify_root(Path(target), Tier.STATIC, verifier), []
        from ortimg.engine.client import Engine

        return verify_image(Engine(), target, Tier.STATIC, verifier), []
    except EnvironmentFault as fault:
        return None, [Found(Check.VERIFIER, FindingVerdict.SKIPPED, fault.message, fault.hint)]


def _name(target: str | None, wish: Wish, place: Place, named: bool) -> str:
    if target is not None:
        return target
    if wish.pid is not None:
        return f"process {wish.pid}"
    if wish.inputs and not named:
        named_inputs = {
            "log": wish.log and ("stdin" if wish.log == "-" else wish.log),
            "profile": wish.profile,
            "program": wish.program,
            "maps": wish.maps,
            "run": " ".join(wish.run) if wish.run else None,
            "options": ", ".join(wish.options) or None,
        }
        return ", ".join(f"{key} {value}" for key, value in named_inputs.items() if value)
    return f"this {place.value}"
