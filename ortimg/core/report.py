"""The page of `ortimg report` as data: what stands where, in which words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ortimg.core.model import Cell, Exclusion, Tier
from ortimg.core.report_bench import FactoryPlot, Plot, RunRow, factory_plot, plot, run_rows
from ortimg.core.report_facts import BuildFact, ImageFact, NumbersFact, ReportFacts, VerdictFact
from ortimg.core.report_fit import DriverGrid, FitGrid, driver_grid, fit_grid
from ortimg.core.report_inputs import InputRow, input_row
from ortimg.core.report_layers import LayerPicture, layer_picture
from ortimg.core.report_words import aged, amount, day

NOT_BUILT = "not built here"


class VerdictRow(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded verdict."""

    words: str
    passed: bool
    other: bool  # of another image than the one that is here


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One image."""

    identifier: str
    title: str
    tags: tuple[str, ...]
    tier: str
    here: bool
    facts: tuple[tuple[str, str], ...]  # what, value; none of an image that nothing is known of
    digest: str | None
    pull: str
    run: str
    verdicts: tuple[VerdictRow, ...]
    search: str


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Combinations that are not built for one reason."""

    reason: str
    rows: tuple[tuple[str, str | None], ...]  # what it would be called, nearest cell that works


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    repository: str
    registry: bool
    date: str
    version: str
    summary: tuple[tuple[str, str], ...]  # what, how many
    engine: str | None
    fit: FitGrid
    drivers: DriverGrid
    cards: tuple[Card, ...]
    layers: LayerPicture | None
    absent: tuple[tuple[str, str], ...]  # identifiers that the picture lacks, and what a build said of them
    inputs: tuple[InputRow, ...]
    locked: str | None  # date and age of images.lock; None: it has none
    factory: FactoryPlot | None
    plots: tuple[Plot, ...]
    runs: tuple[RunRow, ...]
    untimed: int  # reports of tier run without times
    numbers: tuple[NumbersFact, ...]
    excluded: tuple[Group, ...]
    notes: tuple[str, ...]


def report_page(facts: ReportFacts) -> Page:
    """The page; the same facts give the same page."""
    there = {cell.identifier: facts.images[cell.identifier] for cell in facts.cells if _here(cell, facts)}
    verdicts = {cell.identifier: _of_cell(cell, facts) for cell in facts.cells}
    tiers: dict[str, Tier | None] = {name: build.tier for name, build in facts.builds.items()}
    tiers |= {identifier: image.tier for identifier, image in there.items()}
    origins = {name: build.origins for name, build in facts.builds.items()}
    origins |= {name: image.origins for name, image in there.items()}
    runs = run_rows(facts.runs)
    return Page(
        repository=facts.repository,
        registry=facts.registry,
        date=day(facts.now),
        version=facts.version,
        summary=_summary(facts, there),
        engine=facts.engine and facts.engine.partition(":")[0],  # the rest names this machine's endpoint
        fit=fit_grid(facts.cells, facts.hosts, tiers, _of_images(verdicts, facts)),
        drivers=driver_grid(facts.cells, facts.hosts),
        cards=tuple(_card(cell, facts, verdicts[cell.identifier]) for cell in facts.cells),
        layers=layer_picture(there),
        absent=tuple(
            (cell.identifier, _built_elsewhere(facts.builds.get(cell.identifier)))
            for cell in facts.cells
            if cell.identifier not in there
        ),
        inputs=tuple(input_row(fact, origins, facts.now) for fact in facts.inputs),
        locked=_locked(facts),
        factory=factory_plot(facts.factory) if facts.factory else None,
        plots=tuple(plot(fact) for fact in facts.benches),
        runs=runs,
        untimed=len(facts.runs) - len(runs),
        numbers=facts.numbers,
        excluded=_groups(facts.excluded),
        notes=facts.notes,
    )


def _locked(facts: ReportFacts) -> str | None:
    if facts.lock.epoch is None:
        return None
    return aged(datetime.fromtimestamp(facts.lock.epoch, UTC), facts.now)


def _here(cell: Cell, facts: ReportFacts) -> bool:
    return cell.identifier in facts.images


def _digest(identifier: str, facts: ReportFacts) -> str | None:
    if identifier in facts.images:
        return facts.images[identifier].digest
    return facts.builds[identifier].digest if identifier in facts.builds else None


def _of_cell(cell: Cell, facts: ReportFacts) -> tuple[VerdictFact, ...]:
    """Verdicts of its image, and those that name the cell."""
    digest = _digest(cell.identifier, facts)
    return tuple(
        row
        for row in facts.verdicts
        if row.identifier == cell.identifier or (digest is not None and row.digest == digest)
    )


