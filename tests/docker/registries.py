"""Real registries on 127.0.0.1, and a real proxy before one that makes a chosen request go wrong."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ortimg.registry.client import Registries, Repository
from ortimg.registry.model import CONFIG, MANIFEST, Descriptor, canonical
from ortimg.registry.transport import Patience

USER, PASSWORD = "me", "secret"
_HTPASSWD = "me:$2y$04$aSS9R2MYns3ImGKKBPag3eTfapxSTWhNZ9FGz0jmAsBE.nV4iGBAO\n"
QUICK = Patience(connect_seconds=5, read_seconds=20, retries=3, backoff=0.01)
_START_LIMIT = 20.0  # seconds
_PIECE = 1 << 16


class Kind(Enum):
    """Two implementations of one specification.

    crane's takes manifests whose blobs are not there: on it the order of a push alone keeps tags whole.
    It has no log-ins, no TLS and no referrers API; Debian's has no referrers API either.
    """

    DEBIAN = "docker-registry"  # distribution 2.8
    CRANE = "crane"  # go-containerregistry, which many tests and small set-ups serve images from

    @property
    def shares_blobs(self) -> bool:
        """Whether what one repository has is in all others at once, so that there is nothing to mount."""
        return self is Kind.CRANE


both_kinds = pytest.mark.parametrize("real", list(Kind), ids=lambda kind: kind.value, indirect=True)
"""Run a test on each of them. Its fixture `real` starts the kind in `request.param`."""


@dataclass(frozen=True)
class Registry:
    """A registry with a folder of its own."""

    host: str  # "127.0.0.1:40123"
    folder: Path
    process: subprocess.Popen[bytes]
    kind: Kind = Kind.DEBIAN

    @property
    def log(self) -> str:
        """Every request that was answered, and more."""
        return (self.folder / "log").read_text("utf-8", "replace")


@contextmanager
def registry(
    folder: Path,
    *,
    kind: Kind = Kind.DEBIAN,
    login: bool = False,
    certificate: tuple[Path, Path] | None = None,
) -> Iterator[Registry]:
    """A registry until the end of the block.

    Of the one from Debian only: `login`: it lets USER in; `certificate`: its own and its key.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    if kind is Kind.CRANE:
        command = [crane(), "registry", "serve", f"--address=127.0.0.1:{port}", f"--disk={folder}"]
    else:
        command = _debian(folder, port, login, certificate)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(port, process)
        yield Registry(f"127.0.0.1:{port}", folder, process, kind)
    finally:
        process.kill()
        process.wait()


def crane() -> str:
    """The program."""
    tools = Path(os.environ.get("ORTIMG_TOOLS") or Path.home() / ".cache" / "ortimg-tools")
    program = tools / "bin" / "crane"
    assert program.exists(), "the tests need crane: run scripts/go-tools.sh crane"
    return str(program)


def _debian(folder: Path, port: int, login: bool, certificate: tuple[Path, Path] | None) -> list[str]:
    program = shutil.which("docker-registry")
    assert program, "the tests need Debian's docker-registry: run scripts/install-registry.sh"
    http_settings: dict[str, object] = {"addr": f"127.0.0.1:{port}", "secret": "of these tests"}
    if certificate:
        http_settings["tls"] = {"certificate": str(certificate[0]), "key": str(certificate[1])}
    settings: dict[str, object] = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, "delete": {"enabled": True}},
        "http": http_settings,
    }
    if login:
        (folder / "htpasswd").write_text(_HTPASSWD)
        settings["auth"] = {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}}
    (folder / "config.yml").write_text(json.dumps(settings))  # JSON is YAML
    return [program, "serve", str(folder / "config.yml")]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + _START_LIMIT
    while time.monotonic() < limit and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError(f"no registry on port {port}: status {process.poll()}")


@dataclass
class Fault:
    """What becomes of requests that match, `times` of them; then they pass."""

    method: str
    path: str  # regular expression, searched in path and query
    status: int | None = None  # answered in the registry's stead
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut_after: int | None = None  # bytes of the request that are passed on before both sides are cut
    hang: threading.Event | None = None  # no answer until it is set
    times: int = 1_000_000
    passed_on: bool = False  # the registry got it, and `status` is answered all the same
    login: bool = False  # only requests with a log-in
    then: Callable[[], object] | None = None  # called when it was met
    seen: int = 0  # requests that met it
    met: threading.Event = field(default_factory=threading.Event)  # set with the first of them


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def handle_any(self) -> None:
        self.close_connection = True
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.authorizations.add(self.headers.get("Authorization"))
        fault = self.server.fault_of(self.command, self.path, "Authorization" in self.headers)
        if fault is None or fault.passed_on:
            self._forward(None, answered=fault is None)
        if fault is None:
            return
        if fault.then is not None:
            fault.then()
        if fault.hang is not None:
            fault.hang.wait(60)
        elif fault.status is not None:
            self._answer(fault.status, fault.headers, fault.body)
        else:
            self._forward(fault.cut_after, answered=True)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_args: object) -> None:
        return None

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _forward(self, cut_after: int | None, *, answered: bool) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=60)
        with suppress(OSError):
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders()
            left = length
            while left:
                piece = self.rfile.read(min(_PIECE, left))
                if not piece:
                    break
                left -= len(piece)
                upstream.send(piece)
                if cut_after is not None and length - left >= cut_after:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
            answer = upstream.getresponse()
            body = answer.read()
            if not answered:
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        upstream.close()


class Proxy(ThreadingHTTPServer):
    """Passes everything on to a registry but what `faults` say."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.faults: list[Fault] = []
        self.asked: list[str] = []  # "PUT /v2/…"
        self.authorizations: set[str | None] = set()
        self._lock = threading.Lock()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def count(self, pattern: str) -> int:
        """How many requests there were, among those that `pattern` matches."""
        return sum(re.search(pattern, line) is not None for line in self.asked)

    def fail(self, method: str, path: str, **what: Any) -> Fault:
        """From now on; `what` are the fields of Fault."""
        self.faults.append(Fault(method, path, **what))
        return self.faults[-1]

    def fault_of(self, method: str, path: str, login: bool) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                met = fault.method == method and re.search(fault.path, path)
                if met and fault.seen < fault.times and (login or not fault.login):
                    fault.seen += 1
                    fault.met.set()
                    return fault
        return None


@contextmanager
def proxy(upstream: str) -> Iterator[Proxy]:
    """A proxy before the registry `upstream` until the end of the block."""
    server = Proxy(upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        for fault in server.faults:
            if fault.hang is not None:
                fault.hang.set()
        server.shutdown()
        server.server_close()


def repository(host: str, path: str) -> Repository:
    """A repository, asked by a client that does not wait long."""
    return Registries(QUICK).repository(f"{host}/{path}")


def put_image(repo: Repository, tag: str | None = None) -> str:
    """An image without layers; gives its digest."""
    labels = {"of": repo.name}  # other bytes in each repository: a registry has a blob only once
    config = canonical({"architecture": "amd64", "os": "linux", "config": {"Labels": labels}})
    row = Descriptor(media_type=CONFIG, digest=repo.upload_bytes(config), size=len(config))
    content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": row.as_data(), "layers": []}
    return repo.put_manifest(canonical(content), MANIFEST, tag)
