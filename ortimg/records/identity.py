"""What an image or an unpacked root is, so that a record can be held against it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ortimg.engine.client import Engine, Image
from ortimg.records.record import Identity

MANIFEST = "/usr/share/ortimg/manifest.json"
_PROVIDER = "libonnxruntime_providers_cuda.so"


def image_identity(image: Image) -> Identity:
    """By its labels; an image that ortimg did not build has none."""
    return Identity(
        identifier=image.labels.get("ortimg.identifier"), content=image.labels.get("ortimg.content")
    )


def root_identity(folder: Path) -> Identity:
    """By its manifest and ONNX Runtime's libraries; a root that ortimg did not build has no manifest."""
    manifest = _inside(folder, MANIFEST)
    if manifest is None:
        return Identity()
    try:
        facts = json.loads(manifest.read_bytes())
        identifier, ort = str(facts["identifier"]), facts["ort"]
        prefix, version = str(ort["prefix"]), str(ort["version"])
        site = (ort.get("python") or {}).get("site")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Identity()
    library = f"{site}/onnxruntime/capi" if site else f"{prefix}/lib"
    paths = (MANIFEST, f"{library}/libonnxruntime.so.{version}", f"{library}/{_PROVIDER}")
    found = {path: file for path in paths if (file := _inside(folder, path)) is not None}
    return Identity(identifier=identifier, files={path: _sha256(file) for path, file in found.items()})


def differences(engine: Engine, image: Image, identity: Identity) -> list[str]:
    """What of a root's identity the image does not have."""
    found = []
    label = image.labels.get("ortimg.identifier")
    if identity.identifier != label:
        found.append(f"the cell is {identity.identifier}, the image is {label or 'of no cell'}")
    there = engine.file_hashes(image.id, [*identity.files]) if identity.files else {}
    for path, digest in identity.files.items():
        if path not in there:
            found.append(f"the image has no {path}")
        elif there[path] != digest:
            found.append(f"{path} is another file in the image")
    return found


def _inside(folder: Path, path: str) -> Path | None:
    """The regular file at `path` of a root; None where it is absent, or a link leads out of the root."""
    root, file = folder.resolve(), (folder / path.lstrip("/")).resolve()
    return file if file.is_relative_to(root) and file.is_file() else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
