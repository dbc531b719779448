"""Disk space: what a build will need, and giving back what only its steps needed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from ortimg.core.disk_need import engine_need
from ortimg.core.model import Cell, CudaWheel
from ortimg.engine.cache import CacheRecord, prune_cache
from ortimg.engine.check import EngineInfo, require_free_space
from ortimg.engine.client import Engine
from ortimg.factory.images import PREFIX
from ortimg.inputs.cache import Cache
from ortimg.inputs.wheels import name as wheel_name

# How the builder calls the records of our units and roots: contexts, unpacking, compiling, the units' copies.
_INTERMEDIATE = re.compile(
    r"^local source for (ort-archive|cuda-archive|headers-archive|context)$"
    r"|^mount / from exec .*"
    r"(/tools/pick_libraries\.py|/tools/cut_runpath\.py|/onnxruntime_c_api\.h|ZIG_GLOBAL_CACHE_DIR)"
    r"|^\[(cuda|ort|ort-devel|ort-verify|cuda-stub) \d+/\d+\] "
    r"(LINK )?COPY (--link )?--from=[a-z-]+-(unpack|compile) "
    r"|^\[1/1\] ADD root\.tar /$",
    re.DOTALL,
)


def require_space(cells: Sequence[Cell], engine: Engine, cache: Cache, info: EngineInfo) -> None:
    """Raise EnvironmentFault, with the need in the message, where a build of `cells` would fill the disk."""
    units = {
        image.rpartition("/")[2] for row in engine.images(reference=f"{PREFIX}/*") for image in row.references
    }
    wheels = {cell.cuda_set.key: cell.cuda_set.wheels for cell in cells}
    names = {f"cuda:{key}-": key for key in wheels} | {
        f"ort:{cell.unit_key}-": cell.unit_key for cell in cells
    }
    there = [key for name, key in names.items() if any(unit.startswith(name) for unit in units)]
    needs = {cache.root: _downloads(wheels.values(), cache)}
    if info.data_root is not None and info.free_bytes is not None:
        needs[info.data_root] = engine_need(cells, there)
        if _same_disk(info.data_root, cache.root):
            needs[info.data_root] += needs.pop(cache.root)
    for path, need in needs.items():
        require_free_space(path, need, "this build")


def _downloads(sets: Iterable[tuple[CudaWheel, ...]], cache: Cache) -> int:
    """Bytes of the wheels that are not in the cache."""
    return sum(
        wheel.size for wheels in sets for wheel in wheels if cache.peek(wheel_name(wheel.filename)) is None
    )


def _same_disk(one: Path, other: Path) -> bool:
    try:
        return one.stat().st_dev == other.stat().st_dev
    except OSError:
        return False


def builder_name() -> str:
    """The builder inside the engine itself: it alone sees the engine's images by name."""
    shown = subprocess.run(["docker", "context", "show"], capture_output=True, text=True, check=False)
    return shown.stdout.strip() or "default"


def prune_intermediates(engine: Engine) -> int:
    """Give back what only the steps of units and roots needed, once their images are there; bytes freed.

    The steps of the cells stay: with them a changed label or line is a matter of seconds.
    """
    return prune_cache(engine, is_intermediate)


def is_intermediate(record: CacheRecord) -> bool:
    """Whether a record of the builder is one of the steps of units and roots."""
    return _INTERMEDIATE.search(record.description) is not None
