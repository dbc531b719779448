"""What differs between two images, of the engine or in OCI layouts: which layer, which path, which field."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import zstandard

_HEAVY = 200_000_000  # bytes; larger layers of the engine are compared by their digests alone
Blobs = Mapping[str, "bytes | Path"]


def differences(first: str, second: str) -> list[str]:
    """One line each, `layer 4: etc: mtime 1 → 2`; none for images of one digest."""
    with subprocess.Popen(["docker", "save", first, second], stdout=subprocess.PIPE) as save:
        assert save.stdout is not None
        blobs, index = _read(save.stdout)  # type: ignore[arg-type]
    assert save.returncode == 0
    one, two = (_manifest(blobs, index, name) for name in (first, second))
    return _compare(blobs, blobs, one, two)


def layout_differences(first: Path, second: Path) -> list[str]:
    """The same of two OCI layouts of one image each; layers of any size are read."""
    sides = [
        {f"sha256:{path.name}": path for path in folder.glob("blobs/sha256/*")} for folder in (first, second)
    ]
    rows = [json.loads((folder / "index.json").read_bytes())["manifests"][0] for folder in (first, second)]
    one, two = (json.loads(blobs[row["digest"]].read_bytes()) for blobs, row in zip(sides, rows, strict=True))
    return _compare(*sides, one, two)


def _compare(ours: Blobs, theirs: Blobs, one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    if one == two:
        return []
    pairs = ((ours, one), (theirs, two))
    configs = [json.load(_open(blobs[row["config"]["digest"]])) for blobs, row in pairs]
    found = [f"configuration: {line}" for line in _fields(*configs)]
    if len(one["layers"]) != len(two["layers"]):
        return [*found, f"{len(one['layers'])} layers → {len(two['layers'])}"]
    for number, layers in enumerate(zip(one["layers"], two["layers"], strict=True)):
        digests = [layer["digest"] for layer in layers]
        if digests[0] != digests[1]:
            sides = (blobs.get(name) for blobs, name in zip((ours, theirs), digests, strict=True))
            found += [f"layer {number}: {line}" for line in _layers(*sides)]
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


def _open(blob: bytes | Path) -> IO[bytes]:
    return io.BytesIO(blob) if isinstance(blob, bytes) else blob.open("rb")


def _layers(one: bytes | Path | None, two: bytes | Path | None) -> Iterator[str]:
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


def _files(layer: bytes | Path) -> dict[str, dict[str, Any]]:
    found = {}
    with (
        _open(layer) as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for row in tar:
            data = tar.extractfile(row)
            found[row.name] = {
                "type": row.type,
                "mode": row.mode,
                "owner": (row.uid, row.gid, row.uname, row.gname),
                "mtime": row.mtime,
                "link": row.linkname,
                "sha256": hashlib.file_digest(data, "sha256").hexdigest() if data else None,
                "attributes": sorted(row.pax_headers.items()),
            }
    return found


def _fields(one: dict[str, Any], two: dict[str, Any]) -> Iterator[str]:
    for key in sorted(one.keys() | two.keys()):
        if one.get(key) != two.get(key):
            yield f"{key} {one.get(key)} → {two.get(key)}"
