"""From wishes to cells: every combination of the matrix is a cell or an exclusion with its reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

import msgspec

from ortimg.core.aliases import Claim, is_glob, matching, name_problem, resolve
from ortimg.core.catalogue import Index
from ortimg.core.config import AXES, Config, ExcludeRow, IncludeRow, Wish
from ortimg.core.flavours import Flavours
from ortimg.core.mirrors import NO_MIRRORS, Mirrors
from ortimg.core.model import Catalogue, Cell, Exclusion
from ortimg.core.problems import Path, Problem, config_error, quote
from ortimg.core.rules import Refusal, Rules

MAX_COMBINATIONS = 100_000  # far above any real matrix; planning them takes seconds
# Naming the nearest cell would name the one that is not wanted.
_TAKEN_OUT = "`exclude` takes out what could be built"
Values = tuple[str, str, str, str, str]  # in the order of AXES


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What images.yaml comes to: the cells, in its order, and what was left out of the matrix."""

    repository: str
    cells: tuple[Cell, ...]
    excluded: tuple[Exclusion, ...]
    mirrors: Mirrors = NO_MIRRORS


def plan(config: Config, catalogue: Catalogue) -> Plan:
    """Resolve every combination. Raises ConfigError with every wish that cannot be met."""
    planned, problems = try_plan(config, catalogue)
    if problems:
        raise config_error(config.filename, problems)
    return planned


def try_plan(config: Config, catalogue: Catalogue) -> tuple[Plan, list[Problem]]:
    """As `plan`, for a caller that reports other faults too."""
    index = Index(catalogue)
    rules = Rules(index)
    planner = _Planner(config, rules, Flavours(index, rules))
    planner.matrix()
    planner.include()
    planned = Plan(
        repository=config.repository,
        cells=config.mirrors.apply(planner.with_tags()),
        excluded=tuple(planner.excluded),
        mirrors=config.mirrors,
    )
    return planned, planner.problems


class _RowUse(msgspec.Struct):
    """What a row of `exclude` has matched."""

    row: ExcludeRow
    hits: int = 0
    impossible: int = 0


