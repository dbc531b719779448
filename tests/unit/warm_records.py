"""Made-up records of warm-ups, as warm.sh writes them, and made-up caches. No GPU ever wrote these."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

IDENTIFIER = "1.16.2-cuda11.8-cudnn8-debian12"
PROVIDER = "libonnxruntime_providers_cuda.so"
SHA256 = "ab" * 32
UNWRITABLE = ("read-only-mount", "other-uid", "no-write-bits")
SECONDS = {"cold": 9.9, "second": 0.5, "copied": 0.55} | dict.fromkeys(UNWRITABLE, 0.6)


def report(passed: bool, seconds: float | None) -> dict[str, Any]:
    """A report of `ort-verify --tier run`."""
    finding = {
        "check": "run.session",
        "verdict": "ok" if passed else "fail",
        "evidence": "ran" if passed else "CUDA failure 223: PTX JIT compilation was disabled",
        "cure": None,
    }
    device = {"id": 0, "name": "NVIDIA H200", "compute": "9.0", "driver": "580.159.04"}
    run: dict[str, Any] = {"model": "the model of ort-verify", "date": "2026-12-01T09:35:58Z"}
    run |= {"device": device, "seconds": {"first_run": seconds} if seconds else {"session": 0.1}}
    verdict = "pass" if passed else "fail"
    return {
        "schema": 1,
        "target": "a root",
        "tier": "run",
        "verdict": verdict,
        "findings": [finding],
        "run": run,
    }


def start(name: str, passed: bool | None = None) -> dict[str, Any]:
    """One start; without `passed` it ends as it should."""
    good = name != "no-cache" if passed is None else passed
    seconds = SECONDS.get(name, 0.5) if good else None
    jit = name != "no-cache" and not name.endswith("-no-jit")
    return {"name": name, "ptx_jit": jit, "exit": 0 if good else 1, "report": report(good, seconds)}


def starts(read_only: bool = False, skipped: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The starts of a good warm-up. `read_only`: the driver uses a cache that it cannot write to."""
    names = ["no-cache", "cold", *["second"] * 3, "second-no-jit", "copied-no-jit", *["copied"] * 3]
    made = [start(name) for name in names]
    for kind in UNWRITABLE:
        if kind in skipped:
            continue
        made.append(start(f"{kind}-no-jit", read_only))
        made += [start(kind)] * 3 if read_only else []
    return copy.deepcopy(made)


def record(**changes: Any) -> dict[str, Any]:
    """A whole record of a warm-up that went well, with a driver as it was seen on a GPU: it must write."""
    whole = {
        "schema": 1,
        "kind": "ortimg.warm",
        "identifier": IDENTIFIER,
        "libraries": {PROVIDER: SHA256},
        "cache_limit": 2147483647,
        "attempts": starts(),
    }
    return copy.deepcopy(whole) | changes


def made_up_cache(folder: Path) -> Path:
    """Folders, hex names and an index, as CUDA's compute cache has them; of no use to any GPU."""
    (folder / "a" / "0").mkdir(parents=True)
    (folder / "a" / "0" / "5f3c81").write_bytes(b"MADE UP, NO KERNEL" * 100)
    (folder / "index").write_bytes(b"MADE UP, NO INDEX")
    return folder


def made_up(folder: Path, **changes: Any) -> Path:
    """The folder that a warm-up leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "warm.json").write_text(json.dumps(record(**changes)))
    made_up_cache(folder / "cache")
    return folder
