"""Inputs of cells: what the lock pins, what the cache holds and since when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ortimg.core.lock import BaseLock, Lock, OrtLock
from ortimg.core.model import Cell, Flavour, Origin
from ortimg.core.report_facts import Held, InputFact
from ortimg.inputs import headers, maven, release, wheels
from ortimg.inputs.cache import Cache
from ortimg.inputs.origins import base_name, repacked_wheel_name
from ortimg.reporting.engine import read_time


def input_facts(cells: Sequence[Cell], lock: Lock, cache: Cache) -> tuple[InputFact, ...]:
    """Each input once, kind by kind, in the order of the cells. Nothing is hashed."""
    kinds = (_archives, _python, _cuda, _bases, _headers)
    return tuple(fact for kind in kinds for fact in kind(cells, lock, cache))


def _archives(cells: Sequence[Cell], lock: Lock, cache: Cache) -> list[InputFact]:
    facts = []
    for key, rows in _by([cell for cell in cells if not cell.wheels], lambda cell: cell.release.key).items():
        row, pin = rows[0].release, lock.ort.get(key, OrtLock())
        pins = {
            Origin.UPSTREAM: pin.upstream,
            Origin.MAVEN: pin.maven and (pin.maven.source or pin.maven.tar),
            Origin.WHEEL: pin.wheel and (pin.wheel.source or pin.wheel.tar),
        }
        facts.append(
            InputFact(
                kind="ONNX Runtime",
                name=key,
                pins=tuple(origin.value for origin, known in pins.items() if known),
                held=_held(cache, [release.name(row), maven.name(row), repacked_wheel_name(row)]),
                upstream=read_time(pin.asset.updated) if pin.asset else None,
                cells=_names(rows),
                part="ort",
            )
        )
    return facts


def _python(cells: Sequence[Cell], lock: Lock, cache: Cache) -> list[InputFact]:
    found = _by([cell for cell in cells if cell.wheels], lambda cell: cell.ort_key)
    return [
        InputFact(
            kind="ONNX Runtime as a wheel, and what it imports",
            name=key,
            pins=(Origin.WHEEL.value,) if key in lock.python else (),
            files=len(rows[0].wheels),
            held=_held(cache, [wheels.name(wheel.filename) for wheel in rows[0].wheels]),
            cells=_names(rows),
            part="ort",
        )
        for key, rows in found.items()
    ]


def _cuda(cells: Sequence[Cell], lock: Lock, cache: Cache) -> list[InputFact]:
    return [
        InputFact(
            kind="CUDA and cuDNN",
            name=key,
            pins=(Origin.WHEEL.value,) if key in lock.cuda else (),
            files=len(rows[0].cuda_set.wheels),
            held=_held(cache, [wheels.name(wheel.filename) for wheel in rows[0].cuda_set.wheels]),
            cells=_names(rows),
            part="cuda",
        )
        for key, rows in _by(cells, lambda cell: cell.cuda_set.key).items()
    ]


def _bases(cells: Sequence[Cell], lock: Lock, cache: Cache) -> list[InputFact]:
    facts = []
    for key, rows in _by(cells, lambda cell: cell.base_key).items():
        base, flavour = rows[0].base, rows[0].flavour
        pin = lock.bases.get(base.name, BaseLock(image=base.image))
        facts.append(
            InputFact(
                kind="base",
                name=f"{key} ({base.image})",
                pins=(Origin.UPSTREAM.value,) if pin.digest else (),
                held=_held(cache, [base_name(base, flavour)]),
                cells=_names(rows),
                part="base",
            )
        )
    return facts


def _headers(cells: Sequence[Cell], lock: Lock, cache: Cache) -> list[InputFact]:
    devel = [cell for cell in cells if cell.flavour is Flavour.DEVEL and cell.release.headers is not None]
    return [
        InputFact(
            kind="headers",
            name=key,
            pins=(Origin.DEBIAN.value,) if (pin := lock.headers.get(key)) and pin.source else (),
            held=_held(cache, [headers.name(rows[0].release)]),
            cells=_names(rows),
            part="headers",
        )
        for key, rows in _by(devel, lambda cell: cell.release.key).items()
    ]


def _by(cells: Sequence[Cell], key: Callable[[Cell], str]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def _names(cells: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(cell.identifier for cell in cells)


def _held(cache: Cache, names: Sequence[str]) -> tuple[Held, ...]:
    found = []
    for name in names:
        entry = cache.peek(name)
        if entry is None:
            continue
        try:
            since = datetime.fromtimestamp(int(cache.index_path(name).stat().st_mtime), UTC)
        except OSError:
            continue  # pruned meanwhile
        found.append(Held(origin=entry.origin, size=entry.size, since=since))
    return tuple(found)
