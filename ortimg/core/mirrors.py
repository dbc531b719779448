"""Mirrors of the origins, as images.yaml names them: they stand in the text of the Dockerfiles. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import msgspec

from ortimg.core.model import Base, Cell, OrtRelease
from ortimg.core.problems import quote
from ortimg.core.tags import repository_problem

RELEASES = "https://github.com/microsoft/onnxruntime/releases/download"
HUB = "docker.io"
TOOLS_IMAGE = "python:3.11-slim-bookworm"  # what the tools stage stands on
_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~+%-]+)*/?")


class Mirrors(msgspec.Struct, frozen=True, kw_only=True):
    """Where to take things from instead. None: from their own origin."""

    releases: str | None = None  # prefix in place of RELEASES; below it lies v<version>/<asset>
    registry: str | None = None  # prefix in place of Docker Hub, "mirror.example.com/dockerhub"

    @property
    def tools_image(self) -> str:
        """Image of the tools stage."""
        return self.image(TOOLS_IMAGE)

    def image(self, reference: str) -> str:
        """A Docker Hub image by the mirror's name; other registries' images keep theirs."""
        return mirrored_image(reference, self.registry)

    def url(self, url: str) -> str:
        """A release archive's address at the mirror; other hosts' addresses stay."""
        if self.releases is None or not url.startswith(f"{RELEASES}/"):
            return url
        return self.releases.rstrip("/") + url.removeprefix(RELEASES)

    def elsewhere(self, image: str, registry: str) -> str:
        """An image that `image` gave or passed on, under another prefix still."""
        if self.registry is not None and image.startswith(f"{self.registry}/"):
            return f"{registry}/{image.removeprefix(f'{self.registry}/')}"
        return mirrored_image(image, registry)

    def apply(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """The cells with their archives' and bases' addresses at the mirrors."""
        if self == NO_MIRRORS:
            return tuple(cells)
        releases: dict[str, OrtRelease] = {}
        bases: dict[str, Base] = {}
        for cell in cells:
            release, base = cell.release, cell.base
            releases[release.key] = msgspec.structs.replace(release, url=self.url(release.url))
            bases[base.name] = msgspec.structs.replace(base, image=self.image(base.image))
        return tuple(
            msgspec.structs.replace(cell, release=releases[cell.release.key], base=bases[cell.base.name])
            for cell in cells
        )


NO_MIRRORS = Mirrors()


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A full image reference in its parts."""

    registry: str  # "docker.io", "mirror.example.com:5000"
    repository: str  # "library/debian"
    tag: str
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """`debian:12-slim` is `docker.io/library/debian:12-slim`.

        https://github.com/distribution/reference/blob/main/normalize.go
        """
        name, _, digest = text.partition("@")
        first, slash, rest = name.partition("/")
        if not slash or not ("." in first or ":" in first or first == "localhost"):
            first, rest = HUB, name
        repository, _, tag = rest.rpartition(":") if ":" in rest else (rest, "", "latest")
        if first == HUB and "/" not in repository:
            repository = f"library/{repository}"
        return cls(registry=first, repository=repository, tag=tag, digest=digest or None)


def mirrored_image(reference: str, registry: str | None) -> str:
    """A Docker Hub image below `registry`, by its full name as pull-through caches want it."""
    found = Reference.parse(reference)
    if registry is None or found.registry != HUB:
        return reference
    digest = f"@{found.digest}" if found.digest else ""
    return f"{registry}/{found.repository}:{found.tag}{digest}"


def mirror_problems(mirrors: Mirrors) -> Iterator[tuple[str, str]]:
    """Setting → what is wrong with it."""
    if mirrors.releases is not None and (fault := url_problem(mirrors.releases)):
        yield "releases", fault
    if mirrors.registry is not None and (fault := registry_problem(mirrors.registry)):
        yield "registry", fault


def url_problem(url: str) -> str | None:
    """Why an address cannot stand in a Dockerfile, or None."""
    try:
        parts = urlsplit(url)
        host = parts.netloc
        if parts.port == 0:
            raise ValueError("port 0")
    except ValueError as error:  # brackets without a partner, or around no address; a port that is none
        return f"{quote(url)} is no address: {error}"
    if "@" in host:
        return "a password in an address would be in every Dockerfile; leave it out"
    if not url.startswith(("http://", "https://")):
        return f'{quote(url)} is no address; it begins with "https://"'
    if not _URL.fullmatch(url):
        return f"{quote(url)} is no address that can stand in a Dockerfile: letters, digits and ._~+%-/ only"
    return None


def registry_problem(registry: str) -> str | None:
    """Why a prefix cannot stand in Docker Hub's place, or None."""
    first = registry.partition("/")[0]
    if "://" in registry:
        return f"{quote(registry)} is no registry: leave out {quote(registry.partition('://')[0] + '://')}"
    if not ("." in first or ":" in first or first == "localhost"):
        return f"{quote(registry)} names no host; write it whole, such as mirror.example.com/dockerhub"
    fault = repository_problem(f"{registry}/x")
    return fault and fault.replace(f"{registry}/x", registry)
