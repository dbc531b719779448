"""A bound on a whole answer, beside the one on each read that sockets have.

A time-out of urllib3 is for one read: a server that sends a byte now and then meets it for ever. It has no
bound on all of the headers (`Timeout.total` is none: it too bounds one read), so a watch ends the connection.
https://urllib3.readthedocs.io/en/stable/reference/urllib3.util.html#urllib3.util.Timeout
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection


@contextmanager
def within(seconds: float, cut: Callable[[], object]) -> Iterator[None]:
    """Calls `cut`, in another thread, when the block takes longer. Raises TimeoutError at its end then.

    That an error or an end came of the cut cannot be told from what the block sees: a connection that is shut
    in the middle of its headers looks to http.client like headers that are whole.
    """
    done, late, turn = threading.Event(), threading.Event(), threading.Lock()

    def watch() -> None:
        if done.wait(seconds):
            return
        with turn:
            if not done.is_set():
                late.set()
                with suppress(Exception):  # it came to its end meanwhile
                    cut()

    threading.Thread(target=watch, name="deadline", daemon=True).start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise TimeoutError("timed out") from error
        raise
    finally:
        with turn:  # what comes after the block is never cut
            done.set()
    if late.is_set():
        raise TimeoutError("timed out")


class WholeAnswers(HTTPAdapter):
    """Bounds the headers of an answer, and its body too where that is not streamed, to `seconds` each.

    A body that is streamed is its reader's to watch. The TLS handshake has a bound of its own in Python, the
    connect time-out. Proxies that speak SOCKS are not covered.
    """

    def __init__(self, seconds: float, **options: Any) -> None:
        self._seconds = seconds
        super().__init__(**options)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        _watch(self.poolmanager, self._seconds)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        if isinstance(manager, ProxyManager):
            _watch(manager, self._seconds)
        return manager

    def send(self, request: Any, stream: bool = False, *args: Any, **options: Any) -> requests.Response:
        answer = super().send(request, stream, *args, **options)
        if stream:
            return answer
        try:
            with within(self._seconds, answer.raw.shutdown):
                _ = answer.content  # kept in the answer
        except TimeoutError as error:
            raise requests.exceptions.ReadTimeout(error, request=request) from error
        return answer


def _watch(manager: PoolManager, seconds: float) -> None:
    class Watched(HTTPConnection):
        def _tunnel(self) -> None:  # the headers of a proxy's answer to CONNECT
            with within(seconds, lambda: _shut(self)):
                super()._tunnel()  # http.client's

        def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as in urllib3's own
            with within(seconds, lambda: _shut(self)):
                return super().getresponse()

    class WatchedTls(Watched, HTTPSConnection):
        pass

    class Pool(HTTPConnectionPool):
        ConnectionCls = Watched

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = WatchedTls

    manager.pool_classes_by_scheme = {"http": Pool, "https": TlsPool}


def _shut(connection: HTTPConnection) -> None:
    if connection.sock is not None:
        connection.sock.shutdown(socket.SHUT_RDWR)
