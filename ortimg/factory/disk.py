"""Disk space: what a build will need, and giving back what only its steps needed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from ortimg.core.model import Cell
from ortimg.engine.cache import CacheRecord, prune_cache
from ortimg.engine.check import EngineInfo, require_free_space
from ortimg.engine.client import Engine
from ortimg.inputs.cache import Cache
from ortimg.inputs.wheels import name as wheel_name

# Bytes of disk for each byte of a CUDA set's wheels while its unit is built, beside the wheels themselves:
# the context that is sent (1), the libraries unpacked twice, the unit's image packed and unpacked (1.4 each).
CUDA_FACTOR = 6
ORT_BYTES = 2_500_000_000  # the same for one ORT archive, download included: 2.3 GB was the most measured
# How the builder calls the records of our units and roots: contexts, unpacking, compiling, the units' copies.
_INTERMEDIATE = re.compile(
    r"^local source for (ort-archive|cuda-archive|context)$"
    r"|^mount / from exec .*(/tools/pick_libraries\.py|/tools/cut_runpath\.py|ZIG_GLOBAL_CACHE_DIR)"
    r"|^\[(cuda|ort|ort-verify|cuda-stub) \d+/\d+\] COPY --from=[a-z-]+-(unpack|compile) "
    r"|^\[1/1\] ADD root\.tar /$",
    re.DOTALL,
)
CELL_BYTES = 500_000_000  # a base, packed, unpacked and as the builder keeps it


def require_space(cells: Sequence[Cell], engine: Engine, cache: Cache, info: EngineInfo) -> None:
    """Raise EnvironmentFault, with the need in the message, where a build of `cells` would fill the disk."""
    units = {
        image.rpartition("/")[2]
        for row in engine.images(reference="localhost/ortimg/*")
        for image in row.references
    }
    sets = {cell.cuda_set.key: cell.cuda_set for cell in cells}
    releases = {cell.release.key for cell in cells}
    download = sum(
        wheel.size
        for row in sets.values()
        for wheel in row.wheels
        if cache.peek(wheel_name(wheel.filename)) is None
    )
    engine_bytes = len(cells) * CELL_BYTES
    engine_bytes += sum(
        CUDA_FACTOR * sum(wheel.size for wheel in row.wheels)
        for key, row in sets.items()
        if not any(unit.startswith(f"cuda:{key}-") for unit in units)
    )
    engine_bytes += sum(
        ORT_BYTES for key in releases if not any(unit.startswith(f"ort:{key}-") for unit in units)
    )
    if info.data_root is not None:
        require_free_space(info.data_root, engine_bytes, "the engine, for this build,")
    require_free_space(cache.root, download, "the cache, for this build,")


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
