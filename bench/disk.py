"""Bytes on the disk, and how fast it is."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path


def bytes_below(folder: Path) -> int:
    """What the files take on the disk; a file with several names counts once, mounts are left out."""
    device = folder.stat().st_dev
    seen: set[int] = set()
    total = 0
    for place, folders, files in os.walk(folder):
        kept = []
        for name in folders:
            stat = os.lstat(os.path.join(place, name))  # noqa: PTH118 (a million of them)
            if stat.st_dev == device:
                kept.append(name)
        folders[:] = kept
        for name in files:
            try:
                stat = os.lstat(os.path.join(place, name))  # noqa: PTH118
            except FileNotFoundError:
                continue
            if stat.st_ino not in seen:
                seen.add(stat.st_ino)
                total += stat.st_blocks * 512
    return total


def write_rate(folder: Path, size: int = 1 << 30) -> float:
    """Bytes a second that the disk takes in one stream, until they are on it."""
    block = os.urandom(1 << 22)
    target = folder / "rate"
    began = time.perf_counter()
    with target.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - began
    target.unlink()
    return size / seconds


class DiskWatch:
    """Bytes that a disk fills up by at the most while the block runs; others on it count too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._start = shutil.disk_usage(folder).used
        self.peak = 0

    def __enter__(self) -> DiskWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            self.peak = max(self.peak, shutil.disk_usage(self._folder).used - self._start)
