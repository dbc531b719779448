"""Servers that drip: each byte comes in time, and the whole never does."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from loopback import Handler, Server, body, serving
from wishes import INDEX

from ortimg.errors import EnvironmentFault
from ortimg.inputs.authorities import VARIABLES
from ortimg.inputs.deadline import within
from ortimg.inputs.download import Downloader, Unreachable
from ortimg.inputs.release_api import ReleaseApi
from ortimg.registry.client import Registries
from ortimg.registry.transport import Patience

LIMIT = 0.5  # seconds for an answer; a byte comes fifty times in it
IMAGE = "team/name:1"
MANIFEST = "/v2/team/name/manifests/1"


@dataclass
class Drip:
    """An answer that begins with `start` and goes on byte by byte until the client has gone."""

    start: bytes
    sent: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self, handler: Handler) -> None:
        try:
            handler.wfile.write(self.start)
            while not self.over.wait(LIMIT / 50):
                handler.wfile.write(b"x")
                self.sent += 1
        except OSError:
            self.over.set()


HEADERS = b"HTTP/1.1 200 OK\r\nX-Slow: "
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("certificate")
    found = folder / "certificate.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=slow"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(found[0]), "-keyout", str(found[1])]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    return found


@pytest.fixture(params=["http", "https"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """In the clear and over TLS, with a certificate that is trusted."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with serving() as running:
        if request.param == "https":
            own, key = request.getfixturevalue("certificate")
            running.speak_tls(own, key)
            monkeypatch.setenv(VARIABLES[0], str(own))
            folder = tmp_path / "docker" / "certs.d" / running.url.removeprefix("https://")
            folder.mkdir(parents=True)
            (folder / "ca.crt").write_bytes(own.read_bytes())
        yield running


def given_up(drip: Drip, ask: Callable[[], object]) -> EnvironmentFault:
    """The error of `ask`; the server was still talking when it came."""
    with pytest.raises(Unreachable, match="timed out") as caught:
        ask()
    assert drip.sent > 5
    assert drip.over.wait(10), "the connection is still open"
    return caught.value


def test_headers_of_a_download(server: Server, tmp_path: Path) -> None:
    drip = server.answers["/a"] = Drip(HEADERS)
    hasty = Downloader(read_seconds=LIMIT, retries=0, transfers=1)
    given_up(drip, lambda: hasty.fetch(f"{server.url}/a", tmp_path / "a"))
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("start", [HEADERS, BODY], ids=["headers", "body"])
def test_an_answer_of_a_registry(server: Server, start: bytes) -> None:
    drip = server.answers[MANIFEST] = Drip(start)
    host = server.url.partition("://")[2]
    registries = Registries(Patience(read_seconds=LIMIT, retries=0))
    given_up(drip, lambda: registries.repository(f"{host}/{IMAGE}").manifest("1"))


def test_a_registry_that_is_quick_at_the_second_try(server: Server) -> None:
    slow = Drip(HEADERS)

    def quick(handler: Handler) -> None:
        server.answers[MANIFEST] = body(b"{}")
        slow(handler)

    server.answers[MANIFEST] = quick
    host = server.url.partition("://")[2]
    found = Registries(Patience(read_seconds=LIMIT, retries=1, backoff=0.01)).repository(f"{host}/{IMAGE}")
    manifest = found.manifest("1")
    assert manifest is not None
    assert manifest.data == b"{}"
    assert slow.over.wait(10)


def test_an_answer_of_the_release_host(monkeypatch: pytest.MonkeyPatch) -> None:
    row = INDEX.release("1.16.2", 11)
    assert row is not None
    with serving() as server:
        monkeypatch.setenv("ORTIMG_RELEASE_API", server.url)
        drip = server.answers[f"/v{row.version}"] = Drip(BODY)
        given_up(drip, lambda: ReleaseApi(read_seconds=LIMIT).file(row))


def test_a_proxy_that_drips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as proxy:
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        drip = proxy.answers["releases.invalid:443"] = Drip(HEADERS)
        hasty = Downloader(read_seconds=LIMIT, retries=0, transfers=1)
        with pytest.raises(Unreachable):
            hasty.fetch("https://releases.invalid/a", tmp_path / "a")
        assert drip.sent > 5
        assert drip.over.wait(10), "the connection is still open"


def test_what_comes_after_the_block_is_not_cut() -> None:
    cut = threading.Event()
    with within(0.05, cut.set):
        pass
    assert not cut.wait(0.2)


@pytest.mark.parametrize("end", [None, ConnectionError()], ids=["quiet", "error"])
def test_an_end_that_came_of_the_cut_is_no_success(end: Exception | None) -> None:
    cut = threading.Event()
    with pytest.raises(TimeoutError), within(0.01, cut.set):
        assert cut.wait(10)
        if end:
            raise end


def test_an_error_of_the_block_itself_stays_what_it_is() -> None:
    with pytest.raises(ConnectionError), within(60, lambda: None):
        raise ConnectionError
