"""`ortimg prune`: the cache on a real disk, and which of the builder's records are ours."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from wishes import CATALOGUE, INDEX, cell, images

from ortimg.cli import cli
from ortimg.engine.cache import CacheRecord
from ortimg.factory.stale import is_stale_record
from ortimg.inputs import stale
from ortimg.inputs.cache import Cache, Entry
from ortimg.sources import read_sources

ROW = INDEX.release("1.16.2", 11)
PINNED = CATALOGUE.cuda_sets[0].wheels[0]
TOOLS = hashlib.sha256(read_sources().context["tools/requirements.txt"].encode()).hexdigest()[:16]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of its own, and an engine that does not answer."""
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setattr(stale, "GRACE", 0.0)
    return Cache(tmp_path / "cache")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    return folder


def put(cache: Cache, name: str, size: int, origin: str = "maven") -> Entry:
    with cache.workdir() as work:
        file = work / "file"
        file.write_bytes(os.urandom(size))
        return cache.adopt(name, file, sha256=None, origin=origin)


def prune(project: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(project), "prune", *options])


def test_what_the_plan_needs_stays(project: Path, cache: Cache) -> None:
    wanted = ["ort/1.16.2-cuda11/maven", "base/debian12/bootstrap", "base/debian12/bootstrap-packages"]
    wanted += [f"base/tools-{TOOLS}/bootstrap", f"base/tools-{TOOLS}/bootstrap-packages"]
    unwanted = {"ort/1.18.0-cuda12/maven": 20, "base/debian13/bootstrap": 300, "base/tools-0/bootstrap": 4000}
    for name in wanted:
        put(cache, name, 7)
    for name, size in unwanted.items():
        put(cache, name, size)
    dry = json.loads(prune(project, "--dry-run", "--json").stdout)
    assert set(cache.names()) == {*wanted, *unwanted}, "a dry run removes nothing"
    result = prune(project, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == dry | {"dry_run": False}
    assert report["schema"] == 1
    assert report["bytes"] == 4320
    assert {row["name"]: row["bytes"] for row in report["removed"]} == unwanted
    assert "does not answer" in report["engine"]
    assert set(cache.names()) == set(wanted)
    assert len(list((cache.root / "blobs/sha256").iterdir())) == len(wanted)
    again = prune(project)
    assert again.stdout == "Nothing can go.\n"
    assert "units and the builder's records are left out" in again.stderr


def test_another_file_than_the_pin_goes(project: Path, cache: Cache) -> None:
    put(cache, f"wheels/{PINNED.filename}", 5, "wheel")
    assert "another file than the catalogue's pin" in prune(project).stdout
    assert cache.names() == ()


def test_a_fallback_goes_where_the_release_archive_is_there(project: Path, cache: Cache) -> None:
    put(cache, "ort/1.16.2-cuda11/maven", 5)
    upstream = put(cache, "ort/1.16.2-cuda11/upstream", 6, "upstream")
    assert upstream.sha256 != getattr(ROW, "sha256", None)
    pins = {"ort/1.16.2-cuda11/maven": None, upstream.name: frozenset({upstream.sha256})}
    rows = [*stale.stale_entries(cache, pins)]
    assert [(row.name, row.reason) for row in rows] == [
        ("ort/1.16.2-cuda11/maven", "the release archive itself is there")
    ]
    # the catalogue pins another archive: this one is of no use, the fallback is
    prune(project)
    assert cache.names() == ("ort/1.16.2-cuda11/maven",)


def test_a_blob_that_a_kept_name_stands_for_stays(project: Path, cache: Cache) -> None:
    kept = put(cache, "ort/1.16.2-cuda11/maven", 9)
    other = cache.index_path("ort/1.14.0-cuda11/maven")
    other.parent.mkdir(parents=True)
    shutil.copy(cache.index_path(kept.name), other)
    result = prune(project)
    assert result.stdout.endswith("0.0 MB given back\n")
    assert cache.names() == (kept.name,)
    assert cache.get(kept.name) == kept


def test_leftovers(project: Path, cache: Cache) -> None:
    dead = cache.root / "tmp" / "x.part" / "work"
    dead.mkdir(parents=True)
    (dead / "half").write_bytes(bytes(100))
    (dead.parent / "owner").touch()
    nameless = cache.root / "blobs" / "sha256" / ("a" * 64)
    nameless.parent.mkdir(parents=True)
    nameless.write_bytes(bytes(30))
    broken = cache.index_path("ort/1.16.2-cuda11/upstream")
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    report = json.loads(prune(project, "--json").stdout)
    assert {(row["reason"], row["bytes"]) for row in report["removed"]} == {
        ("left by a run that was killed", 100),
        ("no name stands for it", 30),
        ("broken, left by an earlier run", 0),
    }
    assert not dead.parent.exists()
    assert not nameless.exists()
    assert not broken.exists()


def test_a_young_blob_may_get_its_name_yet(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = put(cache, "a", 5)
    cache.index_path("a").unlink()
    assert [row.paths for row in stale.nameless_blobs(cache)] == [(cache.path(entry),)]
    monkeypatch.setattr(stale, "GRACE", 60.0)
    assert [*stale.nameless_blobs(cache)] == []


def test_nothing_goes_while_another_run_is_at_work(project: Path, cache: Cache) -> None:
    put(cache, "ort/1.18.0-cuda12/maven", 5)
    with cache.workdir():
        refused = prune(project)
        assert refused.exit_code == 3
        assert "another ortimg is at work" in refused.stderr
        assert prune(project, "--dry-run").exit_code == 0
    assert cache.names() == ("ort/1.18.0-cuda12/maven",)
    assert prune(project).exit_code == 0
    assert cache.names() == ()


def test_the_whole_cache(project: Path, cache: Cache) -> None:
    put(cache, "ort/1.16.2-cuda11/maven", 9)
    for name in ("m2/plugin", "logs/a.log", "verifier/x/ort-verify", "mine/file"):
        (cache.root / name).parent.mkdir(parents=True, exist_ok=True)
        (cache.root / name).write_bytes(bytes(10))
    report = json.loads(prune(project, "--cache", "--json").stdout)
    assert report["bytes"] == 39
    assert cache.names() == ()
    assert not list((cache.root / "blobs/sha256").iterdir())
    assert sorted(path.name for path in cache.root.iterdir()) == [
        "blobs", "index", "mine", "tmp", "tmp.lock",
    ]  # fmt: skip


def test_without_a_plan_only_everything_can_go(tmp_path: Path, cache: Cache) -> None:
    put(cache, "ort/1.16.2-cuda11/maven", 9)
    for options in ((), ("--cache",), ("--units",), ("--all", "--images")):
        refused = prune(tmp_path, *options)
        assert refused.exit_code == 2
        assert "there is no images.yaml" in refused.stderr
    assert cache.names() == ("ort/1.16.2-cuda11/maven",)
    assert prune(tmp_path, "--all").exit_code == 0
    assert cache.names() == ()


# Descriptions as an engine gave them, and whether they go by default, with --units.
RECORDS = [
    ("local source for ort-archive", False, True, True),
    ("[cuda 1/1] COPY --from=cuda-unpack /unit/ /", True, True, True),
    ("[1/1] ADD root.tar /", False, True, True),
    ("[stage-11 1/6] COPY --link --from=cuda / /", False, True, True),
    ("[stage-11 2/7] COPY --link --from=base / /", True, False, True),
    (
        "mount / from exec /bin/sh -c set -eux\nmkdir -p /etc/ld.so.conf.d /usr/share/ortimg\n"
        "cat >/etc/ld.so.conf.d/000-onnxruntime.conf <<'LIST'\n/opt/onnxruntime/current/lib\n",
        False,
        False,
        True,
    ),
    (
        "mount / from exec /bin/sh -c ldconfig && rm -f /var/cache/ldconfig/aux-cache",
        False,
        False,
        True,
    ),
    ("[stage-0 1/3] COPY root/ /", False, False, False),
    ("local source for context", False, True, True),
    ("local source for dockerfile", False, False, False),
    ("[stage-2 3/9] COPY --link --from=build /app /app", False, False, False),
    ("mount / from exec /bin/sh -c ldconfig", False, False, False),
    ("", False, False, False),
]


@pytest.mark.parametrize(("description", "shared", "default", "units"), RECORDS)
def test_which_records_are_ours(description: str, shared: bool, default: bool, units: bool) -> None:
    record = CacheRecord(id="x", kind="regular", description=description, size=1, in_use=False, shared=shared)
    assert is_stale_record(record, False) is default
    assert is_stale_record(record, True) is units
