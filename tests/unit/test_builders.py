"""Builders that are not the engine's own: which can be used, where images go, what is told otherwise."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from ortimg.core.model import Tier
from ortimg.engine.builders import BuilderInfo, judge_builder, read_inspect
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.factory.delivery import ToFolder
from ortimg.factory.preflight import explain, read_builder_faults
from ortimg.factory.site import Wish, _prefix, _refuse_loopback
from ortimg.factory.stores import HANDED, LayoutStore, layout_digest, layout_references

# As buildx 0.13.1 prints it for a remote BuildKit v0.24.0.
REMOTE = """\
Name:          fleet-a
Driver:        remote
Last Activity: 2026-12-01 12:00:20 +0000 UTC

Nodes:
Name:             fleet-a0
Endpoint:         unix:///run/fleet-a/buildkitd.sock
Status:           running
BuildKit version: v0.24.0
Platforms:        linux/amd64, linux/amd64/v2, linux/386
Labels:
 org.mobyproject.buildkit.worker.executor:         oci
"""
OLD = REMOTE.replace("BuildKit version: v0.24.0", "Buildkit:         v0.11.6")
DEBIAN = REMOTE.replace("v0.24.0", "v0.0.0+unknown").replace("remote", "docker")
DOWN = """\
Name:   gone
Driver: remote

