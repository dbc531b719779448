"""images.lock: equal content gives equal text, known hashes never change by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ortimg.core.lock import BaseLock, Lock, OrtLock, Repacked, dump, merge, parse, planned
from ortimg.core.lock_changes import NOTHING, accept, dated
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.inputs.lockfile import read_lock, write_lock

A, B, C = "a" * 64, "b" * 64, "c" * 64
LOCK = Lock(
    ort={
        "1.18.0-cuda12": OrtLock(),
        "1.16.2-cuda11": OrtLock(upstream=A, maven=Repacked(source=B)),
    },
    cuda={"11.8-cudnn8": {"nvidia_b.whl": B, "nvidia_a.whl": A}},
    bases={"debian12": BaseLock(image="debian:12-slim")},
)


def test_round_trip_and_text() -> None:
    text = dump(LOCK)
    assert parse(text) == LOCK
    assert dump(parse(text)) == text
    assert text.endswith("}\n")
    data = json.loads(text)
    assert data["schema"] == 1
    assert data["bases"]["debian12"] == {"image": "debian:12-slim", "digest": None}
    assert list(data["ort"]) == ["1.16.2-cuda11", "1.18.0-cuda12"]


def test_the_order_of_the_parts_does_not_show() -> None:
    turned = Lock(ort=dict(reversed(LOCK.ort.items())), cuda=LOCK.cuda, bases=LOCK.bases)
    assert dump(turned) == dump(LOCK)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 2}',
        '{"schema": 1, "else": 1}',
        '{"ort": {"a": {"upstream": 5}}}',
        '{"ort": {"a": {"upstream": "zz"}}}',
        f'{{"ort": {{"a": {{"maven": {{"tar": "{A}\\nRUN x"}}}}}}}}',
        f'{{"cuda": {{"a": {{"b.whl": "{A.upper()}"}}}}}}',
        f'{{"bases": {{"a": {{"image": "b", "digest": "{A}"}}}}}}',
        f'{{"bases": {{"a": {{"image": "b", "digest": "sha256:{A}\\n"}}}}}}',
        "<<<<<<< HEAD",
    ],
)
def test_not_a_lock(text: str) -> None:
    with pytest.raises(ConfigError, match=r"images\.lock: "):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"ort": {"a": {"upstream": "zz"}}}', "no sha256 stands where one belongs - at `ort.*.upstream`"),
        ('{"bases": {"a": {"image": "b", "digest": "sha256:x"}}}', "belongs - at `bases.*.digest`"),
        ("", "the file ends too early"),
    ],
)
def test_what_is_wrong_with_a_lock_is_said_in_plain_words(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert caught.value.message.endswith(words)


def test_news_fill_what_is_unknown() -> None:
    news = Lock(
        ort={
            "1.18.0-cuda12": OrtLock(upstream=C),
            "1.16.2-cuda11": OrtLock(maven=Repacked(source=B, tar=C)),
        }
    )
    merged = merge(LOCK, news)
    assert merged.ort["1.18.0-cuda12"].upstream == C
    assert merged.ort["1.16.2-cuda11"] == OrtLock(upstream=A, maven=Repacked(source=B, tar=C))
    assert merged.cuda == LOCK.cuda
    assert merge(merged, news) == merged
    assert merge(merged, LOCK) == merged, "less knowledge takes nothing away"


@pytest.mark.parametrize(
    "news",
    [
        Lock(ort={"1.16.2-cuda11": OrtLock(upstream=B)}),
        Lock(ort={"1.16.2-cuda11": OrtLock(maven=Repacked(source=A))}),
        Lock(cuda={"11.8-cudnn8": {"nvidia_a.whl": C}}),
    ],
    ids=["archive", "jar", "wheel"],
)
def test_another_hash_stops_with_both(news: Lock) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        merge(LOCK, news)
    assert "re-uploaded upstream or damaged in transit" in caught.value.message
    assert sum(sha in caught.value.message for sha in (A, B, C)) == 2


def test_a_set_with_other_wheels_replaces_the_old_one() -> None:
    merged = merge(LOCK, Lock(cuda={"11.8-cudnn8": {"nvidia_a.whl": A, "nvidia_new.whl": C}}))
    assert merged.cuda["11.8-cudnn8"] == {"nvidia_a.whl": A, "nvidia_new.whl": C}


def test_a_digest_belongs_to_its_image() -> None:
    pinned = merge(LOCK, Lock(bases={"debian12": BaseLock(image="debian:12-slim", digest="sha256:1")}))
    assert pinned.bases["debian12"].digest == "sha256:1"
    assert merge(pinned, LOCK) == pinned
    moved = merge(pinned, Lock(bases={"debian12": BaseLock(image="mirror/debian:12-slim")}))
    assert moved.bases["debian12"] == BaseLock(image="mirror/debian:12-slim")


def test_planned_holds_what_the_catalogue_knows() -> None:
    assert planned(()) == Lock()


def test_the_file_is_written_only_when_it_changes(tmp_path: Path) -> None:
    assert read_lock(tmp_path) == Lock()
    assert write_lock(tmp_path, LOCK)
    before = (tmp_path / "images.lock").stat()
    assert not write_lock(tmp_path, LOCK)
    assert (tmp_path / "images.lock").stat().st_mtime_ns == before.st_mtime_ns
    assert read_lock(tmp_path) == LOCK
    assert [path.name for path in tmp_path.iterdir()] == ["images.lock"]


def test_the_date_of_images_is_kept_once_it_is_there() -> None:
    dated_once = dated(Lock(), LOCK, 1_800_000_000, take=False)
    assert dated_once.epoch == 1_800_000_000
    more = msgspec.structs.replace(dated_once, tags={"latest": "somewhere"})
    assert (
        dated(dated_once, accept(dated_once, more, NOTHING), 1_900_000_000, take=False).epoch == 1_800_000_000
    )
    assert merge(dated_once, Lock(bases={"new": BaseLock(image="new:1")})).epoch == 1_800_000_000


def test_the_date_of_images_moves_when_changed_pins_are_taken() -> None:
    before = dated(Lock(), LOCK, 1_800_000_000, take=False)
    assert dated(before, before, 1_900_000_000, take=True).epoch == 1_800_000_000
    after = msgspec.structs.replace(before, tags={"latest": "somewhere"})
    assert dated(before, after, 1_900_000_000, take=True).epoch == 1_900_000_000


@pytest.mark.parametrize("epoch", [-1, 1.5, "2026-12-01", 10**15])
def test_a_date_that_is_none_is_refused(epoch: object) -> None:
    with pytest.raises(ConfigError, match="epoch"):
        parse(json.dumps({"epoch": epoch}))
