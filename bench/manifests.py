"""What a registry says of an image: its layers and their bytes as they are sent."""

from __future__ import annotations

from ortimg.errors import EnvironmentFault
from ortimg.registry.client import Registries


def layers_of(repository: str, tag: str) -> dict[str, int]:
    """Bytes of each blob of an image, by digest: its layers and its configuration.

    `repository`: with its registry's host. Raises EnvironmentFault where the image is not there.
    """
    repo = Registries().repository(repository)
    manifest = repo.manifest(tag)
    if manifest is None:
        raise EnvironmentFault(f"{repository}:{tag} is not in the registry")
    content = manifest.content
    if "manifests" in content:
        image = next(row for row in content["manifests"] if row["platform"]["os"] == "linux")
        found = repo.manifest(image["digest"])
        if found is None:
            raise EnvironmentFault(f"{repository}@{image['digest']} is not in the registry")
        content = found.content
    return {row["digest"]: row["size"] for row in (content["config"], *content["layers"])}
