"""Requests to one registry: log-in, time-outs, and the retries.

Tried again, with backoff, jitter and the server's own Retry-After: connections that are refused, cut or
silent, and answers 429 and 5xx. Never tried again: 401, 403 and all other answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError, MaxRetryError

from ortimg.inputs.deadline import WholeAnswers
from ortimg.inputs.download import Limits, Unreachable, cause
from ortimg.registry.auth import Gate, anonymous
from ortimg.registry.trust import LOOPBACK, tls_context

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
Body = Callable[[], bytes | BinaryIO]  # opened anew for each attempt


class StoppedTransfer(Exception):  # noqa: N818 - no fault: the user ended the transfer
    """What was asked for was ended from outside."""


@dataclass(frozen=True)
class Patience:
    """How long one request may take, and how often it is tried."""

    connect_seconds: float = 5
    read_seconds: float = (
        60  # till the headers are whole; a registry that stores a large blob is silent for a while
    )
    retries: int = 5
    backoff: float = 0.5  # seconds; doubled with each attempt
    longest_wait: float = 20  # seconds between two attempts
    cancel: threading.Event = field(default_factory=threading.Event)

    def attempts(self) -> Attempts:
        return Attempts(self)


class Attempts:
    """Counts attempts and waits between them; urllib3 says how long."""

    def __init__(self, patience: Patience) -> None:
        self._cancel = patience.cancel
        self._retry = Limits(
            total=patience.retries,
            backoff_factor=patience.backoff,
            backoff_jitter=patience.backoff,
            backoff_max=patience.longest_wait,
            status_forcelist=TRANSIENT,
            allowed_methods=None,
        )

    def again(self, url: str, failure: requests.Response | Exception) -> bool:
        """Waits for the next attempt; False where there is none left. Raises `StoppedTransfer`."""
        answer = failure.raw if isinstance(failure, requests.Response) else None
        try:
            self._retry = self._retry.increment("", url, response=answer, error=HTTPError(str(failure)))
        except MaxRetryError:
            return False
        told = self._retry.get_retry_after(answer) if answer is not None else None
        if self._cancel.wait(self._retry.get_backoff_time() if told is None else told):
            raise StoppedTransfer
        return True


def is_transient(error: requests.RequestException) -> bool:
    """Whether trying again may help: not where a name or a certificate is wrong."""
    if isinstance(error, requests.exceptions.SSLError | requests.exceptions.InvalidURL):
        return False
    kinds = requests.exceptions
    cut = isinstance(error, kinds.ConnectionError | kinds.Timeout | kinds.ChunkedEncodingError)
    return cut and cause(error) != "name not resolved"


class Transport:
    """Sends requests to one registry. Threads may share one."""

    def __init__(self, registry: str, base: str, patience: Patience) -> None:
        """`base`: address of the API, with `/v2/` at its end."""
        self.registry, self.base = registry, base
        self.patience = patience
        self._secure = base.startswith("https://")
        self._gate = Gate(registry, self._secure)
        self._local = threading.local()

    def send(
        self,
        method: str,
        url: str,
        scopes: Iterable[str],
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> requests.Response:
        """The answer that came in the end, whatever its status. Raises `Unreachable`, `StoppedTransfer`."""
        attempts = self.patience.attempts()
        while True:
            failure: requests.Response | requests.RequestException
            try:
                answer = self.once(method, url, scopes, headers=headers, params=params, body=body)
                if answer.status_code not in TRANSIENT:
                    return answer
                failure = answer
            except requests.RequestException as error:
                if not is_transient(error):
                    raise self.fault(error) from error
                failure = error
            if not attempts.again(url, failure):
                if isinstance(failure, requests.Response):
                    return failure
                raise self.fault(failure) from failure

    def once(
        self,
        method: str,
        url: str,
        scopes: Iterable[str],
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> requests.Response:
        """One attempt, with a log-in where the registry asks for one. Raises what requests raises."""
        if self.patience.cancel.is_set():
            raise StoppedTransfer
        session = self._session()
        options = self._options()
        own = urlsplit(url).netloc == urlsplit(self.base).netloc  # a token is for no other host

        def ask(auth: Any) -> requests.Response:
            data = body() if body else None
            try:
                return session.request(
                    method,
                    url,
                    headers=dict(headers or {}),
                    params=params,
                    data=data,
                    auth=auth,
                    allow_redirects=method in ("GET", "HEAD"),
                    **options,
                )
            finally:
                if data is not None and not isinstance(data, bytes):
                    data.close()

        answer = ask(self._gate.known(scopes) if own else anonymous)
        if answer.status_code == requests.codes.unauthorized and own:
            # The first question, or a token that has run out: one more try with a fresh one.
            answer = ask(self._gate.enter(session, answer, scopes, options))
        return answer

    def fault(self, error: Exception) -> Unreachable:
        """The error for a request that got no answer."""
        return Unreachable(f"{self.registry}: {cause(error)}", "check the network, then try again")

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"timeout": (self.patience.connect_seconds, self.patience.read_seconds)}
        if LOOPBACK.fullmatch(self.registry):  # no proxy stands before this machine, as in Go's programs
            options["proxies"] = {"no_proxy": urlsplit(self.base).hostname}
        return options

    def _session(self) -> requests.Session:
        found = getattr(self._local, "session", None)
        if not isinstance(found, requests.Session):
            found = self._local.session = requests.Session()
            found.headers["User-Agent"] = "ortimg"
            seconds = self.patience.read_seconds
            found.mount("http://", WholeAnswers(seconds))
            found.mount(
                "https://", _OwnTrust(self.registry, seconds) if self._secure else WholeAnswers(seconds)
            )
        return found


class _OwnTrust(WholeAnswers):
    """TLS with the authorities of docker's certs.d beside the usual ones."""

    def __init__(self, registry: str, seconds: float) -> None:
        self._registry = registry
        super().__init__(seconds)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, ssl_context=tls_context(self._registry), **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=tls_context(self._registry), **options)
