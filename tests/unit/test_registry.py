"""Digests of tags, from a registry on 127.0.0.1 that answers as Docker Hub and others do."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from loopback import Handler, Server, body, serving, status

from ortimg.inputs.download import Unreachable
from ortimg.inputs.probe import registry_url
from ortimg.registry.client import Registries
from ortimg.registry.errors import Denied, NoImage
from ortimg.registry.transport import Patience
from ortimg.registry.trust import is_plain

DIGEST = f"sha256:{'d' * 64}"
PATH = "/v2/hub/library/debian/manifests/12-slim"
QUICK = Patience(connect_seconds=2, read_seconds=2, retries=2, backoff=0.01)
LOGIN = base64.b64encode(b"me:secret").decode()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The docker client's configuration: no log-ins."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path / "config.json"


def image(server: Server) -> str:
    return f"{server.url.removeprefix('http://')}/hub/library/debian:12-slim"


def ask(server: Server) -> str:
    return Registries(QUICK).digest(image(server))


class Guarded:
    """A registry that wants a token (`bearer`) or the log-in itself; records what it was told."""

    def __init__(self, server: Server, kind: str, login: str | None = None) -> None:
        self.kind, self.login = kind, login
        self.scopes: list[str] = []
        self.server = server
        server.answers[PATH] = self.manifest
        server.answers["/token?scope=repository%3Ahub%2Flibrary%2Fdebian%3Apull&service=s"] = self.token

    def manifest(self, handler: Handler) -> None:
        wanted = "Bearer the-token" if self.kind == "bearer" else f"Basic {self.login}"
        assert "index" in handler.headers["Accept"]
        if handler.headers.get("Authorization") == wanted:
            handler.head(200, 0, Docker_Content_Digest=DIGEST)
        elif self.kind == "bearer":
            realm = f'Bearer realm="{self.server.url}/token",service="s",scope="repository:x:pull"'
            handler.head(401, 0, WWW_Authenticate=realm)
        else:
            handler.head(401, 0, WWW_Authenticate='Basic realm="r"')

    def token(self, handler: Handler) -> None:
        self.scopes += parse_qs(urlsplit(handler.path).query)["scope"]
        wanted = f"Basic {self.login}" if self.login else None
        if handler.headers.get("Authorization") == wanted:
            body(json.dumps({"token": "the-token"}).encode())(handler)
        else:
            status(401)(handler)


def test_a_digest_in_one_question(server: Server) -> None:
    server.answers[PATH] = status(200, Docker_Content_Digest=DIGEST)
    assert ask(server) == DIGEST
    assert server.asked == [PATH]


def test_a_registry_that_says_no_digest_means_the_manifests_own_hash(server: Server) -> None:
    manifest = b'{"schemaVersion": 2}'
    server.answers[PATH] = body(manifest)
    assert ask(server) == f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def test_tokens_as_docker_hub_gives_them(server: Server) -> None:
    guarded = Guarded(server, "bearer")
    assert ask(server) == DIGEST
    assert guarded.scopes == ["repository:hub/library/debian:pull"]


@pytest.mark.parametrize("kind", ["bearer", "basic"])
def test_the_docker_clients_log_in_holds(server: Server, config: Path, kind: str) -> None:
    Guarded(server, kind, LOGIN)
    with pytest.raises(Unreachable, match=r"docker login|no token") as caught:
        ask(server)
    assert "docker login 127.0.0.1" in (caught.value.hint or "")
    host = server.url.removeprefix("http://")
    config.write_text(json.dumps({"auths": {host: {"auth": LOGIN}}}))
    assert ask(server) == DIGEST
    config.write_text(json.dumps({"auths": {host: {"auth": base64.b64encode(b"me:old").decode()}}}))
    with pytest.raises(Unreachable):
        ask(server)


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '{"auths": 1}',
        '{"auths": {"HOST": 5}}',
        '{"auths": {"HOST": {"auth": 5}}}',
        '{"auths": {"HOST": {"auth": "%%%"}}}',
        '{"auths": {"HOST": {"auth": "bWU="}}}',  # no colon in it
        '{"credHelpers": {"HOST": 7}}',
    ],
)
def test_a_configuration_of_another_shape_is_told_and_never_shown(
    server: Server, config: Path, text: str
) -> None:
    Guarded(server, "basic", LOGIN)
    config.write_text(text.replace("HOST", server.url.removeprefix("http://")))
    with pytest.raises(Denied, match=r"wants a log-in: docker's config\.json cannot be read\n") as caught:
        ask(server)
    assert "docker login 127.0.0.1" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(404), NoImage, "has no image"),
        (status(403), Denied, "look up 12-slim in hub/library/debian: 403"),
        (status(429), Unreachable, "too many requests"),
        (status(500), Unreachable, "500"),
        (status(401), Denied, "a log-in of an unknown kind"),
        (status(200, Docker_Content_Digest="md5:1"), Unreachable, "instead of a digest"),
    ],
)
def test_what_is_no_digest(server: Server, answer: object, kind: type[Exception], words: str) -> None:
    server.answers[PATH] = answer  # type: ignore[assignment]
    with pytest.raises(kind, match=words):
        ask(server)


def test_a_registry_that_is_not_there() -> None:
    with serving() as server:
        gone = server.url
    with pytest.raises(Unreachable, match="connection refused"):
        Registries(QUICK).digest(f"{gone.removeprefix('http://')}/x:1")


@pytest.mark.parametrize(
    ("registry", "plain"),
    [
        ("127.0.0.1:5000", True),
        ("localhost", True),
        ("[::1]:5000", True),
        ("registry.example.com", False),
        ("127.0.0.1.example.com", False),
        ("10.0.0.5:5000", False),
        ("docker.io", False),
    ],
)
def test_plain_http_is_for_this_machine_alone(
    registry: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_plain(registry) is plain
    assert registry_url(registry).startswith("http://") is plain
    monkeypatch.setenv("ORTIMG_PLAIN_HTTP", f"other.example.com:5000, {registry}")
    assert is_plain(registry)


def test_a_registry_here_with_certificates_speaks_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "docker" / "certs.d" / "127.0.0.1:5000").mkdir(parents=True)
    assert not is_plain("127.0.0.1:5000")
    assert is_plain("127.0.0.1:5001")


def test_no_proxy_stands_before_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.answers[PATH] = status(200, Docker_Content_Digest=DIGEST)
    assert ask(server) == DIGEST


def test_a_password_of_netrc_is_not_docker_s(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    seen: list[str | None] = []

    def answer(handler: Handler) -> None:
        seen.append(handler.headers.get("Authorization"))
        handler.head(200, 0, Docker_Content_Digest=DIGEST)

    server.answers[PATH] = answer
    assert ask(server) == DIGEST
    assert seen == [None]


def test_an_oauth_log_in_is_changed_into_a_token(server: Server, config: Path) -> None:
    """As Azure's registry wants it: docker keeps an identity token and no password."""
    host = server.url.removeprefix("http://")
    config.write_text(json.dumps({"auths": {host: {"auth": LOGIN, "identitytoken": "id-1"}}}))
    asked: list[dict[str, list[str]]] = []

    def manifest(handler: Handler) -> None:
        if handler.headers.get("Authorization") == "Bearer access-1":
            handler.head(200, 0, Docker_Content_Digest=DIGEST)
        else:
            handler.head(401, 0, WWW_Authenticate=f'Bearer realm="{server.url}/token",service="s"')

    def token(handler: Handler) -> None:
        length = int(handler.headers["Content-Length"])
        asked.append(parse_qs(handler.rfile.read(length).decode()))
        body(json.dumps({"access_token": "access-1"}).encode())(handler)

    server.answers |= {PATH: manifest, "/token": token}
    assert ask(server) == DIGEST
    assert asked[0]["refresh_token"] == ["id-1"]
    assert asked[0]["scope"] == ["repository:hub/library/debian:pull"]
