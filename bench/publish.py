"""From what was measured to what is kept: bench/results/DATE.json, its plot, the README's lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench import RESULTS, ROOT, nvidia
from bench.inputs import Inputs, choose
from bench.limit import Limit
from bench.machine import Machine
from bench.naive import NaiveCell, spared
from bench.ours import Ours
from bench.packing import Packing
from bench.parts import PACKINGS, naive_cells
from bench.planning import Planning
from bench.plot import write_plot
from bench.pulling import Pull
from bench.pushing import Second
from bench.readme import update
from bench.result import SCHEMA, Measured, Result, ratios
from bench.state import State
from bench.words import line
from ortimg import __version__
from ortimg.errors import ConfigError
from ortimg.inputs.cache import Cache


def publish(state: State, selectors: Sequence[str], parts: Sequence[str]) -> Path:
    """Write all of it; gives the path of the result. A run of today replaces today's."""
    inputs = choose(selectors, Cache.default())
    found = _measured(state, inputs, parts)
    machine = state.read("machine", Machine)
    if machine is None:
        for ratio in ratios(found):
            print(line(ratio))
        print("no result is written: only parts were measured that need no engine", file=sys.stderr)
        return RESULTS
    result = Result(
        schema=SCHEMA,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        version=__version__,
        commit=_commit(),
        machine=machine,
        cells=tuple(have.cell.identifier for have in inputs),
        measured=found,
        ratios=ratios(found),
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{result.date[:10]}.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    write_plot(result, target.with_suffix(".svg"))
    update(result, target)
    for ratio in result.ratios:
        print(line(ratio))
    print(target.relative_to(ROOT))
    return target


def newest() -> tuple[Result, Path]:
    """The last run that was kept. Raises ConfigError where there is none, or another schema."""
    files = sorted(RESULTS.glob("*.json"))
    if not files:
        raise ConfigError("bench/results holds no run", hint="Run `make bench`.")
    return read(files[-1]), files[-1]


def read(path: Path) -> Result:
    """Raises ConfigError for a file that is no result of this schema."""
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path.name}: {error}", hint="Run `make bench`.") from None
    if result.schema != SCHEMA:
        raise ConfigError(f"{path.name} has the schema {result.schema}", hint="Run `make bench`.")
    return result


def _measured(state: State, inputs: Sequence[Inputs], parts: Sequence[str]) -> Measured:
    """What of `parts` was measured."""

    def of(part: str) -> bool:
        return part in parts

    naive = naive_cells(state, inputs) if of("naive") else []
    pulls = {kind: state.read(f"pull-{kind}", Pull) for kind in PACKINGS} if of("pull") else {}
    return Measured(
        planning=state.read("planning", Planning) if of("planning") else None,
        ours=state.read("ours", Ours),
        second=state.read("second", Second) if of("second") else None,
        limit=state.read("limit", Limit) if of("limit") else None,
        packing=state.read("packing", Packing) if of("packing") else None,
        pulls={kind: pull for kind, pull in pulls.items() if pull is not None},
        naive={have.cell.identifier: cell for have, cell in naive},
        spared=round(spared(naive), 2) if naive else None,
        classic=state.read("classic", NaiveCell) if of("classic") else None,
        nvidia=nvidia.read(),
    )


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> int:
    """python -m bench.publish: the plot and the README's lines of the newest result, once more."""
    result, path = newest()
    write_plot(result, path.with_suffix(".svg"))
    update(result, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
