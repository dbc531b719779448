"""Threads that carry layers to the registry while the next ones are still being read.

Daemons: a program that is told to end does not wait for a registry that is silent.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from ortimg.errors import OrtimgError
from ortimg.registry.transport import StoppedTransfer

Job = Callable[[], None]


class Couriers:
    """Runs jobs, `count` at a time; a job more may wait. Faults are kept by the job's name."""

    def __init__(self, count: int, cancel: threading.Event) -> None:
        self.cancel = cancel
        self.faults: dict[str, OrtimgError] = {}
        self._bugs: list[BaseException] = []
        self._queue: queue.Queue[tuple[str, Job] | None] = queue.Queue(maxsize=1)
        self._threads = [
            threading.Thread(target=self._work, name=f"push-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def give(self, name: str, job: Job) -> None:
        """Hands a job over, waiting for a free hand: what waits takes disk. Nothing after a cancel."""
        while not self.cancel.is_set():
            try:
                self._queue.put((name, job), timeout=0.1)
                return
            except queue.Full:
                continue

    def finish(self) -> None:
        """Returns when all jobs have ended."""
        for _ in self._threads:
            self._put_end()
        for thread in self._threads:
            thread.join()
        if self._bugs:
            raise self._bugs[0]

    def stop(self, seconds: float) -> None:
        """Ends what runs; waits for `seconds` at the most."""
        self.cancel.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _put_end(self) -> None:
        while any(thread.is_alive() for thread in self._threads):
            try:
                self._queue.put(None, timeout=0.1)
                return
            except queue.Full:
                continue

    def _work(self) -> None:
        while True:
            try:
                found = self._queue.get(timeout=0.1)
            except queue.Empty:
                if self.cancel.is_set():
                    return
                continue
            if found is None:
                return
            name, job = found
            try:
                if not self.cancel.is_set():
                    job()
            except StoppedTransfer:
                return
            except OrtimgError as error:
                self.faults[name] = error
            except BaseException as error:  # a bug: shown where the others are waited for
                self._bugs.append(error)
                self.cancel.set()
