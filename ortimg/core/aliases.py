"""More names for cells: from plain names, and from rules such as `"{ort_minor}": "*-debian12"`. Pure.

A rule names every cell that its selector matches. Where several would get one name, the newest ONNX Runtime
has it, then the newest CUDA, then the newest cuDNN, each in version order (1.9 < 1.16). Cells that differ in
nothing but the base or the flavour are never chosen between: that is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate

import msgspec
from packaging.version import Version

from ortimg.core.model import Cell
from ortimg.core.problems import near, quote
from ortimg.core.tags import tag_problem

FIELDS: Mapping[str, Callable[[Cell], str]] = {
    "ort": lambda cell: cell.release.version,
    "ort_minor": lambda cell: ".".join(cell.release.version.split(".")[:2]),
    "ort_major": lambda cell: cell.release.version.partition(".")[0],
    "cuda": lambda cell: cell.cuda_set.cuda,
    "cuda_major": lambda cell: str(cell.cuda_set.major),
    "cudnn": lambda cell: cell.cuda_set.cudnn,
    "base": lambda cell: cell.base.name,
    "flavour": lambda cell: cell.flavour.value,
}
_FIELD = re.compile(r"\{([^{}]*)\}")
_GLOB = re.compile(r"[*?\[]")


def is_rule(name: str) -> bool:
    """Whether a key under `tags` is a rule: its name has fields."""
    return "{" in name or "}" in name


def is_glob(selector: str) -> bool:
    """Whether a value under `tags` may mean several cells."""
    return _GLOB.search(selector) is not None


def name_problem(name: str) -> str | None:
    """Why a key under `tags` can be no name and no rule, or None."""
    if not is_rule(name):
        return tag_problem(name)
    for field in _FIELD.findall(name):
        if field not in FIELDS:
            known = near(field, FIELDS) or f"; there are {', '.join(FIELDS)}"
            return f"there is no field {quote('{' + field + '}')}{known}"
    plain = _FIELD.sub("0", name)
    if is_rule(plain):
        return f"a brace in {quote(name)} has no partner"
    return tag_problem(plain)


class Claim(msgspec.Struct, frozen=True):
    """One row under `tags`: a name or a rule, and the cells that it is about."""

    name: str
    selector: str  # an identifier, or a glob over identifiers


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a claim."""

    claim: Claim
    message: str


def matching(selector: str, cells: Iterable[Cell]) -> Iterator[Cell]:
    """Cells whose identifier the selector matches."""
    pattern = re.compile(translate(selector))
    return (cell for cell in cells if pattern.match(cell.identifier))


def resolve(
    claims: Sequence[Claim], cells: Mapping[str, Cell]
) -> tuple[dict[str, tuple[str, ...]], list[Fault]]:
    """Identifier → its names, in the order of `claims`; and the faults. `cells`: by identifier."""
    owners: dict[str, tuple[str, Claim]] = {}  # name → identifier
    faults: list[Fault] = []
    for claim in claims:
        for name, chosen in _winners(claim, cells, faults).items():
            fault = tag_problem(name) if is_rule(claim.name) else None
            if name in cells:
                what = quote(name) if is_rule(claim.name) else "the tag"
                fault = f"{what} is a cell's own identifier already, and cannot name {chosen} too"
            elif name in owners and owners[name][0] != chosen:
                other, by = owners[name]
                fault = f"{quote(name)} would mean {chosen}, and by {quote(by.name)} it means {other}"
            if fault:
                faults.append(Fault(claim, fault))
            else:
                owners.setdefault(name, (chosen, claim))
    names: dict[str, tuple[str, ...]] = {}
    for name, (identifier, _) in owners.items():
        names[identifier] = (*names.get(identifier, ()), name)
    return names, faults


def _winners(claim: Claim, cells: Mapping[str, Cell], faults: list[Fault]) -> dict[str, str]:
    """Name → identifier of the newest cell that the claim gives it to; ties are faults."""
    rivals: dict[str, list[Cell]] = {}
    found = (
        matching(claim.selector, cells.values())
        if is_glob(claim.selector)
        else [cell for cell in [cells.get(claim.selector)] if cell is not None]
    )
    for cell in found:
        rivals.setdefault(_fill(claim.name, cell), []).append(cell)
    winners = {}
    for name, rows in rivals.items():
        best = max(rows, key=_age)
        ties = [row for row in rows if _age(row) == _age(best)]
        if len(ties) > 1:
            faults.append(Fault(claim, _tie(name, ties[0], ties[1])))
        else:
            winners[name] = best.identifier
    return winners


def _tie(name: str, one: Cell, other: Cell) -> str:
    """Cells that differ in base or flavour alone: how to tell them apart by what differs."""
    field = "base" if one.base.name != other.base.name else "flavour"
    end = one.identifier.split("-", 3)[3]  # base, and flavour
    return (
        f"{one.identifier} and {other.identifier} would both be called {quote(name)}; "
        f'narrow the selector, such as "*-{end}", or put {{{field}}} into the name'
    )


def _fill(name: str, cell: Cell) -> str:
    return _FIELD.sub(lambda match: FIELDS[match[1]](cell), name)


def _age(cell: Cell) -> tuple[Version, Version, int]:
    return Version(cell.release.version), Version(cell.cuda_set.cuda), cell.cuda_set.cudnn_major
