"""The parts of a run, in the order in which they share engines and the disk."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from bench import limit, machine, naive, ours, packing, planning, pulling, pushing
from bench.inputs import Inputs
from bench.limit import Limit
from bench.machine import Machine
from bench.naive import NaiveCell
from bench.ours import Ours
from bench.packing import Packing
from bench.planning import Planning
from bench.pulling import Pull
from bench.pushing import Second
from bench.state import State
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache
from ortimg.verify.binary import get_verifier

PARTS = ("planning", "ours", "second", "limit", "packing", "pull", "naive", "classic")
# Parts that want the engine and the registry of our side as its build left them.
_SHARED = ("second", "limit", "packing", "pull")
PACKINGS = ("built", "zstd", "gzip")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts are measured with."""

    work: Path  # empty, on the disk that is used
    state: State
    inputs: Sequence[Inputs]
    fetch_root: Path | None  # root file system with curl and pip

    @property
    def cells(self) -> list[str]:
        return [have.cell.identifier for have in self.inputs]

    def all(self, parts: Sequence[str]) -> None:
        """Measure what is not measured yet."""
        if "planning" in parts:
            _say("planning")
            self.state.once("planning", Planning, planning.run)
        self._ours(parts)
        if "naive" in parts:
            self._naive()
        if "classic" in parts:
            self.state.once("classic", NaiveCell, self._classic)

    def _ours(self, parts: Sequence[str]) -> None:
        names = {part: [part] for part in _SHARED} | {"pull": [f"pull-{kind}" for kind in PACKINGS]}
        open_ = [part for part in _SHARED if part in parts and not all(map(self.state.has, names[part]))]
        if not open_ and ("ours" not in parts or self.state.has("ours")):
            return
        with ours.place(self.work / "ours", Cache.default().root) as own:
            self.state.once("machine", Machine, lambda: machine.ask(self.work, own.engine))
            _say(f"ours: building and pushing {len(self.cells)} cells")
            # Seconds of an earlier run stay; this engine is empty all the same.
            found = ours.run(own, self.cells)
            self.state.once("ours", Ours, lambda: found)
            # What the builder told, step by step, to see where the time went; the next run replaces it.
            shutil.rmtree(self.work.parent / "logs", ignore_errors=True)
            shutil.copytree(own.cache / "logs", self.work.parent / "logs")
            if "second" in open_:
                _say("second: another repository of the same registry")
                self.state.once("second", Second, lambda: pushing.run(own, self.cells[0]))
            if "limit" in open_:
                _say("limit: copy, write, compress")
                self.state.once("limit", Limit, lambda: limit.run(own, self.inputs, self.work / "limit"))
            if "packing" in open_:
                _say("packing: one heavy layer in several ways")
                self.state.once(
                    "packing", Packing, lambda: packing.run(own, self.cells, self.work / "packing")
                )
            if "pull" in open_:
                self._pulls(own)

    def _pulls(self, own: ours.Place) -> None:
        stub = get_verifier(Cache.default().root).stub
        first = self.cells[0]
        twin = first.replace("debian12", "debian13")
        cells = [first, twin] if twin in self.cells and twin != first else [first]
        for kind in PACKINGS:
            _say(f"pull: packed as {kind}")
            path = "first" if kind == "built" else kind
            if path != "first":
                own.push(path, cells, "--compression", kind)
            self.state.once(
                f"pull-{kind}", Pull, partial(pulling.run, own, cells, path, self.work / "node", stub)
            )

    def _naive(self) -> None:
        todo = [have for have in self.inputs if not self.state.has(_file(have))]
        if not todo or self.fetch_root is None:
            return
        with naive.naive_engine(self.work / "naive", todo, self.fetch_root) as own:
            self.state.once("machine", Machine, lambda: machine.ask(self.work, own))
            for number, have in enumerate(todo, 1):
                _say(f"naive: {have.cell.identifier}, {number} of {len(todo)}")
                self.state.keep(_file(have), naive.run(own, have, self.work / "cell"))

    def _classic(self) -> NaiveCell:
        """One cell of the naive side in an engine with its older store, which packs when it pushes."""
        assert self.fetch_root is not None
        have = self.inputs[0]
        _say(f"classic: {have.cell.identifier} in the engine's older store")
        with naive.naive_engine(
            self.work / "classic", [have], self.fetch_root, containerd_store=False
        ) as own:
            return naive.run(own, have, self.work / "cell")


def naive_cells(state: State, inputs: Sequence[Inputs]) -> list[tuple[Inputs, NaiveCell]]:
    """What the naive side has measured. Raises EnvironmentFault where a cell of `inputs` is not there."""
    found = [(have, state.read(_file(have), NaiveCell)) for have in inputs]
    lost = [have.cell.identifier for have, cell in found if cell is None]
    if lost and len(lost) < len(found):
        raise EnvironmentFault(f"not measured yet: {', '.join(lost)}", "run it again: it goes on from there")
    return [(have, cell) for have, cell in found if cell is not None]


def _file(have: Inputs) -> str:
    return f"naive-{have.cell.identifier}"


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
