"""The labels of an image in a registry."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ortimg.registry.client import Repository
from ortimg.registry.model import Manifest


def labels_of(repository: Repository, manifest: Manifest) -> Mapping[str, str]:
    """Label → value; empty for an index, and for an image without any or without a readable configuration."""
    config = manifest.content.get("config")
    data = repository.blob(str(config["digest"])) if isinstance(config, dict) and "digest" in config else None
    try:
        labels = json.loads(data or b"{}").get("config", {}).get("Labels") or {}
    except (ValueError, AttributeError):
        return {}
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
