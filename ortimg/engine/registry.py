"""Which image a tag means now: a registry is asked for a manifest's digest, nothing is pulled.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests,
https://distribution.github.io/distribution/spec/auth/token/
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import requests
from requests.auth import AuthBase, HTTPBasicAuth

from ortimg.core.mirrors import Reference
from ortimg.errors import CheckFailed
from ortimg.inputs.download import Unreachable, cause
from ortimg.inputs.probe import registry_url

# An index first: its digest pins the image for every platform.
_ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FIELD = re.compile(r'(\w+)="([^"]*)"')
_LARGEST = 10_000_000  # bytes of a manifest; registries allow 4 MB


class NoImage(CheckFailed):
    """The registry answers, and has no such image."""


class _Bearer(AuthBase):
    """A token for one repository."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Registries:
    """Asks registries; threads may share one. Log-ins of the docker client hold (`docker login`)."""

    def __init__(self, connect_seconds: float = 5, read_seconds: float = 20) -> None:
        self._timeout = (connect_seconds, read_seconds)

    def digest(self, image: str) -> str:
        """`sha256:…` of what the tag of `image` points to.

        Raises `Unreachable` (network, status, log-in) and `NoImage`.
        """
        reference = Reference.parse(image)
        url = f"{registry_url(reference.registry)}{reference.repository}/manifests/{reference.tag}"
        with requests.Session() as session:
            answer = self._ask(session, "HEAD", url, None, image)
            auth: AuthBase | None = None
            if answer.status_code == requests.codes.unauthorized:
                auth = self._auth(session, answer, reference, image)
                answer = self._ask(session, "HEAD", url, auth, image)
            self._refuse(answer, image)
            found = answer.headers.get("Docker-Content-Digest", "")
            if not found:  # optional by the specification: then the digest is the manifest's own hash
                whole = self._ask(session, "GET", url, auth, image)
                self._refuse(whole, image)
                found = f"sha256:{hashlib.sha256(whole.content).hexdigest()}"
        if not _DIGEST.fullmatch(found):
            raise Unreachable(f"{reference.registry}: {found[:100]!r} came instead of a digest of {image}")
        return found

    def _ask(
        self, session: requests.Session, method: str, url: str, auth: AuthBase | None, image: str
    ) -> requests.Response:
        try:
            answer = session.request(
                method,
                url,
                headers={"Accept": _ACCEPT},
                auth=auth or _anonymous,
                timeout=self._timeout,
                allow_redirects=True,
                stream=method == "GET",
            )
            if method == "GET" and int(answer.headers.get("Content-Length", 0)) > _LARGEST:
                raise Unreachable(f"{image}: a manifest of {answer.headers['Content-Length']} bytes")
            return answer
        except requests.RequestException as error:
            raise Unreachable(
                f"{Reference.parse(image).registry}: {cause(error)}", "check the network, then try again"
            ) from error

    def _auth(
        self, session: requests.Session, answer: requests.Response, reference: Reference, image: str
    ) -> AuthBase:
        """How to ask again, from what the registry asks for and the user's own log-in."""
        challenge = answer.headers.get("WWW-Authenticate", "")
        login = _login(reference.registry)
        if challenge.lower().startswith("basic"):
            if login is None:
                raise Unreachable(
                    f"{reference.registry} wants a log-in", f"run `docker login {reference.registry}`"
                )
            return login
        fields = dict(_FIELD.findall(challenge))
        if not challenge.lower().startswith("bearer") or "realm" not in fields:
            raise Unreachable(f"{reference.registry}: a log-in of an unknown kind is wanted")
        params = {"scope": f"repository:{reference.repository}:pull"}
        if "service" in fields:
            params["service"] = fields["service"]
        if not fields["realm"].startswith("https://") and not registry_url(reference.registry).startswith(
            "http://"
        ):
            login = None  # never in the clear
        try:
            found = session.get(
                fields["realm"],
                params=params,
                auth=login or _anonymous,
                timeout=self._timeout,
            )
            body: Any = found.json() if found.ok else {}
        except (requests.RequestException, ValueError) as error:
            raise Unreachable(f"{reference.registry}: no token: {cause(error)}") from error
        token = body.get("token") or body.get("access_token") if isinstance(body, dict) else None
        if not isinstance(token, str):
            raise Unreachable(
                f"{reference.registry}: no token for {image} ({found.status_code})",
                f"run `docker login {reference.registry}` if the image is not public",
            )
        return _Bearer(token)

    def _refuse(self, answer: requests.Response, image: str) -> None:
        registry = Reference.parse(image).registry
        if answer.status_code == requests.codes.not_found:
            raise NoImage(f"{registry} has no image {image}", "look at its name and tag")
        if answer.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            raise Unreachable(
                f"{registry} does not give {image} ({answer.status_code})",
                f"look at its name, or run `docker login {registry}`",
            )
        if answer.status_code == requests.codes.too_many_requests:
            raise Unreachable(
                f"{registry}: too many requests (429)", f"wait, or run `docker login {registry}`"
            )
        if not answer.ok:
            raise Unreachable(f"{registry}: {answer.status_code} {answer.reason} for {image}")


def _anonymous(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No log-in. Without any `auth`, requests would take one from ~/.netrc."""
    return request


def _login(registry: str) -> HTTPBasicAuth | None:
    """The user's log-in at a registry, as the docker client keeps it."""
    from docker import auth
    from docker.errors import DockerException

    try:
        found = auth.load_config().resolve_authconfig(registry)
    except DockerException:  # a credential helper that is missing or fails: ask without
        return None
    if not found or not found.get("Username", found.get("username")):
        return None
    return HTTPBasicAuth(
        found.get("Username", found.get("username")), found.get("Password", found.get("password"))
    )
