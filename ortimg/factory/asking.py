"""Which inputs a cell is made of: what the cache knows of each, and how to have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

import msgspec

from ortimg.core.model import Cell, Flavour
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.result import Fetched, Kind, Result


class Ask(msgspec.Struct, frozen=True):
    """One input."""

    known: Fetched | None  # by the cache's index, nothing read; None: it must be had first
    fetch: Callable[[], Future[Result]]  # the same future each time


def asks(fetcher: Fetcher, cell: Cell) -> Mapping[Kind, Ask]:
    """The inputs of `cell` by kind; ONNX Runtime's archive and its wheels are both of the kind `ORT` here."""
    row, base, flavour = cell.release, cell.base, cell.flavour
    found = {
        Kind.BASE: Ask(fetcher.known_base(base, flavour), lambda: fetcher.base(base, flavour)),
        Kind.ORT: Ask(fetcher.known_ort(row), lambda: fetcher.ort(row))
        if not cell.wheels
        else Ask(
            fetcher.known_python(cell.ort_key, cell.wheels),
            lambda: fetcher.python(cell.ort_key, cell.wheels),
        ),
        Kind.CUDA: Ask(fetcher.known_cuda(cell.cuda_set), lambda: fetcher.cuda(cell.cuda_set)),
    }
    if flavour is Flavour.DEVEL:
        found[Kind.HEADERS] = Ask(fetcher.known_headers(row), lambda: fetcher.headers(row))
    return found


def at_once(asked: Mapping[Kind, Ask], may_be_had: bool) -> tuple[Kind, ...]:
    """What is fetched side by side; of a cell that may well be unavailable not the gigabytes of CUDA, yet."""
    return tuple(
        kind for kind, ask in asked.items() if ask.known is None and (may_be_had or kind is not Kind.CUDA)
    )
