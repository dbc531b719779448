"""Manifests and descriptors, as the OCI specifications write them. Pure.

https://github.com/opencontainers/image-spec/blob/main/manifest.md
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ortimg.inputs.download import Unreachable

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY = b"{}"  # https://github.com/opencontainers/image-spec/blob/main/manifest.md#guidance-for-an-empty-descriptor
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES = frozenset({INDEX, DOCKER_LIST})
# An index first: its digest pins the image for every platform.
ACCEPT = ", ".join((INDEX, DOCKER_LIST, MANIFEST, DOCKER_MANIFEST))
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def digest_of(data: bytes) -> str:
    """`sha256:…`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def is_digest(text: str) -> bool:
    """Whether `text` is a whole sha256 digest."""
    return _DIGEST.fullmatch(text) is not None


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What points to a blob or a manifest."""

    media_type: str
    digest: str
    size: int  # bytes
    artifact_type: str | None = None
    annotations: Mapping[str, str] = {}

    def as_data(self) -> dict[str, object]:
        data: dict[str, object] = {"mediaType": self.media_type, "digest": self.digest, "size": self.size}
        if self.artifact_type:
            data["artifactType"] = self.artifact_type
        if self.annotations:
            data["annotations"] = dict(self.annotations)
        return data

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Descriptor:
        """Raises KeyError, TypeError and ValueError for what is no descriptor."""
        return cls(
            media_type=str(row.get("mediaType", "")),
            digest=str(row["digest"]),
            size=int(row["size"]),
            artifact_type=row.get("artifactType") or None,
            annotations={str(key): str(value) for key, value in (row.get("annotations") or {}).items()},
        )


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest or an index, byte for byte."""

    digest: str
    media_type: str
    data: bytes

    @property
    def content(self) -> dict[str, Any]:
        """The JSON object. Raises `Unreachable` where it is none."""
        try:
            found = json.loads(self.data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Unreachable(f"{self.digest}: no manifest came, but {self.data[:60]!r}")
        return found


def images_of(index: Mapping[str, Any]) -> list[str]:
    """Digests of the images of an index: not of its attestations, whose platform is "unknown".

    https://docs.docker.com/build/metadata/attestations/attestation-storage/
    """
    rows = index.get("manifests") or ()
    return [str(row["digest"]) for row in rows if (row.get("platform") or {}).get("os") != "unknown"]


def canonical(data: Mapping[str, object]) -> bytes:
    """JSON that is the same each time."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
