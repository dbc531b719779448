"""The labels of an image in a registry."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ortimg.registry.client import Repository
from ortimg.registry.model import INDEXES, Manifest, images_of


def labels_of(repository: Repository, manifest: Manifest) -> Mapping[str, str]:
    """Label → value; empty for an image without any or without a readable configuration.

    Of an index, those of its one image: that is what an image with a provenance is.
    """
    if manifest.media_type in INDEXES:
        rows = images_of(manifest.content)
        found = repository.manifest(rows[0]) if len(rows) == 1 else None
        if found is None or found.media_type in INDEXES:
            return {}
        manifest = found
    config = manifest.content.get("config")
    data = repository.blob(str(config["digest"])) if isinstance(config, dict) and "digest" in config else None
    try:
        labels = json.loads(data or b"{}").get("config", {}).get("Labels") or {}
    except (ValueError, AttributeError):
        return {}
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
