"""Downloads against a real server on 127.0.0.1: every way in which a file can come wrong."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Handler, Server, body, drip, in_turn, serving, status, zeros

from ortimg.errors import ExitCode
from ortimg.inputs.download import Downloader, HashMismatch, Limits, Unreachable
from ortimg.inputs.probe import probe

DATA = b"\x1f\x8b" + bytes(range(256)) * 4000
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def downloader() -> Downloader:
    return Downloader(connect_seconds=2, read_seconds=2, backoff=0.01)


def test_whole_file_with_progress(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    server.answers["/a"] = body(DATA)
    seen: list[tuple[int, int | None]] = []
    found = downloader.fetch(
        f"{server.url}/a", tmp_path / "a", sha256=SHA, progress=lambda *args: seen.append(args)
    )
    assert found == SHA
    assert (tmp_path / "a").read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))


def test_a_redirect_to_the_good_file_is_followed(
    server: Server, downloader: Downloader, tmp_path: Path
) -> None:
    server.answers["/a"] = status(302, Location="/b")
    server.answers["/b"] = body(DATA)
    assert downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA) == SHA


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(404), "the server answered 404"),
        (status(403), "the server answered 403"),
        (
            body(
                b"<!DOCTYPE html><html><title>Log in</title></html>", Content_Type="text/html; charset=utf-8"
            ),
            'a web page ("Log in") came instead of the archive',
        ),
        (body(b"\n <HTML><body>moved</body></HTML>", Content_Type="application/gzip"), "a web page came"),
        (body(DATA[: len(DATA) // 2], length=len(DATA)), "the transfer broke off"),
        (body(DATA, length=len(DATA) + 100), "the transfer broke off"),
        (status(503), "the server answered 503"),
    ],
    ids=["404", "403", "web-page", "web-page-by-content", "cut-at-half", "length-too-large", "503-for-ever"],
)
def test_not_the_file(
    server: Server, downloader: Downloader, tmp_path: Path, answer: object, words: str
) -> None:
    server.answers["/a"] = answer  # type: ignore[assignment]
    with pytest.raises(Unreachable) as caught:
        downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA)
    assert words in caught.value.message
    assert f"{server.url}/a" in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert list(tmp_path.iterdir()) == []


def test_one_byte_changed_names_both_hashes(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    changed = DATA[:5000] + bytes([DATA[5000] ^ 1]) + DATA[5001:]
    server.answers["/a"] = body(changed)
    with pytest.raises(HashMismatch) as caught:
        downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA)
    assert SHA in caught.value.message
    assert hashlib.sha256(changed).hexdigest() in caught.value.message
    assert "re-uploaded upstream or damaged in transit" in caught.value.message
    assert list(tmp_path.iterdir()) == []
    assert server.asked == ["/a"], "a wrong file is not asked for again"


def test_a_cut_transfer_is_tried_again(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    server.answers["/a"] = in_turn(body(DATA[:100], length=len(DATA)), body(DATA))
    assert downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA) == SHA


def test_twice_500_then_the_file(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    server.answers["/a"] = in_turn(status(500), status(500), body(DATA))
    assert downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA) == SHA
    assert server.asked == ["/a"] * 3


def test_retry_after_is_honoured(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    server.answers["/a"] = in_turn(status(429, Retry_After="1"), body(DATA))
    start = time.monotonic()
    assert downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA) == SHA
    assert time.monotonic() - start >= 1


def test_retry_after_has_a_bound(
    server: Server, downloader: Downloader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "longest_wait", 0.05)
    server.answers["/a"] = in_turn(status(429, Retry_After="86400"), body(DATA))
    assert downloader.fetch(f"{server.url}/a", tmp_path / "a") == SHA


def test_a_dripping_server_is_given_up(server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = drip(10_000, 0.02)
    hasty = Downloader(read_seconds=5, stall_seconds=0.2, stall_bytes=1000, transfers=1, backoff=0.01)
    with pytest.raises(Unreachable, match=r"only \d+ bytes came"):
        hasty.fetch(f"{server.url}/a", tmp_path / "a")


def test_a_silent_server_is_given_up(server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = drip(2, 3)
    hasty = Downloader(read_seconds=0.2, transfers=1, backoff=0.01)
    with pytest.raises(Unreachable, match="timed out"):
        hasty.fetch(f"{server.url}/a", tmp_path / "a")


def test_a_stop_ends_the_wait_for_a_silent_server(server: Server, tmp_path: Path) -> None:
    over = threading.Event()
    patient = Downloader(read_seconds=600, transfers=3)

    def answer(handler: Handler) -> None:
        handler.head(200, 10)
        handler.wfile.write(b"x")
        threading.Timer(0.2, patient.stop).start()
        over.wait(60)

    server.answers["/a"] = answer
    with pytest.raises(Unreachable, match="interrupted"):
        patient.fetch(f"{server.url}/a", tmp_path / "a")
    over.set()
    assert server.asked == ["/a"]
    assert list(tmp_path.iterdir()) == []


def test_a_length_that_is_too_small(server: Server, downloader: Downloader, tmp_path: Path) -> None:
    """What lies behind the promised end is never read, so the hash is another one."""
    server.answers["/a"] = body(DATA, length=len(DATA) - 100)
    with pytest.raises(HashMismatch):
        downloader.fetch(f"{server.url}/a", tmp_path / "a", sha256=SHA)
    assert list(tmp_path.iterdir()) == []


def test_nobody_listens(server: Server, tmp_path: Path) -> None:
    url = server.url
    server.server_close()
    with pytest.raises(Unreachable, match="connection refused"):
        Downloader(retries=1, backoff=0.01).fetch(f"{url}/a", tmp_path / "a")


def test_memory_does_not_grow_with_the_file(server: Server, tmp_path: Path) -> None:
    server.answers["/a"] = zeros(100 << 20)
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from ortimg.inputs.download import Downloader\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "Downloader().fetch(sys.argv[1], Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = (sys.executable, "-c", script, f"{server.url}/a", str(tmp_path / "a"))
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < 32 << 10, f"{grown} KiB"


def test_probe_tells_who_answers(server: Server) -> None:
    server.answers["/v2/"] = status(401)
    there = f"{server.url}/v2/"
    with serving() as other:
        gone = other.url
    answer = probe(releases=gone, hub=there, seconds=2)
    assert answer.hub is None, "any HTTP answer counts, a 401 too"
    assert answer.releases is not None
    assert answer.releases.endswith("connection refused")


def test_probe_does_not_wait_for_a_silent_host(server: Server) -> None:
    server.answers["/"] = lambda _handler: time.sleep(2)
    answer = probe(releases=f"{server.url}/", hub=f"{server.url}/", seconds=0.3)
    assert answer.hub is not None
    assert "127.0.0.1" in answer.hub
