"""Where finished images go: into the engine, into a folder of OCI layouts, or to a registry.

A place also tells what it has, so that an image that is there and made of the same is not built again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ortimg.engine.client import Engine, Sizes
from ortimg.errors import EnvironmentFault
from ortimg.factory.stores import COMPRESSION, Target, layout_digest
from ortimg.registry.client import Registries
from ortimg.registry.labels import labels_of
from ortimg.registry.model import images_of

CONTENT = "ortimg.content"  # label


class There(msgspec.Struct, frozen=True):
    """An image that is there."""

    labels: Mapping[str, str]
    references: tuple[str, ...]  # its names, as far as they are known


class Delivery(Protocol):
    """Takes the images of a run. `tags` are full references, that of the identifier first."""

    def find(self, reference: str) -> There | None: ...

    def target(self, tags: Sequence[str]) -> Target: ...

    def keep(self, tags: Sequence[str]) -> None:
        """The build into `target` has passed."""
        ...

    def discard(self, tags: Sequence[str], content: str) -> None:
        """The build into `target` has failed: take back the names that it gave."""
        ...

    def alias(self, reference: str, tag: str) -> None:
        """Give an image that is there a further name."""
        ...

    def place(self, reference: str) -> str | None:
        """Where a person finds the image; None where it is not kept."""
        ...

    def sizes(self, references: Sequence[str]) -> Mapping[str, Sizes] | None:
        """Bytes of images by reference; None where they cannot be told without reading every layer."""
        ...


class ToEngine:
    """Images in the engine, under all their tags; `load`: sent there by a builder of its own."""

    def __init__(self, engine: Engine, load: bool = False) -> None:
        self._engine = engine
        self._kind = "docker" if load else "image"

    def find(self, reference: str) -> There | None:
        image = self._engine.inspect(reference)
        return None if image is None else There(image.labels, image.references)

    def target(self, tags: Sequence[str]) -> Target:
        return Target(output=f"type={self._kind},{COMPRESSION}", tags=tuple(tags))

    def keep(self, tags: Sequence[str]) -> None:
        pass

    def discard(self, tags: Sequence[str], content: str) -> None:
        for tag in tags:  # the engine names an image before it has unpacked it
            there = self.find(tag)
            if there is not None and there.labels.get(CONTENT) == content:
                self._engine.remove(tag)

    def alias(self, reference: str, tag: str) -> None:
        self._engine.tag(reference, tag)

    def place(self, reference: str) -> str | None:
        return reference

    def sizes(self, references: Sequence[str]) -> Mapping[str, Sizes] | None:
        return self._engine.sizes(references)


class ToFolder:
    """One OCI layout an image, `DIR/<identifier>`, as skopeo and crane read it. Aliases are no files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._unfinished: dict[str, Path] = {}

    def find(self, reference: str) -> There | None:
        path = self._path(reference)
        if not (path / "index.json").is_file():
            return None
        try:
            manifest = self._blob(path, layout_digest(path))
            if "manifests" in manifest:  # an image with a provenance
                (digest,) = images_of(manifest)
                manifest = self._blob(path, digest)
            config = self._blob(path, manifest["config"]["digest"])
            labels = config.get("config", {}).get("Labels") or {}
        except (OSError, ValueError, KeyError, TypeError, EnvironmentFault):
            return None  # half a layout of another program: it is made anew
        return There(labels, (reference,))

    def target(self, tags: Sequence[str]) -> Target:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=self._folder))
        self._unfinished[tags[0]] = path
        return Target(output=f"type=oci,tar=false,dest={path},{COMPRESSION}")

    def keep(self, tags: Sequence[str]) -> None:
        path = self._path(tags[0])
        if path.exists():
            shutil.rmtree(path)
        self._unfinished.pop(tags[0]).rename(path)
        path.chmod(0o755)

    def discard(self, tags: Sequence[str], content: str) -> None:  # noqa: ARG002
        if (path := self._unfinished.pop(tags[0], None)) is not None:
            shutil.rmtree(path, ignore_errors=True)

    def alias(self, reference: str, tag: str) -> None:
        pass

    def place(self, reference: str) -> str | None:
        return f"oci:{self._path(reference)}"

    def sizes(self, references: Sequence[str]) -> Mapping[str, Sizes] | None:  # noqa: ARG002
        return None

    def _path(self, reference: str) -> Path:
        return self._folder / reference.rpartition(":")[2]

    @staticmethod
    def _blob(folder: Path, digest: str) -> dict[str, Any]:
        found = json.loads((folder / "blobs" / digest.replace(":", "/")).read_bytes())
        if not isinstance(found, dict):
            raise ValueError(digest)
        return found


class ToNowhere:
    """Nothing is kept: that an image builds and passes its verifier is all that is asked."""

    def find(self, reference: str) -> There | None:  # noqa: ARG002
        return None

    def target(self, tags: Sequence[str]) -> Target:  # noqa: ARG002
        return Target(output="type=cacheonly")

    def keep(self, tags: Sequence[str]) -> None:
        pass

    def discard(self, tags: Sequence[str], content: str) -> None:
        pass

    def alias(self, reference: str, tag: str) -> None:
        pass

    def place(self, reference: str) -> str | None:  # noqa: ARG002
        return None

    def sizes(self, references: Sequence[str]) -> Mapping[str, Sizes] | None:  # noqa: ARG002
        return None


class ToRegistry:
    """Images in their registry, each under its identifier alone: aliases move when all of a fleet is done.

    The builder itself pushes, so what a builder elsewhere made does not pass through this machine.
    """

    def __init__(self, registries: Registries | None = None) -> None:
        self._registries = registries or Registries()

    def find(self, reference: str) -> There | None:
        repository = self._registries.repository(reference)
        manifest = repository.manifest(reference.rpartition(":")[2])
        return None if manifest is None else There(labels_of(repository, manifest), (reference,))

    def target(self, tags: Sequence[str]) -> Target:
        return Target(output=f"type=image,push=true,{COMPRESSION}", tags=(tags[0],))

    def keep(self, tags: Sequence[str]) -> None:
        pass

    def discard(self, tags: Sequence[str], content: str) -> None:
        pass  # a tag is the last thing that a push writes

    def alias(self, reference: str, tag: str) -> None:
        pass  # `ortimg push --aliases-only` moves them together

    def place(self, reference: str) -> str | None:
        return reference

    def sizes(self, references: Sequence[str]) -> Mapping[str, Sizes] | None:  # noqa: ARG002
        return None
