"""From wishes to cells: every combination of the matrix is a cell or an exclusion with its reason."""

from __future__ import annotations

import difflib
from itertools import product

import msgspec

from ortimg.core.catalogue import Index
from ortimg.core.config import AXES, Config, ExcludeRow, IncludeRow, Wish
from ortimg.core.model import Catalogue, Cell, Exclusion
from ortimg.core.problems import Path, Problem, config_error, quote
from ortimg.core.rules import Refusal, Rules

Values = tuple[str, str, str, str, str]  # in the order of AXES


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What images.yaml comes to: the cells, in its order, and what was left out of the matrix."""

    repository: str
    cells: tuple[Cell, ...]
    excluded: tuple[Exclusion, ...]


def plan(config: Config, catalogue: Catalogue) -> Plan:
    """Resolve every combination. Raises ConfigError with every wish that cannot be met."""
    planned, problems = try_plan(config, catalogue)
    if problems:
        raise config_error(config.filename, problems)
    return planned


def try_plan(config: Config, catalogue: Catalogue) -> tuple[Plan, list[Problem]]:
    """As `plan`, for a caller that reports other faults too."""
    planner = _Planner(config, Rules(Index(catalogue)))
    planner.matrix()
    planner.include()
    cells = planner.with_tags()
    return Plan(repository=config.repository, cells=cells, excluded=tuple(planner.excluded)), planner.problems


class _Planner:
    def __init__(self, config: Config, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.cells: dict[str, Cell] = {}  # by identifier
        self.places: dict[str, tuple[int, Path]] = {}  # of cells from `include`
        self.excluded: list[Exclusion] = []
        self.problems: list[Problem] = []

    # -- matrix

    def matrix(self) -> None:
        axes = [self._distinct(self.config.matrix.get(axis, ())) for axis in AXES]
        alive: set[Path] = set()  # axis values with a cell
        reasons: dict[Path, list[str]] = {}  # why the others have none
        hits = [0] * len(self.config.exclude)
        impossible_hits = [0] * len(self.config.exclude)
        for wishes in product(*axes):
            values: Values = tuple(wish.value for wish in wishes)  # type: ignore[assignment]
            found = self._resolve(values)
            rows = [i for i, row in enumerate(self.config.exclude) if row.matches(values)]
            if isinstance(found, Refusal):
                for i in rows:
                    impossible_hits[i] += 1
                self._exclude(values, found.reason, self._nearest(values))
                reason = found.reason
            elif rows:
                for i in rows:
                    hits[i] += 1
                reason = self.config.exclude[rows[0]].reason
                self._exclude(values, reason, None)
            else:
                self.cells[found.identifier] = found
                alive.update(wish.path for wish in wishes)
                continue
            for wish in wishes:
                reasons.setdefault(wish.path, []).append(reason)
        self._dead_values(axes, alive, reasons)
        for row, hit, impossible in zip(self.config.exclude, hits, impossible_hits, strict=True):
            if not hit:
                self._idle_exclude(row, impossible)

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
        ort, cuda, cudnn, base, flavour = values
        kind = self.rules.flavour(flavour)
        if isinstance(kind, Refusal):
            return kind
        found = self.rules.resolve(ort, cuda, cudnn, base)
        if isinstance(found, Refusal):
            return found
        release, cuda_set, row = found
        return Cell(release=release, cuda_set=cuda_set, base=row, flavour=kind)

    def _nearest(self, values: Values) -> str | None:
        return self.rules.nearest(*values[:4])

    def _exclude(self, values: Values, reason: str, nearest: str | None) -> None:
        named = dict(zip(AXES, values, strict=True))
        self.excluded.append(Exclusion(**named, reason=reason, nearest=nearest))

    def _dead_values(self, axes: list[list[Wish]], alive: set[Path], reasons: dict[Path, list[str]]) -> None:
        """Faults for values without any cell; not for all of them where one value has spoilt everything."""
        dead = {wish.path for axis in axes for wish in axis} - alive
        fatal = {wish.path: fault for axis in axes for wish in axis if (fault := self._own_fault(wish))}
        for number, axis in enumerate(axes):
            for wish in axis:
                if wish.path not in dead:
                    continue
                if wish.path in fatal:
                    reason = fatal[wish.path]
                elif any(path in fatal for path in dead if path != wish.path) and not alive:
                    continue  # what spoilt it is told there
                elif wish.path not in reasons:
                    continue
                else:
                    reason = "; ".join(list(dict.fromkeys(reasons[wish.path]))[:2])
                values = [other[0].value for other in axes]
                values[number] = wish.value
                message = f"{quote(wish.value)} yields no cell: {reason}"
                self._problem(wish.line, wish.path, message + _works(self.rules.nearest(*values[:4])))

    def _own_fault(self, wish: Wish) -> str | None:
        """What is wrong with a value of an axis whatever it is combined with, or None."""
        axis = wish.path[1] if len(wish.path) > 1 else "flavour"
        fault = self.rules.alone(str(axis), wish.value)
        return fault.reason if fault else None

    def _idle_exclude(self, row: ExcludeRow, impossible: int) -> None:
        if impossible:
            message = (
                "matches only combinations that cannot exist, which ortimg drops by itself; leave it out"
            )
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
                self._problem(row.line, row.path, found.reason + _works(self._nearest(row.values)))
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
        tags: dict[str, list[str]] = {}
        for tag, wish in self.config.tags:
            if wish.value not in self.cells:
                self._problem(wish.line, wish.path, self._no_cell(wish.value))
            elif tag in self.cells:
                message = f"the tag is a cell's own identifier already, and cannot name {wish.value} too"
                self._problem(wish.line, wish.path, message)
            else:
                tags.setdefault(wish.value, []).append(tag)
        return tuple(
            msgspec.structs.replace(cell, tags=tuple(tags[name])) if name in tags else cell
            for name, cell in self.cells.items()
        )

    def _no_cell(self, identifier: str) -> str:
        for row in self.excluded:
            if identifier == row.identifier:
                return f"{identifier} is not built: {row.reason}" + _works(row.nearest)
        found = difflib.get_close_matches(identifier, list(self.cells), n=1, cutoff=0)
        return f"there is no cell {quote(identifier)}" + _works(found[0] if found else None)

    def _problem(self, line: int, path: Path, message: str) -> None:
        self.problems.append(Problem(line, path, message))


def _works(nearest: str | None) -> str:
    return f"; nearest: {nearest}" if nearest else ""
