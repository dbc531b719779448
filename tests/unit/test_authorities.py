"""Downloads behind a company's own certificate authority."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Server, body, serving

from ortimg.errors import ConfigError
from ortimg.inputs.authorities import VARIABLES
from ortimg.inputs.download import Downloader, Unreachable
from ortimg.inputs.probe import probe

DATA = b"an archive"

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody knows, and its key."""
    folder = tmp_path_factory.mktemp("authority")
    certificate, key = folder / "authority.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=own authority"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def server(authority: tuple[Path, Path]) -> Iterator[Server]:
    with serving() as running:
        running.speak_tls(*authority)
        running.answers["/a.tgz"] = running.answers["/"] = body(DATA)
        yield running


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_file_that_the_environment_names_is_trusted(
    server: Server,
    authority: tuple[Path, Path],
    variable: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, str(authority[0]))
    Downloader(retries=0).fetch(f"{server.url}/a.tgz", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert probe(releases=f"{server.url}/", hub=f"{server.url}/").releases is None


def test_an_unknown_authority_is_refused_with_what_to_set(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        Downloader(retries=0).fetch(f"{server.url}/a.tgz", tmp_path / "a")
    assert "its certificate cannot be verified" in caught.value.message
    assert "REQUESTS_CA_BUNDLE" in (caught.value.hint or "")
    refusal = probe(releases=f"{server.url}/", hub=f"{server.url}/").releases
    assert refusal is not None
    assert refusal.endswith("its certificate cannot be verified")


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_file_that_is_not_there_is_told(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/nowhere.pem")
    with pytest.raises(ConfigError, match=f'{variable}: "/nowhere.pem" is not there'):
        Downloader().fetch("https://127.0.0.1:1/a.tgz", tmp_path / "a")
    with pytest.raises(ConfigError, match=variable):
        probe(releases="https://127.0.0.1:1/", hub="https://127.0.0.1:1/")
