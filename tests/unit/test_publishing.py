"""Publishing without a registry: names, tiers, packing, the engine's stream, what a report says."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner
from wishes import cell, images, planned

from ortimg.cli import cli
from ortimg.core.model import Tier
from ortimg.engine.client import Engine
from ortimg.engine.live import LiveTable
from ortimg.errors import ConfigError, EnvironmentFault, ExitCode
from ortimg.inputs.cache import Cache
from ortimg.publishing.compression import Compression, Packing, method, packing_of, repack, repacked_as
from ortimg.publishing.layers import Carrier
from ortimg.publishing.memory import Memory, Repacked
from ortimg.publishing.result import (
    Pushed,
    PushReport,
    PushResult,
    digests_json,
    digests_text,
    summary,
)
from ortimg.publishing.saved import Layer, Saved, SavedImage
from ortimg.publishing.targets import (
    cudnn_notices,
    reaches,
    read_public_registries,
    repositories,
    tier_fault,
)
from ortimg.registry.errors import Denied
from ortimg.registry.transport import StoppedTransfer

# Where to


@pytest.mark.parametrize(
    ("repository", "prefixes", "found"),
    [
        ("registry.example.com/team/ort", [], ["registry.example.com/team/ort"]),
        ("localhost:5000/ort", [], ["localhost:5000/ort"]),
        ("docker.io/me/ort", [], ["docker.io/me/ort"]),
        ("ort", ["127.0.0.1:5000"], ["127.0.0.1:5000/ort"]),
        ("team/ort", ["ghcr.io/me/"], ["ghcr.io/me/team/ort"]),
        ("registry.example.com/team/ort", ["ghcr.io/me"], ["ghcr.io/me/team/ort"]),
        ("ort", ["a.example/x", "b.example/x", "a.example/x"], ["a.example/x/ort", "b.example/x/ort"]),
    ],
)
def test_where_a_push_goes(repository: str, prefixes: list[str], found: list[str]) -> None:
    assert [*repositories(repository, prefixes)] == found


@pytest.mark.parametrize(
    ("repository", "prefixes", "words"),
    [
        ("ort", [], "names no registry"),
        ("team/ort", [], "names no registry"),
        ("ort", ["team"], "names no registry"),
        ("ort", ["https://registry.example.com"], "leave out the scheme"),
        ("ort", ["registry.example.com/Team"], "lower case"),
        ("ort", ["registry.example.com/team:1"], "leave out the tag"),
        ("ort", ["me:secret@registry.example.com/team"], "a log-in cannot stand"),
        ("ort", ["https://me:secret@registry.example.com"], "a log-in cannot stand"),
    ],
)
def test_no_registry_is_guessed(repository: str, prefixes: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        repositories(repository, prefixes)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--digests", "images.yaml"], "does not end in .json"),
        (["--digests", "digests.txt"], "does not end in .json"),
        (["--aliases-only", "--no-aliases"], "--no-aliases are two different wishes"),
        (["--aliases-only", "--sbom", "spdx-json"], "--sbom are two different wishes"),
        (["--aliases-only", "--force"], "--force are two different wishes"),
        (["--aliases-only", "--compression", "built"], "--compression are two different wishes"),
        (["--aliases-only", "--digests", "digests.json"], "--digests are two different wishes"),
        (["--aliases-only", "--available"], "--available are two different wishes"),
        (["--digests", "no/such/folder.json"], "there is no folder "),
    ],
)
def test_pushes_that_cannot_be_are_refused_before_anything_is_sent(
    tmp_path: Path, options: list[str], words: str
) -> None:
    text = images(include=[cell("1.16.2", "11.8")])
    (tmp_path / "images.yaml").write_text(text)
    command = ["-C", str(tmp_path), "push", "--tier", "load", "--registry-prefix", "127.0.0.1:1", *options]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == ExitCode.USAGE
    assert words in done.stderr
    assert (tmp_path / "images.yaml").read_text() == text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tier", "load"], "--tier is for --push"),
        (["--registry-prefix", "127.0.0.1:1"], "--registry-prefix is for --push"),
        (["--push", "--registry-prefix", "127.0.0.1:1"], "images that no GPU has run"),
        (
            ["--push", "--available", "--tier", "load", "--registry-prefix", "127.0.0.1:1"],
            "two different wishes",
        ),
        (["--changed-since", "images.yaml"], "git show HEAD~1:images.lock"),
        (["--changed-since", "absent.lock"], "git show HEAD~1:images.lock"),
        (["--changed-since", ""], 'error: "" names no registry'),
        (["--changed-since", "registry"], "or name a repository here"),
    ],
)
def test_builds_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    done = CliRunner().invoke(cli, ["build", *options])
    assert done.exit_code == ExitCode.USAGE
    assert words in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stale"], "or name a repository here: registry.example.com/team/name."),
        (["--stale", "images.lock"], "`ortimg build --changed-since images.lock` compares pins."),
        (["--stale", ""], '"" names no registry'),
        (["--stale", "team/name"], '"team/name" names no registry'),
    ],
)
def test_what_is_stale_is_asked_of_a_registry(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    done = CliRunner().invoke(cli, ["-C", str(tmp_path), "list", *words])
    assert done.exit_code == ExitCode.USAGE
    assert said in done.stderr


@pytest.mark.parametrize(
    ("tier", "wanted", "good"),
    [
        ("run", Tier.RUN, True),
        ("load", Tier.RUN, False),
        ("load", Tier.LOAD, True),
        ("run", Tier.LOAD, True),
        ("static", Tier.LOAD, False),
        (None, Tier.STATIC, False),
        ("verified on GPU", Tier.STATIC, False),
    ],
)
def test_tiers(tier: str | None, wanted: Tier, good: bool) -> None:
    assert reaches(tier, wanted) is good
    if not good:
        assert tier_fault(tier, wanted)


def test_the_word_on_cudnn_is_for_public_registries() -> None:
    cells = planned(images(include=[cell("1.16.2", "11.8")])).cells
    hosts = [row.host for row in read_public_registries()]
    assert "docker.io" in hosts
    names = [f"{hosts[0]}/me/ort", "registry.example.com/me/ort"]
    (notice,) = cudnn_notices(cells, names).values()
    assert "your decision" in notice
    assert cudnn_notices([], names) == {}


# Packing


def packed(packing: Packing, data: bytes) -> bytes:
    if packing is Packing.GZIP:
        return gzip.compress(data, mtime=1)
    return zstandard.ZstdCompressor(level=3).compress(data) if packing is Packing.ZSTD else data


@pytest.mark.parametrize("now", [*Packing])
@pytest.mark.parametrize("target", [Packing.GZIP, Packing.ZSTD])
def test_a_layer_packed_anew_holds_the_same_and_is_the_same_each_time(now: Packing, target: Packing) -> None:
    data = os.urandom(50_000) + bytes(3_000_000)
    held = packed(now, data)
    assert packing_of(held) is now
    first, second = (b"".join(repack(io.BytesIO(held), now, target)) for _ in range(2))
    assert first == second
    assert packing_of(first) is target
    if target is Packing.GZIP:
        assert gzip.decompress(first) == data
    else:
        assert zstandard.ZstdDecompressor().decompressobj().decompress(first) == data
    assert method(target) == method(target)


@pytest.mark.parametrize(
    ("wish", "now", "found"),
    [
        (Compression.BUILT, Packing.ZSTD, None),
        (Compression.BUILT, Packing.GZIP, None),
        (Compression.BUILT, Packing.RAW, Packing.ZSTD),  # the classic store
        (Compression.GZIP, Packing.ZSTD, Packing.GZIP),
        (Compression.GZIP, Packing.GZIP, None),
        (Compression.ZSTD, Packing.ZSTD, Packing.ZSTD),
    ],
)
def test_what_is_packed_anew(wish: Compression, now: Packing, found: Packing | None) -> None:
    assert repacked_as(wish, now) is found


def test_what_a_push_learned_is_kept(tmp_path: Path) -> None:
    first = Memory(tmp_path)
    assert first.first_time("notice")
    first.learn("sha256:1", "gzip", Repacked(digest="sha256:2", size=3))
    for name in ("a", "b", "a"):
        first.pushed_to("registry", name)
    first.save()
    second = Memory(tmp_path)
    assert not second.first_time("notice")
    assert second.repacked("sha256:1", "gzip") == Repacked(digest="sha256:2", size=3)
    assert second.repacked("sha256:1", "zstd") is None
    assert second.repositories("registry") == ("a", "b")


def test_a_broken_memory_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "published.json").write_text("{")
    assert Memory(tmp_path).repositories("registry") == ()


# The engine's stream


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


LAYER = packed(Packing.ZSTD, b"a layer")
CONFIG = json.dumps({"architecture": "amd64", "config": {}}).encode()
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "config": {"mediaType": "c", "digest": digest(CONFIG), "size": len(CONFIG)},
        "layers": [{"mediaType": "l", "digest": digest(LAYER), "size": len(LAYER)}],
    }
).encode()
NAME = "io.containerd.image.name"
INDEX = json.dumps(
    {
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": digest(MANIFEST),
                "size": len(MANIFEST),
                "annotations": {NAME: "docker.io/library/x:1"},
            }
        ]
    }
).encode()


def stream(*blobs: bytes, index: bytes | None = INDEX, names: dict[bytes, str] | None = None) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        rows = [((names or {}).get(blob) or digest(blob)[7:], blob) for blob in blobs]
        files = [(f"blobs/sha256/{name}", blob) for name, blob in rows]
        for name, data in [*files, *([("index.json", index)] if index else [])]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def read(data: bytes, seen: list[tuple[str, bytes]] | None = None) -> dict[str, SavedImage]:
    def on_layer(layer: Layer) -> None:
        if seen is not None:
            seen.append((layer.digest, layer.data.read()))

    def chunks() -> Iterator[bytes]:
        yield from (data[at : at + 1000] for at in range(0, len(data), 1000))

    return Saved(chunks(), on_layer).read()


def test_layers_pass_and_images_are_known_in_the_end() -> None:
    seen: list[tuple[str, bytes]] = []
    found = read(stream(LAYER, CONFIG, MANIFEST), seen)
    assert seen == [(digest(LAYER), LAYER)]
    image = found["docker.io/library/x:1"]
    assert (image.manifest.digest, image.manifest.data) == (digest(MANIFEST), MANIFEST)
    assert image.documents == {digest(CONFIG): CONFIG}
    assert [layer.digest for layer in image.layers] == [digest(LAYER)]


@pytest.mark.parametrize(
    "data",
    [
        stream(LAYER, CONFIG, MANIFEST)[:1500],
        stream(LAYER, CONFIG, MANIFEST, index=None),
        stream(LAYER, CONFIG),
        stream(LAYER, MANIFEST),
        stream(LAYER, CONFIG + b" ", MANIFEST, names={CONFIG + b" ": digest(CONFIG)[7:]}),
        b'{"errorDetail": {"message": "no space"}, "error": "no space"}',
        b"",
    ],
    ids=[
        "cut",
        "no index",
        "no manifest",
        "no configuration",
        "damaged",
        "an error in the stream",
        "nothing",
    ],
)
def test_a_stream_that_is_not_whole_is_no_image(data: bytes) -> None:
    """The engine had answered 200 by then."""
    with pytest.raises(EnvironmentFault):
        read(data)


@pytest.mark.parametrize("fault", [Denied("403"), None])
def test_the_end_that_a_refusal_makes_is_no_interrupt(
    fault: Denied | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next layer is being asked for when the one before is refused: that question is stopped too."""
    cancel = threading.Event()
    table = LiveTable(stream=io.StringIO(), terminal=False)
    carrier = Carrier(Engine(), Cache(tmp_path), Memory(tmp_path), table, Compression.BUILT, cancel)

    def stopped(*_args: object) -> dict[str, SavedImage]:
        if fault is not None:
            carrier.faults["sha256:1"] = fault
        cancel.set()
        raise StoppedTransfer

    monkeypatch.setattr(carrier, "_from_store", stopped)
    with pytest.raises(Denied if fault else StoppedTransfer):
        carrier.carry({"x": None}, [])


