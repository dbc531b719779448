"""One registry client for everything: what a tag means, manifests, blobs, mounts, uploads.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md. oras-py, which would be the library for
this, knows no 429, no Retry-After and no mount, and takes 0.9 s to import; so this is requests and urllib3.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import requests

from ortimg.core.mirrors import Reference
from ortimg.inputs.download import Unreachable
from ortimg.inputs.probe import registry_url
from ortimg.registry.errors import NoImage, refusal
from ortimg.registry.model import ACCEPT, Manifest, digest_of, is_digest
from ortimg.registry.transport import Patience, Transport
from ortimg.registry.upload import Blob, How, Uploader

_LARGEST = 10_000_000  # bytes of a manifest; registries allow 4 MB


class Registries:
    """Asks registries; threads may share one. Log-ins of the docker client hold (`docker login`).

    `plain`: registries (host:port) that are spoken to over plain HTTP, besides loopback ones and those of
    ORTIMG_PLAIN_HTTP.
    """

    def __init__(self, patience: Patience | None = None, plain: Sequence[str] = ()) -> None:
        self._patience = patience or Patience()
        self._plain = frozenset(plain)
        self._transports: dict[str, Transport] = {}
        self._lock = threading.Lock()

    def digest(self, image: str) -> str:
        """`sha256:…` of what the tag of `image` points to. Raises `Unreachable`, `Denied` and `NoImage`."""
        reference = Reference.parse(image)
        found = self.repository(image).digest(reference.digest or reference.tag)
        if found is None:
            raise NoImage(f"{reference.registry} has no image {image}", "look at its name and tag")
        return found

    def repository(self, name: str) -> Repository:
        """The repository of an image reference: `host:5000/team/name`, a tag or digest is passed over."""
        reference = Reference.parse(name)
        registry = reference.registry
        with self._lock:
            if registry not in self._transports:
                self._transports[registry] = Transport(registry, self._url(registry), self._patience)
            return Repository(self._transports[registry], reference.repository)

    def _url(self, registry: str) -> str:
        return f"http://{registry}/v2/" if registry in self._plain else registry_url(registry)


class Repository:
    """One repository of one registry. Every method raises `Unreachable` (network, status) and `Denied`."""

    def __init__(self, transport: Transport, path: str) -> None:
        self.transport, self.path = transport, path
        self._pull = (f"repository:{path}:pull",)
        self._push = (f"repository:{path}:pull,push",)
        self._uploader = Uploader(transport, path)

    @property
    def registry(self) -> str:
        """`host`, `host:port`."""
        return self.transport.registry

    @property
    def name(self) -> str:
        """The repository as images are called: `host:5000/team/name`."""
        return f"{self.registry}/{self.path}"

    # manifests

    def digest(self, reference: str) -> str | None:
        """Digest of a tag's (or digest's) manifest, nothing fetched where it can be; None: there is none."""
        answer = self._ask("HEAD", f"manifests/{reference}", Accept=ACCEPT)
        if answer.status_code == requests.codes.not_found:
            return None
        self._check(answer, f"look up {reference}")
        found = answer.headers.get("Docker-Content-Digest", "")
        if not found:  # optional by the specification: then the digest is the manifest's own hash
            manifest = self.manifest(reference)
            return None if manifest is None else manifest.digest
        if not is_digest(found):
            raise Unreachable(f"{self.registry}: {found[:100]!r} came instead of a digest of {reference}")
        return found

    def manifest(self, reference: str) -> Manifest | None:
        """A manifest or index by tag or digest; None where there is none. Its bytes are checked."""
        answer = self._ask("GET", f"manifests/{reference}", Accept=ACCEPT)
        if answer.status_code == requests.codes.not_found:
            return None
        self._check(answer, f"read {reference}")
        if len(answer.content) > _LARGEST:
            raise Unreachable(f"{self.registry}: a manifest of {len(answer.content)} bytes")
        found = digest_of(answer.content)
        told = reference if is_digest(reference) else answer.headers.get("Docker-Content-Digest", found)
        if told != found:
            raise Unreachable(f"{self.registry}: {reference} is {found}, and {told} was told: damaged")
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        return Manifest(digest=found, media_type=kind, data=answer.content)

    def put_manifest(self, data: bytes, media_type: str, reference: str | None = None) -> str:
        """Stores a manifest or index under a tag, or by its digest alone; gives the digest.

        All that it names must be there: registries refuse it otherwise, so no tag is ever on half an image.
        """
        return self.put_manifest_answer(data, media_type, reference)[0]

    def put_manifest_answer(
        self, data: bytes, media_type: str, reference: str | None = None
    ) -> tuple[str, requests.Response]:
        """The same, with the answer, whose headers say what the registry made of it."""
        digest = digest_of(data)
        answer = self._ask(
            "PUT", f"manifests/{reference or digest}", self._push, data=data, Content_Type=media_type
        )
        self._check(answer, f"store {reference or digest}", created=True)
        told = answer.headers.get("Docker-Content-Digest", digest)
        if told != digest:
            raise Unreachable(f"{self.registry}: {reference or digest} was stored as {told}, not {digest}")
        return digest, answer

    # blobs

    def blob(self, digest: str) -> bytes | None:
        """A small blob, such as an image's configuration; None where there is none. Its bytes are checked."""
        answer = self._ask("GET", f"blobs/{digest}")
        if answer.status_code == requests.codes.not_found:
            return None
        self._check(answer, f"read blob {digest}")
        if digest_of(answer.content) != digest:
            raise Unreachable(f"{self.registry}: blob {digest} is damaged")
        return answer.content

    def upload(self, blob: Blob, mount_from: Sequence[str] = ()) -> How:
        """Sees to it that the repository has a blob: there already, mounted, or uploaded.

        `mount_from`: other repositories of this registry that may have it. An upload that is cut begins anew.
        """
        return self._uploader.bring(blob, mount_from)

    def upload_bytes(self, data: bytes) -> str:
        """A small blob; gives its digest."""
        blob = Blob.of(data)
        self.upload(blob)
        return blob.digest

    def mount(self, digest: str, source: str) -> bool:
        """Has the registry take a blob from its own repository `source`; False where it does not."""
        return self._uploader.mount(digest, source)

    def place(self, digest: str, mount_from: Sequence[str] = ()) -> How | None:
        """Sees to it that a blob is there, by its digest alone: found or mounted. None: bytes are needed."""
        return self._uploader.place(digest, mount_from)

    # inside

    def _ask(
        self,
        method: str,
        path: str,
        scopes: Sequence[str] | None = None,
        data: bytes | None = None,
        **headers: str,
    ) -> requests.Response:
        return self.transport.send(
            method,
            f"{self.transport.base}{self.path}/{path}",
            scopes or self._pull,
            headers={key.replace("_", "-"): value for key, value in headers.items()},
            body=None if data is None else lambda: data,
        )

    def _check(self, answer: requests.Response, what: str, created: bool = False) -> None:
        # A page with 200 in place of 201 is a log-in or a proxy, and stored nothing.
        good = answer.status_code == requests.codes.created if created else answer.ok
        if not good or answer.is_redirect:
            raise refusal(self.registry, f"{what} in {self.path}", answer)
