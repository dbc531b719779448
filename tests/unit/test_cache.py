"""The cache: whole or not at all, for several processes at once, on disks that are full or closed."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache, Entry, StoppedError

SPAWN = multiprocessing.get_context("spawn")


def put(cache: Cache, name: str, data: bytes) -> Entry:
    with cache.workdir() as work:
        file = work / "file"
        file.write_bytes(data)
        return cache.adopt(name, file, sha256=None, origin="upstream", details={"url": "x"})


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    put(Cache(tmp_path), "ort/1.16.2-cuda11/maven", b"data")
    cache = Cache(tmp_path)
    entry = cache.get("ort/1.16.2-cuda11/maven")
    assert entry is not None
    assert (entry.sha256, entry.size) == (hashlib.sha256(b"data").hexdigest(), 4)
    assert (entry.origin, entry.details) == ("upstream", {"url": "x"})
    assert cache.path(entry).read_bytes() == b"data"
    assert cache.get("ort/other") is None
    assert cache.names() == ("ort/1.16.2-cuda11/maven",)


def test_a_blob_is_placed_as_a_link_and_cannot_be_written(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = put(cache, "a", b"data")
    cache.place(entry, tmp_path / "context" / "file.whl")
    assert (tmp_path / "context" / "file.whl").samefile(cache.path(entry))
    assert cache.path(entry).stat().st_mode & 0o222 == 0


@pytest.mark.parametrize("damage", [b"dat", b"DATA", b"data and more"])
def test_a_damaged_blob_is_said_removed_and_absent(tmp_path: Path, damage: bytes) -> None:
    entry = put(Cache(tmp_path), "a", b"data")
    said: list[str] = []
    cache = Cache(tmp_path, said.append)
    path = cache.path(entry)
    path.chmod(0o644)
    path.write_bytes(damage)
    assert cache.get("a") is None
    assert len(said) == 1
    assert "a is " in said[0]
    assert cache.names() == ()
    assert put(cache, "a", b"data") == entry, "and it can be fetched again"
    assert cache.get("a") == entry


def test_damage_after_the_first_read_is_seen(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    entry = put(cache, "a", b"data")
    assert cache.get("a") == entry
    path = cache.path(entry)
    path.chmod(0o644)
    path.write_bytes(b"DATA")
    assert cache.get("a") is None


@pytest.mark.parametrize(
    "text", ["", "{", '{"name": "a"}', "\0" * 40], ids=["empty", "cut", "short", "zeros"]
)
def test_a_broken_index_of_an_earlier_run_is_absent(tmp_path: Path, text: str) -> None:
    put(Cache(tmp_path), "a", b"data")
    (tmp_path / "index" / "a.json").write_text(text)
    said: list[str] = []
    cache = Cache(tmp_path, said.append)
    assert cache.get("a") is None
    assert said
    assert put(cache, "a", b"data") == cache.get("a")


def test_a_lost_blob_is_absent(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.path(put(cache, "a", b"data")).unlink()
    assert cache.get("a") is None


def test_dropping_a_name_keeps_a_blob_that_another_name_has(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    entry = put(cache, "a", b"data")
    put(cache, "b", b"data")
    cache.drop("a")
    assert cache.get("a") is None
    assert cache.get("b") is not None
    cache.drop("b")
    assert not cache.path(entry).exists()


@pytest.mark.parametrize("name", ["", "../a", "a/../b", "/a", "a//b", "a\n", ".hidden"])
def test_names_stay_inside_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a cache name"):
        Cache(tmp_path).peek(name)


def test_unfinished_work_leaves_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with pytest.raises(RuntimeError), cache.workdir() as work:
        (work / "file").write_bytes(b"half")
        raise RuntimeError
    assert list((tmp_path / "tmp").iterdir()) == []
    assert cache.names() == ()


def _work_and_hang(root: str, ready: str) -> None:
    with Cache(Path(root)).workdir() as work:
        (work / "half.tgz").write_bytes(b"half")
        Path(ready).touch()
        time.sleep(60)


def test_work_of_a_killed_run_is_swept_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    root, ready = tmp_path / "cache", tmp_path / "ready"
    process = SPAWN.Process(target=_work_and_hang, args=(str(root), str(ready)))
    process.start()
    while not ready.exists():
        time.sleep(0.01)
    with Cache(root).workdir():
        assert len(list((root / "tmp").glob("*/work/half.tgz"))) == 1, "it is alive"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with Cache(root).workdir() as work:
        assert list((root / "tmp").iterdir()) == [work.parent]


def _fetch_slowly(root: str, log: str) -> None:
    cache = Cache(Path(root))
    with cache.locked("ort/a"):
        if cache.get("ort/a") is None:
            with Path(log).open("a") as file:
                file.write("fetched\n")
            time.sleep(0.3)
            put(cache, "ort/a", b"data" * 1000)


def test_two_processes_at_once_fetch_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [
        SPAWN.Process(target=_fetch_slowly, args=(str(tmp_path / "cache"), str(log))) for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert log.read_text() == "fetched\n"
    assert Cache(tmp_path / "cache").get("ort/a") is not None


def test_waiting_for_another_holder_can_be_interrupted(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with Cache(tmp_path).locked("a"), pytest.raises(StoppedError), Cache(tmp_path).locked("a", stop):
        pass
    with Cache(tmp_path).locked("a", stop):
        pass


@pytest.mark.parametrize("where", ["file", "sys"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, where: str) -> None:
    if where == "file":
        (tmp_path / "file").write_text("not a folder")
        root = tmp_path / "file" / "cache"
    else:
        root = Path("/sys/ortimg")  # nobody may make folders there, root neither
    with pytest.raises(EnvironmentFault) as caught, Cache(root).workdir():
        pass
    assert str(root) in caught.value.message
    assert "ORTIMG_CACHE" in (caught.value.hint or "")


def test_a_folder_that_cannot_be_made() -> None:
    with (
        pytest.raises(EnvironmentFault, match="the cache cannot be written"),
        Cache(Path("/proc/nowhere/cache")).workdir(),
    ):
        pass


def test_no_room_says_need_and_has(tmp_path: Path) -> None:
    words = r"1,000,000,000 MB are needed, [\d,]+ MB are free"
    with pytest.raises(EnvironmentFault, match=words), Cache(tmp_path).workdir(need=10**15):
        pass


def test_a_full_disk_is_the_machines_fault(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - writing is what fails
    with full, pytest.raises(EnvironmentFault, match="the disk is full"), cache.workdir():
        full.write(b"x")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_folder_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "mine"))
    assert Cache.default().root == tmp_path / "mine"
    monkeypatch.delenv("ORTIMG_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Cache.default().root == tmp_path / ".cache" / "ortimg"
