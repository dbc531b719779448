"""Where units, bases and tools live between the build that makes them and the cells that take them.

The engine's own builder sees the engine's images by name. Any other builder sees neither them nor this
machine's disk: it gets heavy images as OCI layouts, which buildx sends, or takes them from a registry.
https://docs.docker.com/reference/cli/docker/buildx/build/#build-context
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ortimg.engine.client import Engine
from ortimg.errors import EnvironmentFault
from ortimg.factory.disk import prune_intermediates
from ortimg.factory.images import PREFIX
from ortimg.inputs.cache import Cache
from ortimg.registry.client import Registries

# zstd at its default level takes about as long as no compression at all, since less is written: one CUDA set,
# 1.93 GB, took 31 s (964 MB stored) against 28 to 34 s (1,926 MB); gzip took 126 s for 1,185 MB.
# containerd knows zstd layers by their OCI media type only.
# https://github.com/opencontainers/image-spec/blob/main/layer.md#zstd-media-types
COMPRESSION = "compression=zstd,compression-level=3,oci-mediatypes=true"


HANDED = "handed-over"  # folder beside the units: images of this machine's engine, by their id


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a build puts its result."""

    output: str  # value of `--output`
    tags: tuple[str, ...] = ()


class Store(Protocol):
    """Holds heavy images under their references, `localhost/ortimg/…`, whatever they are called there."""

    def has(self, reference: str) -> bool: ...

    def source(self, reference: str) -> str:
        """What a named context is set to, so that a build takes the image."""
        ...

    def target(self, reference: str) -> Target: ...

    def keep(self, reference: str) -> None:
        """The build into `target` has passed."""
        ...

    def discard(self, reference: str) -> None:
        """The build into `target` has failed."""
        ...

    def tidy(self) -> None:
        """Give back what only the steps of the last heavy build needed."""
        ...


class EngineStore:
    """The engine's own images."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def has(self, reference: str) -> bool:
        return self._engine.inspect(reference) is not None

    def source(self, reference: str) -> str:
        return f"docker-image://{reference}"

    def target(self, reference: str) -> Target:
        return Target(output=f"type=image,{COMPRESSION}", tags=(reference,))

    def keep(self, reference: str) -> None:
        pass

    def discard(self, reference: str) -> None:
        self._engine.remove(reference)

    def tidy(self) -> None:
        prune_intermediates(self._engine)


class LayoutStore:
    """OCI layouts in a folder, one an image: `<folder>/cuda/11.8-cudnn8-<hash>/index.json`.

    A layout is moved to its place when it is whole, so one that is there is good.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unfinished: dict[str, Path] = {}

    def has(self, reference: str) -> bool:
        return (self._path(reference) / "index.json").is_file()

    def source(self, reference: str) -> str:
        path = self._path(reference)
        return f"oci-layout://{path}@{layout_digest(path)}"

    def target(self, reference: str) -> Target:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.discard(reference)
        path = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=self.folder))
        self._unfinished[reference] = path
        return Target(output=f"type=oci,tar=false,dest={path},{COMPRESSION}")

    def keep(self, reference: str) -> None:
        path = self._path(reference)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._unfinished[reference].rename(path)
        except OSError:
            if not self.has(reference):  # else another run was faster, with the same content
                raise
            self.discard(reference)
        self._unfinished.pop(reference, None)

    def discard(self, reference: str) -> None:
        if (path := self._unfinished.pop(reference, None)) is not None:
            shutil.rmtree(path, ignore_errors=True)

    def tidy(self) -> None:
        pass

    def _path(self, reference: str) -> Path:
        name, _, tag = reference.removeprefix(f"{PREFIX}/").rpartition(":")
        return self.folder / name / tag


class RegistryStore:
    """Repositories below `prefix` in a registry that this machine and the builders reach by the same name."""

    def __init__(self, prefix: str, registries: Registries | None = None) -> None:
        self._prefix = prefix
        self._registries = registries or Registries()
        self._known: set[str] = set()

    def has(self, reference: str) -> bool:
        name, _, tag = self._name(reference).rpartition(":")
        if reference not in self._known and self._registries.repository(name).digest(tag) is not None:
            self._known.add(reference)
        return reference in self._known

    def source(self, reference: str) -> str:
        return f"docker-image://{self._name(reference)}"

    def target(self, reference: str) -> Target:
        return Target(output=f"type=image,push=true,{COMPRESSION}", tags=(self._name(reference),))

    def keep(self, reference: str) -> None:
        self._known.add(reference)

    def discard(self, reference: str) -> None:
        pass  # a tag is the last thing that a push writes

    def tidy(self) -> None:
        pass

    def _name(self, reference: str) -> str:
        return f"{self._prefix}/{reference.removeprefix(f'{PREFIX}/')}"


def layout_digest(folder: Path) -> str:
    """Digest of the one image in an OCI layout. Raises EnvironmentFault for a damaged one.

    https://github.com/opencontainers/image-spec/blob/main/image-layout.md
    """
    try:
        (row,) = json.loads((folder / "index.json").read_bytes())["manifests"]
        return str(row["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        raise EnvironmentFault(f"{folder} is no OCI layout of one image", "remove that folder") from None


def layouts_of(cache: Cache) -> Path:
    """Where the cache has the layouts of a `LayoutStore`."""
    return cache.root / "layouts"


def layout_references(folder: Path) -> Sequence[tuple[str, Path]]:
    """Reference and folder of each layout in `folder`; `HANDED` and unfinished ones are none."""
    found = sorted(path.parent for path in folder.glob("[!.]*/*/index.json"))
    return [
        (f"{PREFIX}/{path.parent.name}:{path.name}", path) for path in found if path.parent.name != HANDED
    ]
