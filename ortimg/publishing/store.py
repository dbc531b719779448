"""The engine's own store of layers, read as files where this user may: as root on the engine's machine.

`docker save` hands out whole images, also what a registry has already, and containerd passes every byte
through its socket: 1.06 GB took 43 s here to push 94 KB. Its content store is files named by their digests.
https://github.com/containerd/containerd/blob/main/docs/content-flow.md
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from ortimg.engine.client import Engine
from ortimg.publishing.saved import SavedImage, only_image
from ortimg.registry.model import INDEXES, Descriptor, Manifest, digest_of, is_digest

_CONTENT = "io.containerd.content.v1.content"
# containerd as dockerd starts it, below dockerd's own folder; and as the system starts it
_OWN, _SYSTEM = f"containerd/daemon/{_CONTENT}", Path("/var/lib/containerd") / _CONTENT


class ContentStore:
    """Blobs by digest."""

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "blobs" / "sha256"

    @classmethod
    def of(cls, engine: Engine) -> ContentStore | None:
        """The store of an engine on this machine; None where it is elsewhere, of another kind, or locked."""
        host = os.environ.get("DOCKER_HOST")
        if host and not host.startswith("unix://"):
            return None
        info = engine.info()
        if ["driver-type", "io.containerd.snapshotter.v1"] not in (info.get("DriverStatus") or ()):
            return None
        for folder in (Path(info.get("DockerRootDir") or "/nowhere") / _OWN, _SYSTEM):
            if os.access(folder / "blobs" / "sha256", os.R_OK | os.X_OK):
                return cls(folder)
        return None

    def path(self, digest: str) -> Path | None:
        """The file of a blob; None where the store does not have it."""
        found = self._blobs / digest.removeprefix("sha256:")
        return found if is_digest(digest) and os.access(found, os.R_OK) else None

    def image(self, digest: str) -> SavedImage | None:
        """The image of a manifest or an index; None where a part of it is absent or not what it should be."""
        manifest = self._manifest(digest)
        if manifest is None:
            return None
        try:
            content = manifest.content
            config = Descriptor.parse(content["config"])
            layers = tuple(Descriptor.parse(layer) for layer in content["layers"])
        except (KeyError, TypeError, ValueError):
            return None
        document = self._read(config.digest)
        if document is None or any(self.path(layer.digest) is None for layer in layers):
            return None
        return SavedImage(
            manifest=manifest, documents={config.digest: document}, config=config, layers=layers
        )

    def _manifest(self, digest: str) -> Manifest | None:
        data = self._read(digest)
        if data is None:
            return None
        media_type = str(json.loads(data).get("mediaType", ""))
        if media_type in INDEXES:
            return self._manifest(only_image(digest, data).digest)
        return Manifest(digest=digest, media_type=media_type, data=data)

    def _read(self, digest: str) -> bytes | None:
        path = self.path(digest)
        data = path.read_bytes() if path is not None else None
        return data if data is not None and digest_of(data) == digest else None