# What is said


def row(result: Pushed, identifier: str = "a", **facts: object) -> PushResult:
    return PushResult(identifier=identifier, repository="r.example/x", result=result, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "available", "code"),
    [
        ([row(Pushed.PUSHED), row(Pushed.UNCHANGED)], False, ExitCode.DONE),
        ([row(Pushed.PUSHED), row(Pushed.FAILED, environment=True)], False, ExitCode.ENVIRONMENT),
        ([row(Pushed.FAILED, environment=True), row(Pushed.NOT_BUILT)], False, ExitCode.FAILED),
        ([row(Pushed.PUSHED), row(Pushed.NOT_BUILT)], True, ExitCode.DONE),
        ([row(Pushed.PUSHED), row(Pushed.NOT_BUILT)], False, ExitCode.FAILED),
        ([], False, ExitCode.DONE),
    ],
)
def test_exit_codes(rows: list[PushResult], available: bool, code: ExitCode) -> None:
    report = PushReport(results=tuple(rows), available=available)
    assert report.exit_code is code
    assert PushReport(results=tuple(rows), interrupted=True).exit_code is ExitCode.INTERRUPTED


def test_only_what_is_there_has_a_digest_to_sign() -> None:
    rows = [
        row(Pushed.PUSHED, "a", digest="sha256:1", aliases=("latest",)),
        row(Pushed.UNCHANGED, "b", digest="sha256:1"),
        row(Pushed.FAILED, "c", cause="no"),
    ]
    assert digests_text(rows) == "r.example/x@sha256:1\n"
    images = json.loads(digests_json(rows))["images"]
    assert [image["identifier"] for image in images] == ["a", "b"]
    assert images[0]["aliases"] == ["latest"]


def test_a_cause_that_many_cells_have_is_told_once() -> None:
    rows = tuple(row(Pushed.FAILED, name, cause="403\nlog in", environment=True) for name in ("a", "b"))
    text = summary(PushReport(results=rows))
    assert text.count("log in") == 1
    assert "(a, b)" in text
    assert "2 failed" in text
