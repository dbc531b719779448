"""Sets of wheels that belong together: NVIDIA's libraries, or ONNX Runtime's wheel and what it imports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ortimg.core.model import Origin, Wheel
from ortimg.errors import OrtimgError
from ortimg.inputs import wheels
from ortimg.inputs.cache import Cache, Entry
from ortimg.inputs.download import WrongFile
from ortimg.inputs.result import Fetched, File, Kind, Missing, Result

PIPS = 2  # pip processes at once, about 40 MB each
Tell = Callable[[Kind, str, str, int, int | None], None]
Rows = Sequence[Wheel]


class WheelSets:
    """Brings whole sets into the cache; several threads may call it at once."""

    def __init__(self, cache: Cache, stop: threading.Event, tell: Tell) -> None:
        self._cache = cache
        self._stop = stop
        self._tell = tell
        self.pips = threading.Semaphore(PIPS)

    def fetch(self, kind: Kind, key: str, rows: Rows) -> Result:
        """All wheels of a set, from the cache or by pip, or `Missing` with every fault."""
        fetching: dict[str, int] = {}

        def one(row: Wheel) -> tuple[Entry, bool]:
            with self._cache.locked(wheels.name(row.filename), self._stop):
                if (entry := wheels.cached_wheel(self._cache, row.filename, row.sha256)) is not None:
                    return entry, True

                def progress(done: int, _total: int | None) -> None:
                    fetching[row.filename] = done
                    whole = sum(wheel.size for wheel in rows)
                    self._tell(kind, key, "wheels", sum(fetching.values()), whole)

                with self.pips:
                    entry = wheels.fetch_wheel(
                        self._cache,
                        row.requirement,
                        row.filename,
                        row.sha256,
                        row.size,
                        stop=self._stop,
                        progress=progress,
                    )
                fetching[row.filename] = row.size
                return entry, False

        with ThreadPoolExecutor(len(rows) or 1, thread_name_prefix=f"{kind.value}-{key}") as pool:
            jobs = [pool.submit(one, row) for row in rows]
            faults = [error for job in jobs if (error := job.exception()) is not None]
        for fault in faults:
            if not isinstance(fault, OrtimgError):
                raise fault
        if faults:
            told = (fault.message for fault in faults if isinstance(fault, OrtimgError))
            messages = tuple(dict.fromkeys(told))  # a full disk is no news the fifth time
            wrong = any(isinstance(fault, WrongFile) for fault in faults)
            hint = next((fault.hint for fault in faults if isinstance(fault, OrtimgError)), None)
            return Missing(kind=kind, key=key, reasons=messages, wrong=wrong, hint=hint)
        results = [job.result() for job in jobs]
        entries = [entry for entry, _ in results]
        return self._result(kind, key, rows, entries, cached=all(cached for _, cached in results))

    def known(self, kind: Kind, key: str, rows: Rows) -> Fetched | None:
        """The set as the cache's index knows it, not read."""
        entries = [self._cache.peek(wheels.name(row.filename)) for row in rows]
        there = [entry for entry in entries if entry is not None]
        if [entry.sha256 for entry in there] != [row.sha256 for row in rows]:
            return None
        return self._result(kind, key, rows, there, cached=True)

    def _result(self, kind: Kind, key: str, rows: Rows, entries: list[Entry], *, cached: bool) -> Fetched:
        files = [file_of(self._cache, row.filename, entry) for row, entry in zip(rows, entries, strict=True)]
        return Fetched(
            kind=kind,
            key=key,
            origin=Origin.WHEEL,
            files=tuple(files),
            identity=" ".join(file.sha256 for file in files),
            cached=cached,
        )


def file_of(cache: Cache, name: str, entry: Entry) -> File:
    """An entry of the cache as a file of an input, called `name`."""
    return File(name=name, path=cache.path(entry), sha256=entry.sha256, size=entry.size)
