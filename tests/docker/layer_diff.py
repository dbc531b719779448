"""What differs between two images of the engine: which layer, which path, which field."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any

import zstandard

_HEAVY = 200_000_000  # bytes; larger layers are compared by their digests alone


def differences(first: str, second: str) -> list[str]:
    """One line each, `layer 4: etc: mtime 1 → 2`; none for images of one digest."""
    with subprocess.Popen(["docker", "save", first, second], stdout=subprocess.PIPE) as save:
        assert save.stdout is not None
        blobs, index = _read(save.stdout)  # type: ignore[arg-type]
    assert save.returncode == 0
    one, two = (_manifest(blobs, index, name) for name in (first, second))
    if one == two:
        return []
    configs = [json.loads(blobs[row["config"]["digest"]]) for row in (one, two)]
    found = [f"configuration: {line}" for line in _fields(*configs)]
    if len(one["layers"]) != len(two["layers"]):
        return [*found, f"{len(one['layers'])} layers → {len(two['layers'])}"]
    for number, layers in enumerate(zip(one["layers"], two["layers"], strict=True)):
        digests = [layer["digest"] for layer in layers]
        if digests[0] != digests[1]:
            found += [f"layer {number}: {line}" for line in _layers(*(blobs.get(name) for name in digests))]
    return found or ["manifest"]


def _read(stream: io.BufferedReader) -> tuple[dict[str, bytes], dict[str, Any]]:
    blobs, index = {}, {}
    with tarfile.open(fileobj=stream, mode="r|") as image:
        for member in image:
            if (file := image.extractfile(member)) is None:
                continue
            if member.name == "index.json":
                index = json.load(file)
            elif member.name.startswith("blobs/") and member.size < _HEAVY:
                blobs["sha256:" + member.name.rpartition("/")[2]] = file.read()
    return blobs, index


def _manifest(blobs: dict[str, bytes], index: dict[str, Any], name: str) -> dict[str, Any]:
    (digest,) = {
        row["digest"]
        for row in index["manifests"]
        if row["annotations"]["io.containerd.image.name"].endswith(f"/{name}")
    }
    found: dict[str, Any] = json.loads(blobs[digest])
    return found


def _layers(one: bytes | None, two: bytes | None) -> Iterator[str]:
    if one is None or two is None:
        yield "too large to be read here"
        return
    files = _files(one), _files(two)
    same = True
    for path in sorted(files[0].keys() | files[1].keys()):
        if not all(path in side for side in files):
            yield f"{path}: only in {'the first' if path in files[0] else 'the second'}"
            same = False
            continue
        for line in _fields(files[0][path], files[1][path]):
            yield f"{path}: {line}"
            same = False
    if same:
        yield "packed in another way, or in another order"


def _files(layer: bytes) -> dict[str, dict[str, Any]]:
    found = {}
    with tarfile.open(
        fileobj=zstandard.ZstdDecompressor().stream_reader(io.BytesIO(layer)), mode="r|"
    ) as tar:
        for row in tar:
            data = tar.extractfile(row)
            found[row.name] = {
                "type": row.type,
                "mode": row.mode,
                "owner": (row.uid, row.gid, row.uname, row.gname),
                "mtime": row.mtime,
                "link": row.linkname,
                "sha256": hashlib.sha256(data.read()).hexdigest() if data else None,
                "attributes": sorted(row.pax_headers.items()),
            }
    return found


def _fields(one: dict[str, Any], two: dict[str, Any]) -> Iterator[str]:
    for key in sorted(one.keys() | two.keys()):
        if one.get(key) != two.get(key):
            yield f"{key} {one.get(key)} → {two.get(key)}"
