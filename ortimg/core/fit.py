"""Which cells run on a host, which not and why: verdicts, ranked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from packaging.version import Version

from ortimg.core.distance import version_distance
from ortimg.core.drivers import Drivers
from ortimg.core.fit_rules import RANK, Finding, Host, Verdict, findings
from ortimg.core.model import Cell, OrtRelease
from ortimg.core.versions import number

_Pair = tuple[str, str, bool]  # release, CUDA set, whether ONNX Runtime is the wheel


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one cell on the host."""

    cell: Cell
    verdict: Verdict
    reasons: tuple[str, ...]  # those of the verdict first, then what else is worth knowing
    nearest: str | None = None  # of a refused cell: identifier of the nearest one that fits

    @property
    def fits(self) -> bool:
        """Whether it is known to run."""
        return self.verdict in (Verdict.NATIVE, Verdict.JIT)


class _Judged(msgspec.Struct, frozen=True):
    """A pair of release and CUDA set, judged: the same for every base."""

    verdict: Verdict
    reasons: tuple[str, ...]


def fit(
    cells: Sequence[Cell], host: Host, drivers: Drivers, among: Sequence[Cell] = ()
) -> tuple[Answer, ...]:
    """An answer for every cell, best first: by verdict, then the newest ONNX Runtime, CUDA and cuDNN.

    What fits instead of a refused cell is looked for in `cells`, and where none of these fits in `among`.
    """
    answers = _answers(cells, host, drivers, cells)
    if among and not any(answer.fits for answer in answers):
        return _answers(cells, host, drivers, among)
    return answers


def _answers(
    cells: Sequence[Cell], host: Host, drivers: Drivers, among: Sequence[Cell]
) -> tuple[Answer, ...]:
    judged: dict[_Pair, _Judged] = {}
    for cell in (*cells, *among):
        if _pair(cell) not in judged:
            judged[_pair(cell)] = _judge(findings(loaded(cell), cell.cuda_set, host, drivers))
    good: dict[_Pair, dict[str, Cell]] = {}  # pairs that fit → their cells by base
    for cell in among:
        if judged[_pair(cell)].verdict in (Verdict.NATIVE, Verdict.JIT):
            good.setdefault(_pair(cell), {}).setdefault(cell.base.name, cell)
    nearest: dict[_Pair, dict[str, Cell] | None] = {}
    answers: list[Answer] = []
    for cell in cells:
        pair, found = _pair(cell), judged[_pair(cell)]
        near = None
        if found.verdict is Verdict.REFUSED:
            if pair not in nearest:
                nearest[pair] = _nearest(cell, good)
            bases = nearest[pair]
            near = (bases.get(cell.base.name) or next(iter(bases.values()))).identifier if bases else None
        answers.append(Answer(cell=cell, verdict=found.verdict, reasons=found.reasons, nearest=near))
    return tuple(sorted(answers, key=_rank))


def _pair(cell: Cell) -> _Pair:
    return (cell.release.key, cell.cuda_set.key, cell.flavour.python is not None)


def loaded(cell: Cell) -> OrtRelease:
    """What the cell holds: a Python flavour holds the wheel, a build of its own."""
    release = cell.release
    if cell.flavour.python is None or release.wheel is None or release.wheel.gpu is None:
        return release
    return msgspec.structs.replace(release, gpu=release.wheel.gpu, wheel=None)


def _judge(found: Sequence[Finding]) -> _Judged:
    verdict = max((finding.verdict for finding in found), key=RANK.__getitem__, default=Verdict.NATIVE)
    ordered = sorted(found, key=lambda finding: -RANK[finding.verdict])
    if verdict is Verdict.REFUSED:  # what else would be does not matter then
        ordered = [finding for finding in ordered if finding.verdict is Verdict.REFUSED]
    return _Judged(verdict, tuple(finding.text for finding in ordered))


def _nearest(cell: Cell, good: dict[_Pair, dict[str, Cell]]) -> dict[str, Cell] | None:
    """Cells of the pair that fits and differs least: by version, then by CUDA."""
    wished = cell.cuda_set

    def distance(bases: dict[str, Cell]) -> tuple[object, ...]:
        other = next(iter(bases.values()))
        return (
            version_distance(cell.release.version, other.release.version),
            abs(other.cuda_set.major - wished.major),
            other.cuda_set.cudnn != wished.cudnn,
        )

    return min(good.values(), key=distance, default=None)


def _rank(answer: Answer) -> tuple[object, ...]:
    cell = answer.cell
    version = Version(cell.release.version)
    return (
        RANK[answer.verdict],
        tuple(-part for part in version.release),
        tuple(-part for part in number(cell.cuda_set.cuda)),
        -cell.cuda_set.cudnn_major,
    )


def may_fit(answers: Sequence[Answer], host: Host) -> bool:
    """Whether a cell fits as far as was told: what is unknown for want of a GPU's name may fit."""
    return any(answer.fits or (answer.verdict is Verdict.UNKNOWN and not host.gpus) for answer in answers)