def _of_images(
    verdicts: Mapping[str, Sequence[VerdictFact]], facts: ReportFacts
) -> dict[str, tuple[VerdictFact, ...]]:
    found = {}
    for identifier, rows in verdicts.items():
        digest = _digest(identifier, facts)
        found[identifier] = tuple(row for row in rows if digest is not None and row.digest == digest)
    return found


def _summary(facts: ReportFacts, there: Mapping[str, ImageFact]) -> tuple[tuple[str, str], ...]:
    rows = [("images in images.yaml", f"{len(facts.cells):,}")]
    if facts.engine is None:
        rows.append(("in this engine", f"{len(there):,}"))
        for tier in Tier:
            count = sum(image.tier is tier for image in there.values())
            if count:
                rows.append((f"of tier {tier.value}", f"{count:,}"))
    rows.append(("combinations not built", f"{len(facts.excluded):,}"))
    return tuple(rows)


def _state(cell: Cell, facts: ReportFacts) -> str:
    image, build = facts.images.get(cell.identifier), facts.builds.get(cell.identifier)
    if image is None and build is None:
        return NOT_BUILT
    tier = image.tier if image else build.tier if build else None
    return tier.value if tier else "not told"


def _search(cell: Cell, tier: str) -> str:
    """What the search field looks in: small letters."""
    words = (
        cell.identifier,
        *cell.tags,
        f"onnxruntime ort {cell.release.version}",
        f"cuda {cell.cuda_set.cuda} cudnn {cell.cuda_set.cudnn_version}",
        cell.base.title,
        cell.flavour.value,
        f"tier {tier}",
    )
    return " ".join(words).lower()


def _card(cell: Cell, facts: ReportFacts, verdicts: Sequence[VerdictFact]) -> Card:
    image, build = facts.images.get(cell.identifier), facts.builds.get(cell.identifier)
    name = f"{facts.repository}:{cell.identifier}"
    digest = _digest(cell.identifier, facts)
    return Card(
        identifier=cell.identifier,
        title=f"ONNX Runtime {cell.release.version}, CUDA {cell.cuda_set.cuda}, "
        f"cuDNN {cell.cuda_set.cudnn_version}, {cell.base.title}, {cell.flavour.value}",
        tags=cell.tags,
        tier=_state(cell, facts),
        here=image is not None,
        facts=tuple(_known(image, build)),
        digest=digest,
        pull=f"docker pull {name}",
        run=f"docker run --rm --gpus all {name}",
        verdicts=tuple(_verdict(row, digest) for row in verdicts),
        search=_search(cell, _state(cell, facts)),
    )


def _known(image: ImageFact | None, build: BuildFact | None) -> Iterator[tuple[str, str]]:
    if image is not None:
        yield "Size", f"{amount(sum(layer.size for layer in image.layers))} unpacked"
    elif build is not None:
        yield "Size", _built_elsewhere(build)
    origins = image.origins if image else build.origins if build else {}
    if origins:
        yield "Origins", ", ".join(f"{part}: {origin}" for part, origin in origins.items())
    if image is not None and image.created is not None:
        yield "Dated", day(image.created)  # by the lock: no age of what is in it


def _built_elsewhere(build: BuildFact | None) -> str:
    if build is None:
        return NOT_BUILT
    if build.bytes_total is None:
        return f"{NOT_BUILT}; {build.source} says: {build.result}"
    own = "" if build.bytes_own is None else f", {amount(build.bytes_own)} of its own"
    return f"{amount(build.bytes_total)} unpacked{own}, as {build.source} says"


def _verdict(row: VerdictFact, digest: str | None) -> VerdictRow:
    where = f"{row.gpu or 'no GPU'}, compute {row.compute or 'not told'}, driver {row.driver or 'not told'}"
    other = digest is None or row.digest != digest
    proof = (
        ""
        if row.proves_run or not row.passed
        else "; no proof of tier run: another model, or nodes on the CPU"
    )
    return VerdictRow(
        words=f"{'passed' if row.passed else 'failed'} on {where}, {row.date}{proof}"
        + (f"; of another image of this cell, {row.digest or 'of no digest'}" if other else ""),
        passed=row.passed,
        other=other,
    )


def _groups(excluded: Sequence[Exclusion]) -> tuple[Group, ...]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for row in excluded:
        found.setdefault(row.reason, []).append((row.identifier, row.nearest))
    return tuple(Group(reason=reason, rows=tuple(rows)) for reason, rows in found.items())
