"""What a registry does on a bad day: a real one, behind a proxy that makes chosen requests go wrong."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from registries import QUICK, Proxy, Registry, proxy, put_image, registry, repository

from ortimg.inputs.download import Unreachable
from ortimg.registry.client import Registries
from ortimg.registry.errors import Denied
from ortimg.registry.model import MANIFEST, Descriptor
from ortimg.registry.referrers import list_referrers, put_referrer
from ortimg.registry.transport import Patience, StoppedTransfer
from ortimg.registry.upload import Blob, How


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
def faulty(real: Registry) -> Iterator[Proxy]:
    with proxy(real.host) as found:
        yield found


@pytest.fixture(autouse=True)
def no_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "uploads"), ("PATCH", "uploads"), ("PUT", "manifests")]
)
def test_a_refusal_is_never_tried_again(faulty: Proxy, status: int, method: str, path: str) -> None:
    words = b'{"errors": [{"code": "DENIED", "message": "requested access is denied"}]}'
    fault = faulty.fail(method, path, status=status, body=words)
    with pytest.raises(Denied):
        # other bytes each time: what the registry has is not sent
        repo = repository(faulty.host, f"refused-{status}-{method.lower()}")
        put_image(repo, "1")
    assert fault.seen == 1


def test_the_registrys_own_words_are_shown(faulty: Proxy) -> None:
    words = b'{"errors": [{"code": "DENIED", "message": "requested access is denied"}]}'
    faulty.fail("POST", "uploads", status=403, body=words)
    with pytest.raises(Denied, match="403 Forbidden: DENIED: requested access is denied"):
        put_image(repository(faulty.host, "words"))


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    ("method", "path"), [("HEAD", "blobs"), ("POST", "uploads"), ("PATCH", "uploads"), ("PUT", "digest=")]
)
def test_trouble_that_passes_costs_nothing(
    real: Registry, faulty: Proxy, status: int, method: str, path: str
) -> None:
    fault = faulty.fail(method, path, status=status, times=2)
    blob = Blob.of(os.urandom(10_000))
    assert repository(faulty.host, "trouble").upload(blob) is How.UPLOADED
    assert fault.seen == 2
    assert repository(real.host, "trouble").blob(blob.digest) is not None


def test_a_manifest_is_tried_again_too(faulty: Proxy) -> None:
    fault = faulty.fail("PUT", "manifests", status=500, times=2)
    repo = repository(faulty.host, "manifest")
    assert put_image(repo, "1") == repo.digest("1")
    assert fault.seen == 2


def test_a_connection_cut_in_the_middle_of_a_blob(real: Registry, faulty: Proxy) -> None:
    fault = faulty.fail("PATCH", "uploads", cut_after=2_000_000, times=2)
    blob = Blob.of(os.urandom(4_000_000))
    assert repository(faulty.host, "cut").upload(blob) is How.UPLOADED
    assert fault.seen == 2
    assert repository(real.host, "cut").blob(blob.digest) is not None


def test_a_blob_whose_answer_was_lost_is_not_sent_again(faulty: Proxy) -> None:
    faulty.fail("PUT", "digest=", status=500, times=1, passed_on=True)
    assert repository(faulty.host, "lost").upload(Blob.of(os.urandom(1000))) is How.UPLOADED
    assert faulty.count("^PATCH ") == 1


def test_trouble_that_stays_is_told(faulty: Proxy) -> None:
    fault = faulty.fail("PATCH", "uploads", status=503)
    with pytest.raises(Unreachable, match="503") as caught:
        repository(faulty.host, "stays").upload(Blob.of(b"x" * 100))
    assert "in trouble" in (caught.value.hint or "")
    assert fault.seen == 1 + QUICK.retries


class Waits(threading.Event):
    """A cancel that never comes, and notes how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0)
        return False


def test_a_registrys_wish_to_wait_is_heard(faulty: Proxy) -> None:
    waits = Waits()
    faulty.fail("POST", "uploads", status=429, headers={"Retry-After": "7"}, times=1)
    Registries(Patience(cancel=waits)).repository(f"{faulty.host}/waits").upload(Blob.of(b"y" * 100))
    assert waits.seconds == [7]


def test_without_a_wish_each_wait_is_longer_and_none_is_the_same(faulty: Proxy) -> None:
    waits = Waits()
    faulty.fail("POST", "uploads", status=503, times=4)
    Registries(Patience(cancel=waits)).repository(f"{faulty.host}/backoff").upload(Blob.of(b"b" * 100))
    first, *_, last = waits.seconds
    assert len(waits.seconds) == 4
    assert last > first
    assert all(seconds % 0.5 for seconds in waits.seconds[1:])  # jitter


def test_a_web_page_with_200_stored_nothing(faulty: Proxy) -> None:
    faulty.fail("PUT", "manifests", status=200, body=b"<html>log in here</html>")
    with pytest.raises(Unreachable, match="200"):
        put_image(repository(faulty.host, "page"), "1")


def test_bytes_that_changed_on_the_way_back_are_found(faulty: Proxy) -> None:
    repo = repository(faulty.host, "damage")
    image = put_image(repo, "1")
    faulty.fail("GET", "manifests", status=200, body=b'{"schemaVersion": 2}')
    with pytest.raises(Unreachable, match="damaged"):
        repo.manifest(image)


def test_a_stop_ends_an_upload_that_hangs_between_attempts(faulty: Proxy) -> None:
    cancel = threading.Event()
    faulty.fail("POST", "uploads", status=503, headers={"Retry-After": "50"}, then=cancel.set)
    with pytest.raises(StoppedTransfer):
        Registries(Patience(cancel=cancel)).repository(f"{faulty.host}/stop").upload(Blob.of(b"s"))


def test_a_registry_that_lists_referrers_itself_needs_no_tag(faulty: Proxy) -> None:
    """Debian's registry has no such API: the proxy answers as one that has (OCI-Subject, the list)."""
    repo = repository(faulty.host, "api")
    image = put_image(repo)
    faulty.fail("PUT", "manifests/sha256", status=201, headers={"OCI-Subject": image}, passed_on=True)
    digest = put_referrer(repo, image, "application/vnd.t", b"{}")
    assert repo.digest(image.replace(":", "-")) is None
    row = Descriptor(media_type=MANIFEST, digest=digest, size=1, artifact_type="application/vnd.t")
    first = json.dumps({"manifests": []}).encode()
    second = json.dumps({"manifests": [row.as_data()]}).encode()
    link = {"Link": f'</v2/api/referrers/{image}?page=2>; rel="next"'}
    faulty.fail("GET", r"referrers.*page=2", status=200, body=second)
    faulty.fail("GET", "referrers", status=200, body=first, headers=link)
    assert list_referrers(repo, image) == (row,)
    assert list_referrers(repo, image, "application/vnd.u") == ()
