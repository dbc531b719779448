"""HTTP downloads: streamed, hashed while they are written, and never accepted by halves."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import requests
import urllib3
from urllib3.util.retry import Retry

from ortimg.errors import EnvironmentFault
from ortimg.inputs.authorities import VARIABLES, authorities
from ortimg.inputs.deadline import WholeAnswers

Progress = Callable[[int, int | None], None]  # bytes done, bytes in all if known
CHUNK = 1 << 18


class Unreachable(EnvironmentFault):
    """The file could not be had from there; another origin may have it."""


class WrongFile(EnvironmentFault):
    """The file came, and is not what was asked for. Never a reason to try another origin in silence."""


class HashMismatch(WrongFile):
    """The file has another hash than the pin."""

    def __init__(self, what: str, expected: str, found: str) -> None:
        super().__init__(
            f"{what}: sha256 is {found}, expected {expected}: re-uploaded upstream or damaged in transit",
            "nothing was kept; try again, and look at the release page before you change a pin",
        )
        self.expected = expected
        self.found = found


class Limits(Retry):
    """urllib3's retries with a bound on how long a server may tell us to wait."""

    longest_wait = 60.0  # seconds

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        wait = super().get_retry_after(response)
        return None if wait is None else min(wait, self.longest_wait)


class Downloader:
    """Downloads with time-outs and retries. Threads may share one."""

    def __init__(
        self,
        *,
        connect_seconds: float = 10,
        read_seconds: float = 30,
        stall_seconds: float = 60,
        stall_bytes: int = 64 << 10,
        retries: int = 4,
        transfers: int = 3,
        backoff: float = 0.5,
    ) -> None:
        """A transfer that brings fewer than `stall_bytes` in `stall_seconds` is given up.

        `read_seconds`: for one read, and for all of the headers together.
        `retries`: for refused connections and answers 429 and 5xx; `transfers`: for bodies that break off.
        """
        self._timeout = (connect_seconds, read_seconds)
        self._stall = (stall_seconds, stall_bytes)
        self._transfers = transfers
        self._backoff = backoff
        self._stopped = threading.Event()
        self._open: set[requests.Response] = set()  # their bodies are being read
        self._retry = Limits(
            total=retries,
            backoff_factor=backoff,
            backoff_jitter=backoff,
            backoff_max=20,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=("GET", "HEAD"),
            raise_on_status=False,
        )

    def stop(self) -> None:
        """End every transfer now, those too that wait for a silent server; they become `Unreachable`."""
        self._stopped.set()
        for response in tuple(self._open):
            with suppress(Exception):  # it came to its end meanwhile
                response.raw.shutdown()

    def fetch(
        self, url: str, target: Path, *, sha256: str | None = None, progress: Progress | None = None
    ) -> str:
        """Bring `url` to `target`; returns the SHA-256.

        Raises `Unreachable` (network, status, truncation, a web page in the file's place) and `HashMismatch`;
        `target` is not there then.
        """
        try:
            for attempt in range(1, self._transfers + 1):
                try:
                    found = self._transfer(url, target, progress)
                    break
                except _BrokenOffError as error:
                    if self._stopped.is_set():
                        raise Unreachable(f"{url}: interrupted") from error
                    if attempt == self._transfers:
                        raise Unreachable(
                            f"{url}: {error} ({attempt} attempts)", "check the network, then try again"
                        ) from error
                    time.sleep(self._backoff * attempt)
            if sha256 is not None and found != sha256:
                raise HashMismatch(url, sha256, found)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return found

    def _transfer(self, url: str, target: Path, progress: Progress | None) -> str:
        digest, done = hashlib.sha256(), 0
        with requests.Session() as session:
            session.verify = authorities()
            adapter = WholeAnswers(self._timeout[1], max_retries=self._retry)
            session.mount("http://", adapter)
            session.mount("https://", adapter)
            try:
                response = session.get(
                    url, stream=True, timeout=self._timeout, headers={"Accept-Encoding": "identity"}
                )
            except requests.exceptions.SSLError as error:
                hint = f"name the certificates of your authority in {VARIABLES[0]} or {VARIABLES[-1]}"
                raise Unreachable(f"{url}: {cause(error)}", hint) from error
            except requests.RequestException as error:
                raise Unreachable(f"{url}: {cause(error)}", "check the network, then try again") from error
            with self._listed(response), target.open("wb") as file:
                if response.status_code != requests.codes.ok:
                    raise Unreachable(
                        f"{url}: the server answered {response.status_code} {response.reason}",
                        "check the address, or set a mirror (ORTIMG_RELEASE_MIRROR)",
                    )
                length = response.headers.get("Content-Length")
                total = int(length) if length is not None and length.isdigit() else None
                window = time.monotonic(), 0
                while chunk := _read(response):
                    if done == 0:
                        _refuse_web_page(url, response, chunk)
                    file.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)
                    window = self._watch(window, done)
        if total is not None and done != total:
            raise _BrokenOffError(f"the transfer broke off after {done:,} of {total:,} bytes")
        return digest.hexdigest()

    @contextmanager
    def _listed(self, response: requests.Response) -> Iterator[None]:
        """`stop` finds it."""
        self._open.add(response)
        try:
            if self._stopped.is_set():
                raise _BrokenOffError("interrupted")
            with response:
                yield
        finally:
            self._open.discard(response)

    def _watch(self, window: tuple[float, int], done: int) -> tuple[float, int]:
        """Give up on a server that only drips: a time-out for each read never sees that."""
        since, then = window
        now = time.monotonic()
        seconds, least = self._stall
        if now - since < seconds:
            return window
        if done - then < least:
            raise _BrokenOffError(f"only {done - then:,} bytes came in {now - since:.0f} s")
        return now, done


class _BrokenOffError(Exception):
    """The body ended early; worth another attempt."""


def _read(response: requests.Response) -> bytes:
    raw: urllib3.HTTPResponse = response.raw
    try:
        # read1: what is there by now, so that the watch on a dripping server gets its turn
        return raw.read1(CHUNK)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _BrokenOffError(f"the transfer broke off: {cause(error)}") from error


def _refuse_web_page(url: str, response: requests.Response, start: bytes) -> None:
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    head = start[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if kind == "text/html" or head.startswith((b"<!doctype html", b"<html")):
        title = re.search(rb"<title[^>]*>\s*(.{1,80}?)\s*</title", start[:4096], re.DOTALL | re.IGNORECASE)
        shown = f' ("{title[1].decode(errors="replace")}")' if title else ""
        raise Unreachable(
            f"{url}: a web page{shown} came instead of the archive",
            "a proxy, a log-in page, or a moved file: open the address in a browser",
        )


def cause(error: BaseException) -> str:
    """The innermost cause of a network error in a few words: `name not resolved`."""
    text = str(error)
    for mark, words in (
        ("NameResolutionError", "name not resolved"),
        ("Name or service not known", "name not resolved"),
        ("ConnectTimeout", "no answer"),
        ("timed out", "timed out"),
        ("Connection refused", "connection refused"),
        ("Network is unreachable", "network is unreachable"),
        ("No route to host", "no route to host"),
        ("CERTIFICATE_VERIFY_FAILED", "its certificate cannot be verified"),
        ("ProxyError", "the proxy refused or is unreachable"),
        ("IncompleteRead", "truncated"),
        ("Connection reset", "connection reset"),
        ("RemoteDisconnected", "the server hung up"),
        ("too many 429", "too many requests (429)"),
    ):
        if mark in text or mark in type(error).__name__:
            return words
    return f"{type(error).__name__}: {text[:160]}"