Nodes:
Name:     gone0
Endpoint: tcp://10.0.0.9:1234
Error:    failed to list workers: connection refused
"""
TWO = (
    REMOTE
    + "\\nName: fleet-a1\\nEndpoint: tcp://b:1\\nStatus: running\\nBuildKit version: v0.9.3\\n".replace(
        "\\n", "\n"
    )
)

# What BuildKit v0.24.0 said, on these very occasions.
SAID = {
    "speaks plain HTTP": 'failed to do request: Head "https://vm:5077/v2/x/blobs/sha256:f218": http: server'
    " gave HTTP response to HTTPS client",
    "finds nothing at": 'failed to do request: Head "http://127.0.0.1:5078/v2/x/blobs/sha256:f218": dial tcp'
    " 127.0.0.1:5078: connect: connection refused",
    "does not know the name": "dial tcp: lookup nowhere.invalid on 10.255.255.53:53: no such host",
}


def info(text: str) -> BuilderInfo:
    found = read_inspect(text)
    assert found is not None
    return found


# which builder


def test_inspect_is_read() -> None:
    found = info(REMOTE)
    assert (found.name, found.driver, found.buildkit) == ("fleet-a", "remote", "v0.24.0")
    assert found.endpoints == ("unix:///run/fleet-a/buildkitd.sock",)
    assert found.platforms == ("linux/amd64", "linux/amd64/v2", "linux/386")
    assert not found.own
    assert info(DEBIAN).own
    assert read_inspect('ERROR: no builder "nope" found') is None


def test_a_good_builder_passes() -> None:
    for text in (REMOTE, DEBIAN):  # Debian's engine does not know its own version
        assert judge_builder(info(text)) == info(text)


def test_of_several_nodes_the_oldest_counts() -> None:
    assert info(TWO).buildkit == "v0.9.3"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (info(OLD), "is BuildKit v0.11.6, >= 0.12 is needed: heredocs"),
        (info(TWO), "is BuildKit v0.9.3, >= 0.12 is needed"),
        (info(DOWN), r"\(remote\) does not run: failed to list workers: connection refused"),
        (dataclasses.replace(info(REMOTE), platforms=("linux/arm64",)), "builds for linux/arm64"),
    ],
)
def test_a_builder_that_cannot_is_told_before_anything_is_built(found: BuilderInfo, words: str) -> None:
    with pytest.raises(EnvironmentFault, match=words) as raised:
        judge_builder(found)
    assert raised.value.hint


# registries


@pytest.mark.parametrize(("cause", "said"), SAID.items())
def test_what_a_builder_says_gets_its_cure(cause: str, said: str) -> None:
    fault = explain(f"exporting to image: {said}", "fleet", "vm:5077/team/x")
    assert cause in fault.message
    assert "fleet" in fault.message
    assert fault.hint


def test_plain_http_names_the_file_and_the_lines_that_mend_it() -> None:
    fault = explain(SAID["speaks plain HTTP"], "fleet", "vm:5077/team/x")
    assert '[registry."vm:5077"]' in str(fault.hint)
    assert "http = true" in str(fault.hint)
    assert "--config buildkitd.toml" in str(fault.hint)


@pytest.mark.parametrize(
    "said", ["401 Unauthorized", "denied: requested access to the resource is denied", "insufficient_scope"]
)
def test_a_log_in_that_is_missing_is_told(said: str) -> None:
    assert "docker login vm:5077" in str(explain(said, "b", "vm:5077/x").hint)


def test_unknown_words_are_passed_on() -> None:
    assert explain("first\nsomething new", "b", "r:5/x").message.endswith("r:5/x: something new")


def test_every_row_can_be_filled_in() -> None:
    names = {"registry": "r:5", "builder": "b", "repository": "r:5/x"}
    for row in read_builder_faults():
        assert row.cause.format(**names)
        assert row.cure.format(**names)


def test_a_base_on_localhost_is_not_there_for_a_builder_with_its_own_network() -> None:
    builder = dataclasses.replace(info(REMOTE), driver="docker-container", name="no-such-builder")
    with pytest.raises(EnvironmentFault, match=r"localhost:5000/x: .* network of its own") as raised:
        _refuse_loopback("localhost:5000/x", builder)
    assert "docker pull localhost:5000/x" in str(raised.value.hint)
    _refuse_loopback("debian:12-slim", builder)
    _refuse_loopback("localhost:5000/x", info(REMOTE))  # such a daemon may well share this machine


@pytest.mark.parametrize(
    "units", ["units", "team/units", "https://r.example.com/u", "r.example.com/Team", "r:5//x"]
)
def test_units_want_a_registry(units: str) -> None:
    with pytest.raises(ConfigError, match="--units"):
        _prefix(units)
    assert _prefix("r.example.com/team/units/") == "r.example.com/team/units"


def test_only_a_push_changes_the_name() -> None:
    assert Wish().repository("x") == "x"
    assert Wish(push=True, tier=Tier.LOAD, registry_prefix="r:5/t").repository("x") == "r:5/t/x"
    with pytest.raises(ConfigError, match="names no registry"):
        Wish(push=True, tier=Tier.LOAD).repository("x")


# layouts


REFERENCE = "localhost/ortimg/cuda:11.8-cudnn8-0123456789abcdef"
DIGEST = "sha256:" + "a" * 64


def fill(output: str, digest: str = DIGEST, labels: dict[str, str] | None = None) -> None:
    """What BuildKit writes into `dest`, as far as it is read here."""
    fields = dict(field.split("=", 1) for field in output.split(","))
    assert fields["type"] == "oci"
    folder = Path(fields["dest"])
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (folder / "index.json").write_text(json.dumps({"manifests": [{"digest": digest}]}))
    (blobs / digest[7:]).write_text(json.dumps({"config": {"digest": f"sha256:{'c' * 64}"}}))
    (blobs / ("c" * 64)).write_text(json.dumps({"config": {"Labels": labels or {}}}))


def test_a_layout_is_there_when_it_is_whole(tmp_path: Path) -> None:
    store = LayoutStore(tmp_path / "layouts")
    assert not store.has(REFERENCE)
    target = store.target(REFERENCE)
    assert target.tags == ()
    fill(target.output)
    assert not store.has(REFERENCE)
    store.keep(REFERENCE)
    assert store.has(REFERENCE)
    path = tmp_path / "layouts" / "cuda" / "11.8-cudnn8-0123456789abcdef"
    assert store.source(REFERENCE) == f"oci-layout://{path}@{DIGEST}"
    assert [*layout_references(tmp_path / "layouts")] == [(REFERENCE, path)]


def test_a_failed_build_leaves_no_layout(tmp_path: Path) -> None:
    store = LayoutStore(tmp_path)
    fill(store.target(REFERENCE).output)
    store.discard(REFERENCE)
    assert not store.has(REFERENCE)
    assert [*tmp_path.iterdir()] == []


def test_of_two_runs_that_make_the_same_one_wins(tmp_path: Path) -> None:
    first, second = LayoutStore(tmp_path), LayoutStore(tmp_path)
    for store in (first, second):
        fill(store.target(REFERENCE).output)
    first.keep(REFERENCE)
    second.keep(REFERENCE)
    assert second.has(REFERENCE)
    assert [path.name for path in tmp_path.iterdir()] == ["cuda"]


def test_a_damaged_layout_is_told(tmp_path: Path) -> None:
    for text in ("", "{}", '{"manifests": []}', "[1]"):
        (tmp_path / "index.json").write_text(text)
        with pytest.raises(EnvironmentFault, match="is no OCI layout of one image"):
            layout_digest(tmp_path)


def test_what_was_handed_over_is_no_unit(tmp_path: Path) -> None:
    (tmp_path / HANDED / "abc").mkdir(parents=True)
    (tmp_path / HANDED / "abc" / "index.json").write_text("{}")
    assert [*layout_references(tmp_path)] == []


def test_images_in_a_folder_are_found_by_their_label(tmp_path: Path) -> None:
    folder, tags = ToFolder(tmp_path), ["r:1.2-cuda", "r:latest"]
    assert folder.find(tags[0]) is None
    fill(folder.target(tags).output, labels={"ortimg.content": "one"})
    folder.keep(tags)
    there = folder.find(tags[0])
    assert there is not None
    assert there.labels == {"ortimg.content": "one"}
    assert folder.place(tags[0]) == f"oci:{tmp_path}/1.2-cuda"
    fill(folder.target(tags).output, labels={"ortimg.content": "two"})
    folder.discard(tags, "two")
    assert folder.find(tags[0]) == there
    fill(folder.target(tags).output, labels={"ortimg.content": "two"})
    folder.keep(tags)  # takes the place of the old one
    found = folder.find(tags[0])
    assert found is not None
    assert found.labels == {"ortimg.content": "two"}
    assert [path.name for path in tmp_path.iterdir()] == ["1.2-cuda"]
