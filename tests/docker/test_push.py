"""`ortimg push` from a real engine to a real registry: order, faults, interrupts. The images are tiny."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from real import ROOT, ortimg
from registries import PASSWORD, USER, Kind, Proxy, Registry, both_kinds, proxy, registry, repository

from ortimg.core.model import Tier
from ortimg.engine.client import Engine
from ortimg.errors import ExitCode
from ortimg.project import load_project
from ortimg.publishing import run
from ortimg.publishing.push import Wish
from ortimg.publishing.store import ContentStore
from ortimg.records.attach import attached
from ortimg.records.record import Identity, Record, Subject, make_record
from ortimg.records.store import write_record
from ortimg.registry.client import Repository
from ortimg.registry.labels import labels_of
from ortimg.registry.model import Manifest
from ortimg.verify.report import parse_report

pytestmark = pytest.mark.engine

BASES = ("debian12", "debian13")
CELLS = tuple(f"1.16.2-cuda11.8-cudnn8-{base}" for base in BASES)
HEAVY = 3_000_000  # bytes of the layer that both cells have
REPOSITORY = "ortimg-test/push"


@dataclass
class Shop:
    """A project with two cells, a registry behind a proxy, and a cache of its own."""

    project: Path
    cache: Path
    proxy: Proxy
    prefix: str
    kind: Kind

    def push(
        self, *words: str, tier: str | None = "load", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return ortimg(
            "push", *self.words(*words, tier=tier), cwd=self.project, env=self.environment(**environment)
        )

    def words(self, *words: str, tier: str | None = "load") -> list[str]:
        return [*(["--tier", tier] if tier else []), "--registry-prefix", self.prefix, *words]

    def environment(self, **more: str) -> dict[str, str]:
        settings = {"ORTIMG_CACHE": str(self.cache), "DOCKER_CONFIG": str(self.project), "NO_COLOR": "1"}
        return {**os.environ, **settings, **more}

    @property
    def repository(self) -> Repository:
        return repository(self.proxy.upstream, f"{self.prefix.partition('/')[2]}/{REPOSITORY}")

    def tags(self) -> dict[str, str | None]:
        names = (*CELLS, "latest", "old")
        return {name: self.repository.digest(name) for name in names}


@pytest.fixture(scope="module")
def images(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Two images as `ortimg build` makes them, as far as a push can tell: one layer of theirs is the same."""
    context = tmp_path_factory.mktemp("context")
    (context / "heavy").write_bytes(os.urandom(HEAVY))
    for base, cell in zip(BASES, CELLS, strict=True):
        (context / "own").write_text(f"only in {cell}")
        dockerfile = "FROM scratch\nCOPY --link heavy /heavy\nCOPY --link own /own\n"
        labels = {"ortimg.identifier": cell, "ortimg.tier": "load", "ortimg.content": base * 8}
        command = [
            "docker",
            "buildx",
            "build",
            "--provenance=false",
            "--file=-",
            f"--tag={REPOSITORY}:{cell}",
        ]
        command += [f"--label={key}={value}" for key, value in labels.items()]
        command += [
            "--output=type=image,compression=zstd,compression-level=3,oci-mediatypes=true",
            str(context),
        ]
        subprocess.run(command, input=dockerfile, text=True, check=True, capture_output=True)
    yield engine
    for cell in CELLS:
        engine.remove(f"{REPOSITORY}:{cell}")


@pytest.fixture
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    """An empty one."""
    with registry(tmp_path / "registry", kind=getattr(request, "param", Kind.DEBIAN)) as found:
        yield found


@pytest.fixture
def shop(images: Engine, real: Registry, tmp_path: Path) -> Iterator[Shop]:  # noqa: ARG001
    project = tmp_path / "project"
    project.mkdir()
    (project / "images.yaml").write_text(
        f'repository: {REPOSITORY}\nmatrix:\n  ort: ["1.16.2"]\n  cuda: ["11.8"]\n  cudnn: ["8"]\n'
        f"  base: [{', '.join(BASES)}]\ntags: {{latest: {CELLS[0]}, old: {CELLS[1]}}}\n"
    )
    with proxy(real.host) as front:
        path = "".join(letter for letter in tmp_path.name.lower() if letter.isalnum())
        yield Shop(project, tmp_path / "cache", front, f"{front.host}/{path}", real.kind)


