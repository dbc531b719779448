"""Which cells can be built from what the cache holds, and the files that they are made of."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench import ROOT
from ortimg.core.lock import Lock
from ortimg.core.mirrors import NO_MIRRORS
from ortimg.core.model import Cell
from ortimg.core.selectors import select
from ortimg.errors import ConfigError
from ortimg.inputs.bootstrap import base_root
from ortimg.inputs.cache import Cache, Entry
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.probe import Upstream
from ortimg.inputs.result import Fetched, File
from ortimg.project import load_project


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a cell, in the cache."""

    cell: Cell
    archive: File | None  # None: the flavour takes ONNX Runtime from a wheel
    wheels: tuple[File, ...]  # of CUDA and cuDNN
    python: tuple[File, ...]  # ONNX Runtime's wheel and what it imports
    base: File  # the root file system

    @property
    def files(self) -> tuple[File, ...]:
        archive = (self.archive,) if self.archive else ()
        return (*archive, *self.wheels, *self.python, self.base)


def choose(selectors: Sequence[str], cache: Cache) -> list[Inputs]:
    """Cells that `selectors` name and whose inputs the cache holds.

    Raises ConfigError where there is none.
    """
    cells = select(load_project(ROOT).plan.cells, list(selectors), [])
    lock = read_lock(ROOT)
    found = [have for cell in cells if (have := _inputs(cell, cache, lock)) is not None]
    if not found:
        raise ConfigError(
            "no cell whose inputs are all in the cache", hint="Run `make images`, or name others with CELLS."
        )
    return found


def fetch_root(folder: Path) -> Path:
    """A Debian with curl and pip, as `python:3.11-slim` with curl would be; made once, then kept."""
    cache = Cache(folder)
    entry = cache.get("base/fetch/bootstrap") or _bootstrap(cache)
    return cache.path(entry)


def _bootstrap(cache: Cache) -> Entry:
    packages = ("curl", "python3-pip")
    return base_root(cache, "base/fetch/bootstrap", "bookworm", packages, threading.Event(), print)


def _inputs(cell: Cell, cache: Cache, lock: Lock) -> Inputs | None:
    nobody = Upstream(releases="not asked", hub="not asked")
    with Fetcher(cache, lock=lock, mirrors=NO_MIRRORS, upstream=nobody) as fetcher:
        cuda, base = fetcher.known_cuda(cell.cuda_set), fetcher.known_base(cell.base, cell.flavour)
        python: Fetched | None = None
        archive: Fetched | None = None
        if cell.wheels:
            python = fetcher.known_python(cell.ort_key, cell.wheels)
        else:
            archive = fetcher.known_ort(cell.release)
    if cuda is None or base is None or not base.files or (python is None and archive is None):
        return None
    return Inputs(
        cell=cell,
        archive=archive.files[0] if archive else None,
        wheels=cuda.files,
        python=python.files if python else (),
        base=base.files[0],
    )
