"""Can the release host and Docker Hub be reached? Asked in parallel, once a run, with short time-outs."""

from __future__ import annotations

import os
import threading
import time
from urllib.parse import urlsplit

import msgspec
import requests

from ortimg.core.mirrors import HUB as HUB_NAME
from ortimg.core.mirrors import RELEASES, Reference, registry_problem
from ortimg.core.model import Cell
from ortimg.core.problems import quote
from ortimg.errors import ConfigError
from ortimg.inputs.authorities import authorities
from ortimg.inputs.download import cause
from ortimg.registry.trust import is_plain

HUB = "https://registry-1.docker.io/v2/"


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """What answers. A string says why not."""

    releases: str | None = None
    hub: str | None = None

    def may_have(self, cell: Cell) -> bool:
        """Whether an origin that answers, or a fallback, may have the cell's archive and its base."""
        release = cell.release
        fallback = bool(cell.wheels) or release.maven is not None or release.wheel is not None
        return (self.releases is None or fallback) and (self.hub is None or cell.base.suite is not None)


def release_prefix(mirror: str | None = None) -> str:
    """Where release archives lie: `ORTIMG_RELEASE_MIRROR`, else images.yaml's, else the release host.

    Raises ConfigError for a setting that is no address: taken for a host that does not answer, it would turn
    builds to fallbacks in silence.
    """
    setting = os.environ.get("ORTIMG_RELEASE_MIRROR", "")
    if setting and not _is_address(setting):
        raise ConfigError(
            f"ORTIMG_RELEASE_MIRROR: {quote(setting)} is no address",
            hint="Set one such as https://mirror.example.com/onnxruntime, or unset it.",
        )
    return (setting or mirror or RELEASES).rstrip("/")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without a partner, a port that is none
        return False


def environment_registry() -> str | None:
    """What stands in for Docker Hub, and for images.yaml's mirror of it, on this machine.

    Raises ConfigError for what cannot be the beginning of an image's name.
    """
    setting = os.environ.get("ORTIMG_REGISTRY_MIRROR", "").rstrip("/")
    if setting and (fault := registry_problem(setting)):
        raise ConfigError(f"ORTIMG_REGISTRY_MIRROR: {fault}", hint="Correct it, or unset it.")
    return setting or None


def registry_url(registry: str) -> str:
    """Base address of a registry's API. One on this machine speaks plain HTTP, as engines expect too."""
    if registry == HUB_NAME:
        return HUB
    return f"{'http' if is_plain(registry) else 'https'}://{registry}/v2/"


def hub_url(mirror: str | None = None) -> str:
    """Base address of the registry that has Docker Hub's images."""
    prefix = environment_registry() or mirror
    return registry_url(Reference.parse(f"{prefix}/x").registry if prefix else HUB_NAME)


def probe(releases: str | None = None, hub: str = HUB, seconds: float = 3) -> Upstream:
    """Ask both hosts at once; done after `seconds` at the latest, name resolution included.

    Any HTTP answer counts: a 401 or 404 comes from a host that is there.
    """
    urls = {"releases": releases or release_prefix(), "hub": hub}
    reasons: dict[str, str | None] = {
        key: f"{urlsplit(url).netloc}: no answer in {seconds:g} s" for key, url in urls.items()
    }

    verify = authorities()

    def ask(key: str, url: str) -> None:
        try:
            requests.head(url, timeout=seconds, allow_redirects=False, verify=verify)
        except requests.RequestException as error:
            reasons[key] = f"{urlsplit(url).netloc}: {cause(error)}"
        else:
            reasons[key] = None

    # daemons: a resolver that hangs must not keep the program from ending
    threads = [threading.Thread(target=ask, args=item, daemon=True) for item in urls.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return Upstream(releases=reasons["releases"], hub=reasons["hub"])
