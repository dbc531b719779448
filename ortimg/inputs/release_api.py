"""What the release host says of its files: size, date, and for files since June 2025 their sha256.

https://docs.github.com/en/rest/releases/releases#get-a-release-by-tag-name
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
import requests

from ortimg.core.lock import Asset
from ortimg.core.model import OrtRelease
from ortimg.inputs.deadline import WholeAnswers
from ortimg.inputs.download import Unreachable, cause

API = "https://api.github.com/repos/microsoft/onnxruntime/releases/tags"


class ReleaseFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a release."""

    asset: Asset
    sha256: str | None  # None: the host does not say


class ReleaseApi:
    """Asks once for each version; threads may share one. `ORTIMG_RELEASE_API`: another address."""

    def __init__(self, connect_seconds: float = 5, read_seconds: float = 20) -> None:
        self._timeout = (connect_seconds, read_seconds)
        self._base = os.environ.get("ORTIMG_RELEASE_API", "").rstrip("/") or API
        self._known: dict[str, Mapping[str, ReleaseFile] | Unreachable] = {}
        self._turns: dict[str, threading.Lock] = {}
        self._mutex = threading.Lock()

    def file(self, row: OrtRelease) -> ReleaseFile | None:
        """What the host says of the archive; None: it lists no such file. Raises `Unreachable`."""
        if not row.url.endswith(f"/v{row.version}/{row.asset}"):
            raise Unreachable(
                f"{row.url} is not on the release host: its sha256 is for catalogue/ort.yaml to say"
            )
        with self._mutex:
            turn = self._turns.setdefault(row.version, threading.Lock())
        with turn:
            if row.version not in self._known:
                try:
                    self._known[row.version] = self._ask(row.version)
                except Unreachable as error:
                    self._known[row.version] = error
        known = self._known[row.version]
        if isinstance(known, Unreachable):
            raise known
        return known.get(row.asset)

    def _ask(self, version: str) -> Mapping[str, ReleaseFile]:
        url = f"{self._base}/v{version}"
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        try:
            with requests.Session() as session:
                for scheme in ("http://", "https://"):
                    session.mount(scheme, WholeAnswers(self._timeout[1]))
                answer = session.get(url, headers=headers, timeout=self._timeout)
        except requests.RequestException as error:
            host = urlsplit(url).netloc
            raise Unreachable(f"{host}: {cause(error)}", "check the network, then try again") from error
        if answer.status_code in (403, 429):
            raise Unreachable(f"{url}: too many requests ({answer.status_code})", "try again in an hour")
        if not answer.ok:
            raise Unreachable(f"{url}: {answer.status_code} {answer.reason}")
        try:
            return {row["name"]: _file(row) for row in answer.json()["assets"]}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unreachable(f"{url}: no list of files came") from error


def _file(row: Mapping[str, Any]) -> ReleaseFile:
    kind, _, value = (row.get("digest") or "").partition(":")
    return ReleaseFile(
        asset=Asset(size=int(row["size"]), updated=str(row["updated_at"])),
        sha256=value if kind == "sha256" else None,
    )