def nothing_is_left(shop: Shop) -> bool:
    """Whether no layer that was on its way still takes disk."""
    return [*(shop.cache / "tmp").iterdir()] == []


def heavy(manifest: Manifest | None) -> dict[str, Any]:
    assert manifest is not None
    found = max(manifest.content["layers"], key=lambda row: int(row["size"]))
    assert isinstance(found, dict)
    return found


@both_kinds
def test_a_whole_matrix(images: Engine, shop: Shop) -> None:
    done = shop.push("--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == 1
    assert [row["result"] for row in report["images"]] == ["pushed", "pushed"]
    # Each as the engine holds it, so a digest of a build is the digest of what is pulled.
    digests = {cell: found.digest for cell in CELLS if (found := images.inspect(f"{REPOSITORY}:{cell}"))}
    assert shop.tags() == {**digests, "latest": digests[CELLS[0]], "old": digests[CELLS[1]]}
    # Heavy layers once, and alias tags after everything else.
    assert HEAVY <= report["bytes"]["uploaded"] < 1.1 * HEAVY
    writes = [
        line.rpartition("/")[2] for line in shop.proxy.asked if line.startswith("PUT") and "manifests" in line
    ]
    assert {*writes[:2]} == {*CELLS}
    assert {*writes[2:]} == {"latest", "old"}
    assert nothing_is_left(shop)

    text = (shop.project / "digests.txt").read_text().splitlines()
    assert text == [f"{shop.prefix}/{REPOSITORY}@{digests[cell]}" for cell in CELLS]
    rows = json.loads((shop.project / "digests.json").read_text())["images"]
    assert [(row["identifier"], row["aliases"], row["reference"]) for row in rows] == [
        (CELLS[0], ["latest"], text[0]),
        (CELLS[1], ["old"], text[1]),
    ]

    # Nothing new: nothing is asked of the engine and nothing written to the registry.
    before = len(shop.proxy.asked)
    again = shop.push("--json")
    assert again.returncode == ExitCode.DONE
    assert [row["result"] for row in json.loads(again.stdout)["images"]] == ["unchanged", "unchanged"]
    assert not [line for line in shop.proxy.asked[before:] if line.startswith(("PUT", "POST", "PATCH"))]

    # Another repository of the registry: the heavy layer does not travel.
    shop.prefix += "/other"
    other = json.loads(shop.push("--json").stdout)
    assert other["bytes"]["present" if shop.kind.shares_blobs else "mounted"] > 0.9 * HEAVY
    assert other["bytes"]["uploaded"] < HEAVY / 100
    assert shop.tags()["latest"] == digests[CELLS[0]]


@both_kinds
def test_two_registry_prefixes_at_once(shop: Shop) -> None:
    second = shop.prefix + "/second"
    done = shop.push("--registry-prefix", second, "--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    report = json.loads(done.stdout)
    assert len(report["images"]) == 4
    assert HEAVY <= report["bytes"]["uploaded"] < 1.1 * HEAVY
    assert report["bytes"]["present" if shop.kind.shares_blobs else "mounted"] > 0.9 * HEAVY
    first = shop.tags()
    shop.prefix = second
    assert shop.tags() == first


def test_what_no_gpu_has_run_is_refused_before_anything_is_sent(shop: Shop) -> None:
    done = shop.push(tier=None)
    assert done.returncode == ExitCode.FAILED
    assert "its tier is load" in done.stderr
    assert "--tier load" in done.stderr
    assert shop.proxy.asked == []


@both_kinds
def test_a_verdict_of_exactly_this_image_opens_the_way_and_goes_along(images: Engine, shop: Shop) -> None:
    report = parse_report((ROOT / "docs" / "gpu-runs" / CELLS[0] / "run.json").read_bytes())

    def keep(digest: str | None) -> Record:
        identity = Identity(identifier=CELLS[0])
        record = make_record(report, Subject.IMAGE, digest, identity, "1.0", "2026-12-02T00:00:00Z")
        write_record(shop.project, record)
        return record

    keep(f"sha256:{'a' * 64}")
    assert shop.push(CELLS[0], tier=None).returncode == ExitCode.FAILED  # it speaks of another image
    image = images.inspect(f"{REPOSITORY}:{CELLS[0]}")
    assert image is not None
    assert image.digest is not None
    own = keep(image.digest)
    done = shop.push(CELLS[0], "--json", tier=None)
    assert done.returncode == ExitCode.DONE, done.stderr
    (row,) = json.loads(done.stdout)["images"]
    assert (row["tier"], row["digest"]) == ("run", image.digest)
    assert attached(shop.repository, image.digest)[0] == (own,)


def test_a_cell_that_is_not_built(shop: Shop) -> None:
    text = (shop.project / "images.yaml").read_text()
    (shop.project / "images.yaml").write_text(text.replace("debian13]", "debian13, ubuntu22.04]"))
    done = shop.push()
    assert done.returncode == ExitCode.FAILED
    assert "not-built" in done.stdout
    assert shop.tags()[CELLS[0]] is not None
    assert shop.tags()["latest"] is None  # not all that was asked for is there
    assert shop.push("--available").returncode == ExitCode.DONE
    assert shop.tags()["latest"] is not None


def test_no_registry_is_guessed(shop: Shop) -> None:
    done = ortimg("push", "--tier", "load", cwd=shop.project, env=shop.environment())
    assert done.returncode == ExitCode.USAGE
    assert "names no registry" in done.stderr
    wrong = ortimg(
        "push", "--registry-prefix", "https://x.example/y", cwd=shop.project, env=shop.environment()
    )
    assert wrong.returncode == ExitCode.USAGE
    assert "leave out the scheme" in wrong.stderr


def test_the_same_content_of_another_build_stays(images: Engine, shop: Shop) -> None:
    first = images.inspect(f"{REPOSITORY}:{CELLS[0]}")
    assert first is not None
    assert shop.push().returncode == ExitCode.DONE
    before = shop.tags()
    kept = f"{REPOSITORY}:kept"
    images.tag(f"{REPOSITORY}:{CELLS[0]}", kept)
    again = ["docker", "buildx", "build", "--provenance=false", "--file=-", f"--tag={REPOSITORY}:{CELLS[0]}"]
    labels = [f"--label={key}={value}" for key, value in first.labels.items()]
    dockerfile = f"FROM {REPOSITORY}:{CELLS[0]}\nLABEL built=again\n"
    subprocess.run(
        [*again, *labels, "."], input=dockerfile, text=True, check=True, capture_output=True, cwd=shop.project
    )
    try:
        assert images.inspect(f"{REPOSITORY}:{CELLS[0]}") != first
        assert shop.push().returncode == ExitCode.DONE
        assert shop.tags() == before
        assert shop.push("--force").returncode == ExitCode.DONE
        assert shop.tags()[CELLS[0]] != before[CELLS[0]]
        assert shop.tags()["latest"] == shop.tags()[CELLS[0]]
    finally:
        images.tag(kept, f"{REPOSITORY}:{CELLS[0]}")
        images.remove(kept)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_layers_packed_anew_are_the_same_each_time(images: Engine, shop: Shop, compression: str) -> None:
    done = shop.push("--compression", compression, "--json")
    assert done.returncode == ExitCode.DONE, done.stderr
    manifest = shop.repository.manifest(CELLS[0])
    layer = heavy(manifest)
    assert layer["mediaType"] == f"application/vnd.oci.image.layer.v1.tar+{compression}"
    assert layer == heavy(shop.repository.manifest(CELLS[1]))
    assert manifest is not None
    assert labels_of(shop.repository, manifest)["ortimg.identifier"] == CELLS[0]
    if compression == "gzip":
        assert len(gzip.decompress(shop.repository.blob(layer["digest"]) or b"")) > HEAVY
    # An engine pulls what it had before.
    name = f"{shop.repository.name}:{CELLS[0]}"
    subprocess.run(["docker", "pull", "--quiet", name], check=True, capture_output=True)
    pulled, own = images.inspect(name), images.inspect(f"{REPOSITORY}:{CELLS[0]}")
    images.remove(name)
    assert pulled is not None
    assert own is not None
    assert (pulled.layers, pulled.labels) == (own.layers, own.labels)
    # A machine that knows nothing of it makes the same bytes, and need not send them.
    shop.cache = shop.cache.with_name("another")
    again = json.loads(shop.push("--compression", compression, "--force", "--json").stdout)
    assert again["bytes"]["uploaded"] == 0
    assert shop.repository.manifest(CELLS[0]) == manifest
    # One that does, need not even pack them.
    third = shop.push("--compression", compression, "--force")
    assert "packing anew" not in third.stderr
    assert shop.repository.manifest(CELLS[0]) == manifest


def test_an_engine_whose_store_cannot_be_read_hands_its_images_out(
    images: Engine, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shop.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ContentStore, "of", lambda _engine: None)
    project = load_project(shop.project)
    report = run.push(project, project.plan.cells, Wish(tier=Tier.LOAD), prefixes=[shop.prefix])
    assert report.exit_code is ExitCode.DONE
    digests = [found.digest for cell in CELLS if (found := images.inspect(f"{REPOSITORY}:{cell}"))]
    assert [shop.tags()[cell] for cell in CELLS] == digests
    assert report.traffic.uploaded < 1.1 * HEAVY
    assert nothing_is_left(shop)


def test_aliases_alone_ask_for_a_verdict_in_the_registry(shop: Shop) -> None:
    assert shop.push("--no-aliases").returncode == 0
    done = shop.push("--aliases-only", tier="run")
    assert done.returncode == ExitCode.FAILED
    assert "--gpu --push-record` where a GPU is" in done.stderr
    assert "No alias tag was moved." in done.stderr
    assert shop.tags()["latest"] is None


# Faults


def test_digests_that_cannot_be_written_hide_nothing_of_the_push(shop: Shop) -> None:
    done = shop.push("--digests", "/proc/digests.json")
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "2 pushed" in done.stdout
    assert "/proc/digests.json cannot be written" in done.stderr


def test_a_refused_manifest_leaves_no_tag(shop: Shop) -> None:
    """401 on the manifest, when all blobs are there."""
    fault = shop.proxy.fail("PUT", "manifests", status=401)
    done = shop.push()
    assert done.returncode == ExitCode.ENVIRONMENT
    assert f"run `docker login {shop.proxy.host}`" in done.stdout
    assert {*shop.tags().values()} == {None}
    assert shop.proxy.count("^PUT .*manifests") == 1  # who is not let in does not ask again
    fault.times = 0
    assert shop.push().returncode == ExitCode.DONE  # the next run finishes the job
    assert None not in shop.tags().values()


@both_kinds
def test_a_refused_blob_ends_the_push(shop: Shop) -> None:
    body = b'{"errors": [{"code": "DENIED", "message": "no"}]}'
    fault = shop.proxy.fail("POST", "uploads", status=403, body=body)
    done = shop.push()
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "DENIED: no" in done.stdout
    assert {*shop.tags().values()} == {None}
    assert nothing_is_left(shop)
    fault.times = 0
    assert shop.push().returncode == ExitCode.DONE
    assert None not in shop.tags().values()


def test_trouble_that_passes(shop: Shop) -> None:
    """500 twice, then 201; a connection cut at half of a blob; 429."""
    shop.proxy.fail("PUT", "digest=", status=500, times=2)
    shop.proxy.fail("PATCH", "uploads", cut_after=HEAVY // 2, times=1)
    shop.proxy.fail("PUT", "manifests", status=429, headers={"Retry-After": "1"}, times=1)
    done = shop.push()
    assert done.returncode == ExitCode.DONE, done.stdout
    assert None not in shop.tags().values()


@both_kinds
def test_half_of_a_push_moves_no_alias_and_the_next_run_finishes_it(shop: Shop) -> None:
    fault = shop.proxy.fail("PUT", f"manifests/{CELLS[1]}", status=400)
    done = shop.push()
    assert done.returncode == ExitCode.ENVIRONMENT
    tags = shop.tags()
    assert tags[CELLS[0]] is not None
    assert [tags[name] for name in (CELLS[1], "latest", "old")] == [None, None, None]
    rows = json.loads((shop.project / "digests.json").read_text())["images"]
    assert [row["identifier"] for row in rows] == [CELLS[0]]
    fault.times = 0
    again = json.loads(shop.push("--json").stdout)
    assert [row["result"] for row in again["images"]] == ["unchanged", "pushed"]
    assert again["bytes"]["uploaded"] == 0
    assert None not in shop.tags().values()


def test_a_registry_that_goes_away(shop: Shop) -> None:
    shop.proxy.fail("POST", "uploads", status=500, then=lambda: shop.proxy.socket.close())
    done = shop.push("--retries", "1")
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "connection " in done.stdout  # reset, then refused
    assert {*shop.tags().values()} == {None}


def taken(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Returns when a signal is pending no more: the next one comes after it, not together with it."""
    bit = 1 << (number - 1)
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        pending = [
            int(line.split()[1], 16) for line in status.splitlines() if line[:6] in ("SigPnd", "ShdPnd")
        ]
        if not any(mask & bit for mask in pending):
            return
        os.sched_yield()


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGINT)])
def test_an_interrupt_leaves_no_tag_and_no_layer(shop: Shop, signals: tuple[signal.Signals, ...]) -> None:
    hangs = threading.Event()
    fault = shop.proxy.fail("PATCH", "uploads", hang=hangs, times=1)
    command = [sys.executable, "-m", "ortimg", "push", *shop.words()]
    with subprocess.Popen(
        command,
        cwd=shop.project,
        env=shop.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert fault.met.wait(60), "nothing was sent"
        for number in signals:
            process.send_signal(number)
            taken(process, number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert "Traceback" not in err
    assert {*shop.tags().values()} == {None}
    hangs.set()
    assert shop.push().returncode == ExitCode.DONE  # the next run finishes the job
    assert nothing_is_left(shop)


def test_a_full_disk(shop: Shop) -> None:
    """The layers on their way do not fit."""
    shop.cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", shop.cache], check=True)
    try:
        done = shop.push("--compression", "gzip")
    finally:
        subprocess.run(["umount", shop.cache], check=True)
    assert done.returncode == ExitCode.ENVIRONMENT
    assert "no space left" in done.stdout
    assert {*shop.tags().values()} == {None}
    assert shop.push().returncode == ExitCode.DONE


# Secrets


def test_a_log_in_is_nowhere_but_in_its_header(images: Engine, shop: Shop, tmp_path: Path) -> None:
    secret = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    with registry(tmp_path / "locked", login=True) as locked:
        refused = shop.push("--registry-prefix", locked.host)
        assert refused.returncode == ExitCode.ENVIRONMENT
        assert f"run `docker login {locked.host}`" in refused.stderr
        (shop.project / "config.json").write_text(json.dumps({"auths": {locked.host: {"auth": secret}}}))
        done = shop.push("--registry-prefix", locked.host, "--json")
        assert done.returncode == ExitCode.DONE, done.stderr
        said = done.stdout + done.stderr + locked.log
        kept = "".join(path.read_text() for path in shop.project.glob("digests.*"))
        kept += "".join(path.read_text() for path in shop.cache.glob("*.json"))
        for word in (secret, f":{PASSWORD}"):
            assert word not in said
            assert word not in kept
    assert shop.proxy.authorizations == {None}  # it is for one registry alone
    for cell in CELLS:
        found = images.inspect(f"{REPOSITORY}:{cell}")
        assert found is not None
        assert not any(secret in text for text in (*found.labels.values(), *found.env))
