"""The registry client against two real registries: blobs, mounts, manifests, referrers; log-ins and TLS."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from registries import PASSWORD, USER, Kind, Registry, both_kinds, proxy, put_image, registry, repository

from ortimg.inputs.download import Unreachable
from ortimg.registry.client import Registries
from ortimg.registry.errors import Denied, NoImage
from ortimg.registry.model import CONFIG, MANIFEST, Descriptor, canonical
from ortimg.registry.referrers import list_referrers, put_referrer, read_referrer
from ortimg.registry.upload import Blob, How

TYPE = "application/vnd.ortimg.test.v1+json"


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    kind = getattr(request, "param", Kind.DEBIAN)
    with registry(tmp_path_factory.mktemp("registry"), kind=kind) as found:
        yield found


@pytest.fixture(autouse=True)
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The docker client's configuration: no log-ins."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path / "config.json"


@both_kinds
def test_a_blob_is_sent_once_and_mounted_elsewhere(real: Registry) -> None:
    first, second = repository(real.host, "once/a"), repository(real.host, "once/b")
    blob = Blob.of(os.urandom(3_000_000))
    assert first.blob(blob.digest) is None
    assert first.upload(blob) is How.UPLOADED
    assert first.upload(blob) is How.PRESENT
    how = How.PRESENT if real.kind.shares_blobs else How.MOUNTED
    assert second.place(blob.digest, ["once/nothing", "once/a"]) is how
    assert second.blob(blob.digest) is not None


@both_kinds
def test_a_mount_that_is_not_possible_leaves_the_way_free_for_an_upload(real: Registry) -> None:
    repo, blob = repository(real.host, "mounts"), Blob.of(os.urandom(1000))
    assert repo.place(blob.digest, ["mounts/nothing"]) is None
    assert repo.upload(blob, ["mounts/nothing"]) is How.UPLOADED
    assert repo.blob(blob.digest) is not None


@both_kinds
def test_tags_and_digests(real: Registry) -> None:
    repo = repository(real.host, "tags")
    assert repo.digest("1") is None
    digest = put_image(repo, "1")
    assert repo.digest("1") == repo.digest(digest) == digest
    assert Registries().digest(f"{real.host}/tags:1") == digest
    manifest = repo.manifest("1")
    assert manifest is not None
    assert manifest.media_type == MANIFEST
    with pytest.raises(NoImage):
        Registries().digest(f"{real.host}/tags:2")


def test_no_tag_is_put_on_half_an_image(real: Registry) -> None:
    """The registry's own guard, which crane has not: there only the order of a push keeps tags whole."""
    repo = repository(real.host, "half")
    missing = Descriptor(media_type=CONFIG, digest=f"sha256:{'1' * 64}", size=2)
    content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": missing.as_data(), "layers": []}
    with pytest.raises(Unreachable, match="MANIFEST_BLOB_UNKNOWN"):
        repo.put_manifest(canonical(content), MANIFEST, "1")
    assert repo.digest("1") is None


@both_kinds
def test_referrers_where_the_registry_has_no_api_for_them(real: Registry) -> None:
    repo = repository(real.host, "referrers")
    image = put_image(repo)
    assert list_referrers(repo, image) == ()
    first = put_referrer(repo, image, TYPE, b'{"a": 1}', annotations={"gpu": "H200"})
    second = put_referrer(repo, image, "application/vnd.other", b'{"b": 1}')
    assert put_referrer(repo, image, TYPE, b'{"a": 1}', annotations={"gpu": "H200"}) == first
    assert {row.digest for row in list_referrers(repo, image)} == {first, second}
    (own,) = list_referrers(repo, image, TYPE)
    assert (own.digest, own.annotations) == (first, {"gpu": "H200"})
    assert read_referrer(repo, own) == b'{"a": 1}'
    assert repo.digest(image.replace(":", "-")) is not None  # the tag that stands in for the API
    with pytest.raises(NoImage):
        put_referrer(repo, f"sha256:{'2' * 64}", TYPE, b"{}")


# Log-ins


def log_in(config: Path, *hosts: str, password: str = PASSWORD) -> str:
    """As `docker login` writes it; gives what must be nowhere else."""
    secret = base64.b64encode(f"{USER}:{password}".encode()).decode()
    config.write_text(json.dumps({"auths": {host: {"auth": secret} for host in hosts}}))
    return secret


def test_a_log_in_of_the_docker_client_lets_in(tmp_path: Path, docker_config: Path) -> None:
    with registry(tmp_path / "registry", login=True) as locked:
        with pytest.raises(Denied, match="wants a log-in") as caught:
            put_image(repository(locked.host, "x"))
        assert caught.value.hint == f"run `docker login {locked.host}`"
        log_in(docker_config, locked.host, password="wrong")
        with pytest.raises(Denied, match="401"):
            put_image(repository(locked.host, "x"))
        secret = log_in(docker_config, locked.host)
        assert put_image(repository(locked.host, "x"), "1").startswith("sha256:")
        assert secret not in locked.log
        assert f":{PASSWORD}" not in locked.log


def test_a_credential_helper_lets_in(
    tmp_path: Path, docker_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "bin" / "docker-credential-tests"
    helper.parent.mkdir()
    answer = json.dumps({"Username": USER, "Secret": PASSWORD})
    helper.write_text(f"#!/bin/sh\ncat >/dev/null\n[ \"$1\" = get ] && echo '{answer}'\n")
    helper.chmod(0o755)
    with registry(tmp_path / "registry", login=True) as locked:
        docker_config.write_text(json.dumps({"credHelpers": {locked.host: "tests"}}))
        with pytest.raises(Denied, match="credential helper failed"):
            put_image(repository(locked.host, "x"))
        monkeypatch.setenv("PATH", f"{helper.parent}:{os.environ['PATH']}")
        assert put_image(repository(locked.host, "x"), "1").startswith("sha256:")


def test_no_credential_follows_an_upload_to_another_host(
    tmp_path: Path, docker_config: Path, real: Registry
) -> None:
    """A registry may take uploads elsewhere; only itself gets the log-in."""
    with (
        registry(tmp_path / "registry", login=True) as locked,
        proxy(real.host) as other,
        proxy(locked.host) as front,
    ):
        log_in(docker_config, front.host, other.host)
        elsewhere = {"Location": f"http://{other.host}/v2/x/blobs/uploads/1"}
        front.fail("POST", "uploads", status=202, headers=elsewhere, login=True)
        with pytest.raises(Unreachable):
            repository(front.host, "x").upload(Blob.of(b"z"))
        assert other.asked
        assert other.authorizations == {None}
        assert len(front.authorizations) == 2  # without, then with the log-in


# TLS


def test_a_registry_with_an_authority_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with registry(tmp_path / "registry", certificate=(certificate, key)) as own:
        folder = tmp_path / "docker" / "certs.d" / own.host
        folder.mkdir(parents=True)
        with pytest.raises(Unreachable, match="certificate cannot be verified"):
            put_image(repository(own.host, "x"))
        (folder / "ca.crt").write_bytes(certificate.read_bytes())
        assert put_image(repository(own.host, "x"), "1").startswith("sha256:")
