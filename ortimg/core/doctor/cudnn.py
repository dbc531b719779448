"""cuDNN opens its parts when they are used: nothing misses one until the first convolution."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ortimg.core.doctor.facts import LibraryFile, Snapshot, file_version
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.names import Check

_CUDNN = re.compile(r"libcudnn\.so\.([0-9]+)")
# What a run opens (measured): cuDNN 8's cnn_train and adv_train serve training alone.
PARTS = {
    8: ("ops_infer", "cnn_infer", "adv_infer"),
    9: ("graph", "engines_precompiled", "engines_runtime_compiled", "heuristic", "ops", "cnn", "adv"),
}


def check_cudnn(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    """Each cuDNN that the loader finds: whole, one version, one folder."""
    for name in sorted({one.name for one in snapshot.libraries if _CUDNN.fullmatch(one.name)}):
        hits = loader.all(name)
        if not hits:
            continue
        major = int(name.rpartition(".")[2])
        yield from _parts(snapshot, loader, hits[0].library, major)
        if len(hits) > 1:
            listed = ", then ".join(hit.library.path for hit in hits)
            yield warn(Check.CUDNN_MIXED, f"the loader meets several {name}: {listed}", None, name)


def _parts(snapshot: Snapshot, loader: Loader, main: LibraryFile, major: int) -> Iterator[Found]:
    folder = {main.folder, main.real.rpartition("/")[0]}
    missing: list[str] = []
    elsewhere: list[str] = []
    versions = {version for version in [_version(main)] if version}
    for part in PARTS.get(major, ()):
        name = f"libcudnn_{part}.so.{major}"
        beside = [one for one in snapshot.libraries if one.name == name and one.folder in folder]
        # libcudnn looks in LD_LIBRARY_PATH first, then beside itself, then everywhere
        hit = loader.first(name)
        taken = hit.library if hit and (hit.by == "LD_LIBRARY_PATH" or not beside) else None
        library = taken or (beside[0] if beside else None)
        if library is None:
            missing.append(name)
            continue
        if library.folder not in folder and library.real.rpartition("/")[0] not in folder:
            elsewhere.append(library.path)
        versions |= {version for version in [_version(library)] if version}
    if missing:
        yield fail(
            Check.CUDNN_PARTS,
            f"{main.path} lacks {', '.join(missing)}: the first operator that needs it aborts",
            None,
            *missing,
        )
    if elsewhere:
        yield fail(
            Check.CUDNN_MIXED,
            f"{', '.join(elsewhere[:3])} not from the folder of {main.path}: two cuDNNs mixed",
            None,
            *(path.rpartition("/")[2] for path in elsewhere[:3]),
        )
    if len(versions) > 1:
        yield fail(Check.CUDNN_MIXED, f"parts of cuDNN {' and '.join(sorted(versions))} around {main.path}")
    if not missing and not elsewhere and len(versions) < 2 and major in PARTS:
        yield ok(Check.CUDNN_PARTS, f"{main.path} has all its parts beside it")


def _version(library: LibraryFile) -> str | None:
    version = file_version(library)
    in_name = library.real.rpartition(".so")[2].count(".") > 1
    return version if in_name else None
