"""Blobs on their way to a registry: one streamed request each, begun anew where it was cut.

The road is docker's own, which every registry knows: POST, one PATCH with all bytes, PUT with the digest. To
go on where an upload was cut was tried and left out: docker-registry 2.8 ("upload resumed at wrong offset")
and go-containerregistry's (400) do not tell how far they got.
https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-blobs
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import msgspec
import requests

from ortimg.inputs.download import Unreachable
from ortimg.registry.errors import Denied, refusal
from ortimg.registry.model import digest_of
from ortimg.registry.transport import TRANSIENT, StoppedTransfer, Transport, is_transient

Progress = Callable[[int], None]  # bytes of this attempt that went out


def _ignore(_bytes: int) -> None:
    return None


class How(StrEnum):
    """How a blob got there."""

    PRESENT = "present"
    MOUNTED = "mounted"
    UPLOADED = "uploaded"


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that can be read as often as needed."""

    digest: str
    size: int
    open: Callable[[], BinaryIO]
    progress: Progress = _ignore

    @classmethod
    def of(cls, data: bytes) -> Blob:
        return cls(digest=digest_of(data), size=len(data), open=lambda: io.BytesIO(data))

    @classmethod
    def file(cls, path: Path, digest: str, progress: Progress = _ignore) -> Blob:
        return cls(digest=digest, size=path.stat().st_size, open=lambda: path.open("rb"), progress=progress)


class _Cut(Exception):  # noqa: N818 - not an error yet: the attempt failed, the next may not
    """An attempt failed in a way that passes."""

    def __init__(self, failure: requests.Response | requests.RequestException) -> None:
        self.failure = failure


class Uploader:
    """Brings blobs into one repository."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport, self._path = transport, path
        self._url = f"{transport.base}{path}/blobs/uploads/"
        self._scopes = (f"repository:{path}:pull,push",)

    def bring(self, blob: Blob, mount_from: Sequence[str]) -> How:
        """See `Repository.upload`."""
        if (how := self.place(blob.digest, mount_from)) is not None:
            return how
        self._upload(blob)
        return How.UPLOADED

    def place(self, digest: str, mount_from: Sequence[str]) -> How | None:
        """See `Repository.place`."""
        if self._there(digest):
            return How.PRESENT
        return How.MOUNTED if any(self.mount(digest, source) for source in mount_from) else None

    def mount(self, digest: str, source: str) -> bool:
        """See `Repository.mount`."""
        scopes = (*self._scopes, f"repository:{source}:pull")
        try:
            answer = self._transport.send("POST", self._url, scopes, params={"mount": digest, "from": source})
        except Denied:  # no log-in reads `source`: the blob goes the long way
            return False
        if answer.status_code == requests.codes.accepted:  # an upload was begun in its stead
            with suppress(Unreachable, requests.RequestException):
                self._transport.once("DELETE", self._location(answer), self._scopes)
        return bool(answer.status_code == requests.codes.created)

    def _there(self, digest: str) -> bool:
        url = f"{self._transport.base}{self._path}/blobs/{digest}"
        answer = self._transport.send("HEAD", url, self._scopes)
        if answer.status_code == requests.codes.not_found:
            return False
        if not answer.ok:
            raise self._refusal(answer)
        return True

    def _upload(self, blob: Blob) -> None:
        attempts = self._transport.patience.attempts()
        while True:
            try:
                self._finish(blob, self._send(blob, self._begin()))
                return
            except _Cut as cut:
                if not attempts.again(self._url, cut.failure):
                    if isinstance(cut.failure, requests.Response):
                        raise self._refusal(cut.failure) from cut
                    raise self._transport.fault(cut.failure) from cut.failure
                if self._there(blob.digest):  # the answer was lost, not the blob
                    return

    def _begin(self) -> str:
        answer = self._transport.send("POST", self._url, self._scopes, body=lambda: b"")
        if answer.status_code != requests.codes.accepted:
            raise self._refusal(answer)
        return self._location(answer)

    def _send(self, blob: Blob, location: str) -> str:
        if not blob.size:
            return location
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._once("PATCH", location, headers, lambda: cast(BinaryIO, _Body(blob, self._transport)))
        if answer.status_code not in (requests.codes.accepted, requests.codes.no_content):
            raise self._refusal(answer)
        return self._location(answer)

    def _finish(self, blob: Blob, location: str) -> None:
        parts = urlsplit(location)
        query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), ("digest", blob.digest)])
        answer = self._once("PUT", urlunsplit(parts._replace(query=query)), {}, lambda: b"")
        if answer.status_code not in (requests.codes.created, requests.codes.no_content):
            raise self._refusal(answer)

    def _once(
        self, method: str, url: str, headers: dict[str, str], body: Callable[[], bytes | BinaryIO]
    ) -> requests.Response:
        try:
            answer = self._transport.once(method, url, self._scopes, headers=headers, body=body)
        except requests.RequestException as error:
            if is_transient(error):
                raise _Cut(error) from error
            raise self._transport.fault(error) from error
        # 404: the registry has forgotten the upload
        if answer.status_code in TRANSIENT or answer.status_code == requests.codes.not_found:
            raise _Cut(answer)
        return answer

    def _location(self, answer: requests.Response) -> str:
        told = answer.headers.get("Location")
        if not told:
            raise Unreachable(f"{self._transport.registry}: an upload was begun, and no address was told")
        return urljoin(answer.url, told)

    def _refusal(self, answer: requests.Response) -> Unreachable:
        return refusal(self._transport.registry, f"upload a blob to {self._path}", answer)


class _Body:
    """A blob as requests sends it; ends where the transfer was cancelled."""

    def __init__(self, blob: Blob, transport: Transport) -> None:
        self._file = blob.open()
        self._size, self._done = blob.size, 0
        self._progress = blob.progress
        self._cancel = transport.patience.cancel

    # requests takes what has `__iter__` for a stream, and Content-Length from `__len__` less `tell`.

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.read(_PIECE), b"")

    def __len__(self) -> int:
        return self._size

    def tell(self) -> int:
        return 0

    def read(self, size: int = -1) -> bytes:
        if self._cancel.is_set():
            raise StoppedTransfer
        data = self._file.read(size if size < 0 else max(size, _PIECE))
        self._done += len(data)
        self._progress(self._done)
        return data

    def close(self) -> None:
        self._file.close()


_PIECE = 1 << 18  # bytes handed to the socket at once; http.client asks for 16 KiB