class _Planner:
    def __init__(self, config: Config, rules: Rules, flavours: Flavours) -> None:
        self.config = config
        self.rules = rules
        self.flavours = flavours
        self.cells: dict[str, Cell] = {}  # by identifier
        self.places: dict[str, tuple[int, Path]] = {}  # of cells from `include`
        self.excluded: list[Exclusion] = []
        self.problems: list[Problem] = []
        self.alive: set[Path] = set()  # axis values with a cell
        self.unwished: set[Path] = set()  # axis values with a combination that only `exclude` takes out
        self.faults: dict[Path, str] = {}  # axis values that are wrong by themselves

    # -- matrix

    def matrix(self) -> None:
        """Go through every combination, in the order of the file."""
        wished = [self._distinct(self.config.matrix.get(axis, ())) for axis in AXES]
        axes = [self._healthy(axis, wishes) for axis, wishes in zip(AXES, wished, strict=True)]
        if (count := prod(len(wishes) for wishes in axes)) > MAX_COMBINATIONS:
            message = (
                f"{count:,} combinations; more than {MAX_COMBINATIONS:,} are not planned, write fewer values"
            )
            self._problem(*self._matrix_place(), message)
            return
        reasons: dict[Path, dict[str, None]] = {}  # axis value → why its combinations are not there
        rows = [_RowUse(row) for row in self.config.exclude]
        for wishes in product(*axes):
            values: Values = tuple(wish.value for wish in wishes)  # type: ignore[assignment]
            found = self._resolve(values)
            matching = [use for use in rows if use.row.matches(values)]
            if isinstance(found, Refusal):
                reason, nearest = found.reason, self.flavours.nearest(*values)
                for use in matching:
                    use.impossible += 1
            elif matching:
                reason, nearest = matching[0].row.reason, None
                for use in matching:
                    use.hits += 1
                self.unwished.update(wish.path for wish in wishes)
            else:
                self.cells[found.identifier] = found
                self.alive.update(wish.path for wish in wishes)
                continue
            self._exclude(values, reason, nearest)
            for wish in wishes:
                reasons.setdefault(wish.path, {})[reason] = None
        self._dead_values(wished, axes, reasons)
        for use in rows:
            if not use.hits:
                self._idle_exclude(use)

    def _healthy(self, axis: str, wishes: list[Wish]) -> list[Wish]:
        """The values that are right by themselves; the others are told at the end, with what would work."""
        faults = {wish.path: fault for wish in wishes if (fault := self.rules.alone(axis, wish.value))}
        self.faults.update({path: fault.reason for path, fault in faults.items()})
        return [wish for wish in wishes if wish.path not in faults]

    def _distinct(self, wishes: tuple[Wish, ...]) -> list[Wish]:
        """The values of an axis; the second of two equal ones is a fault."""
        seen: dict[str, Wish] = {}
        for wish in wishes:
            if wish.value in seen:
                message = f"{quote(wish.value)} is on this axis twice, first in line {seen[wish.value].line}"
                self._problem(wish.line, wish.path, message)
            else:
                seen[wish.value] = wish
        return list(seen.values())

    def _resolve(self, values: Values) -> Cell | Refusal:
        return self.flavours.cell(*values)

    def _exclude(self, values: Values, reason: str, nearest: str | None) -> None:
        named = dict(zip(AXES, values, strict=True))
        self.excluded.append(Exclusion(**named, reason=reason, nearest=nearest))

    def _dead_values(
        self, wished: list[list[Wish]], axes: list[list[Wish]], reasons: dict[Path, dict[str, None]]
    ) -> None:
        """Faults for values that yield no cell; one for all where the whole matrix yields none."""
        usual = [min(wishes, key=self._usual, default=None) for wishes in wished]
        spoilt = not self.alive and all(axes)
        if spoilt:
            first = next(iter(reasons.values()))
            values = [wish.value if wish else "" for wish in usual]
            message = f"no combination of the matrix yields a cell: {_few(first)}"
            if self.unwished:
                self._problem(*self._matrix_place(), f"{message}; {_TAKEN_OUT}; drop a row of it")
            else:
                self._problem(*self._matrix_place(), message, values)
        for number, wishes in enumerate(wished):
            for wish in wishes:
                reason = self.faults.get(wish.path)
                if reason is None and not spoilt and wish.path not in self.alive and wish.path in reasons:
                    reason = _few(reasons[wish.path])
                if reason is not None and wish.path in self.unwished:
                    message = f"{quote(wish.value)} yields no cell: {reason}; {_TAKEN_OUT}"
                    self._problem(wish.line, wish.path, f"{message}; leave the value out of the matrix")
                elif reason is not None:
                    values = [other.value if other else "" for other in usual]
                    values[number] = wish.value
                    nearest = self._nearest_keeping_cuda(values, axes[0] if number else ())
                    message = f"{quote(wish.value)} yields no cell: {reason}"
                    self._problem(wish.line, wish.path, message + _works(nearest))

    def _nearest_keeping_cuda(self, values: Sequence[str], versions: Iterable[Wish]) -> str | None:
        """The nearest cell, of another version of the axis where only that one keeps the CUDA major."""
        ort, cuda, cudnn, base, flavour = values
        first = self.flavours.nearest(ort, cuda, cudnn, base, flavour)
        others = (self.flavours.nearest(wish.value, cuda, cudnn, base, flavour) for wish in versions)
        major = f"-cuda{cuda.partition('.')[0]}."
        return next((found for found in (first, *others) if found and major in found), first)

    def _usual(self, wish: Wish) -> tuple[bool, bool]:
        """Sorts the value first that stands best for its axis: one with cells, then one without a fault."""
        return (wish.path not in self.alive, wish.path in self.faults)

    def _matrix_place(self) -> tuple[int, Path]:
        lines = [wish.line for wishes in self.config.matrix.values() for wish in wishes]
        return min(lines), ("matrix",)

    def _idle_exclude(self, use: _RowUse) -> None:
        row = use.row
        if use.impossible:
            message = "matches only combinations that cannot exist, which are dropped anyway; leave it out"
        else:
            message = "matches no combination of the matrix"
            for axis, value in row.values.items():
                known = [wish.value for wish in self.config.matrix.get(axis, ())]
                if value not in known:
                    message += f"; {quote(value)} is not on the axis {axis} ({', '.join(known) or 'empty'})"
        self._problem(row.line, row.path, message)

    # -- include

    def include(self) -> None:
        for row in self.config.include:
            found = self._resolve(row.values)
            if isinstance(found, Refusal):
                self._problem(row.line, row.path, found.reason, row.values)
            elif found.identifier in self.cells:
                self._twice(row, found.identifier)
            else:
                self.cells[found.identifier] = found
                self.places[found.identifier] = (row.line, row.path)

    def _twice(self, row: IncludeRow, identifier: str) -> None:
        place = self.places.get(identifier)
        where = f"line {place[0]}" if place else "the matrix"
        self._problem(
            row.line, row.path, f"the cell {identifier} is there already, from {where}; leave one out"
        )

    # -- tags

    def with_tags(self) -> tuple[Cell, ...]:
        wishes = {}
        for name, wish in self.config.tags:
            if name_problem(name):
                continue  # told with the other faults of form
            claim = Claim(name, wish.value)
            if wish.value in self.cells or any(matching(wish.value, self.cells.values())):
                wishes[claim] = wish
            else:
                self._problem(wish.line, wish.path, self._no_cell(wish.value))
        names, faults = resolve([*wishes], self.cells)
        for fault in faults:
            wish = wishes[fault.claim]
            self._problem(wish.line, wish.path, fault.message)
        return tuple(
            msgspec.structs.replace(cell, tags=names[identifier]) if identifier in names else cell
            for identifier, cell in self.cells.items()
        )

    def _no_cell(self, identifier: str) -> str:
        for row in self.excluded:
            if identifier == row.identifier:
                return f"{identifier} is not built: {row.reason}" + _works(row.nearest)
        found = difflib.get_close_matches(identifier.replace("*", ""), list(self.cells), n=1, cutoff=0)
        nearest = _works(found[0] if found else None)
        if is_glob(identifier):
            return f"{quote(identifier)} matches no cell{nearest}"
        return f"there is no cell {quote(identifier)}{nearest}"

    def _problem(self, line: int, path: Path, message: str, wished: Sequence[str] = ()) -> None:
        """Note a fault; for a combination that was `wished`, with the nearest cell that works."""
        nearest = self.flavours.nearest(*wished) if wished else None
        self.problems.append(Problem(line, path, message + _works(nearest)))


def _works(nearest: str | None) -> str:
    return f"; nearest: {nearest}" if nearest else ""


def _few(reasons: Iterable[str]) -> str:
    return "; ".join([*reasons][:2])
