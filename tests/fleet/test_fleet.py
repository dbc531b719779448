"""A fleet: two BuildKit daemons with different empty roots, and nothing between them but a registry.

Real inputs, real daemons; some minutes and 20 GB of disk. `make test-fleet` runs it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from daemons import builder, wait_for
from layer_diff import layout_differences
from registries import registry

from ortimg.engine.client import Engine
from ortimg.inputs.cache import Cache
from ortimg.registry.client import Registries
from ortimg.registry.model import images_of

ROOT = Path(__file__).parents[2]
CELLS = ("1.16.2-cuda11.8-cudnn8-debian12", "1.16.2-cuda11.8-cudnn8-debian13")
# Steps that unpack, compile or import: what must be done once in a fleet.
HEAVY = re.compile(r"pick_libraries|cut_runpath|ziglang|ADD root\.tar|\[(cuda|ort|ort-verify|cuda-stub)[ -]")
TOOLS = Path(os.environ.get("ORTIMG_TOOLS") or Path.home() / ".cache" / "ortimg-tools")


@dataclass
class Fleet:
    """The machines, and a cache whose logs are those of one run at a time."""

    registry: str
    one: str
    two: str
    cache: Path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "ortimg", *words]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "ORTIMG_CACHE": str(self.cache)}

    def build(
        self, name: str, *words: str, cells: tuple[str, ...] = CELLS, shared: tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """`ortimg build` on a builder of the fleet; its cells by identifier."""
        shutil.rmtree(self.cache / "logs", ignore_errors=True)
        place = ("--builder", name, *(self.shared if shared is None else shared))
        done = self.run("build", *cells, *place, *words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return {row["identifier"]: row for row in json.loads(done.stdout)["cells"]}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )

    @property
    def shared(self) -> tuple[str, ...]:
        return ("--units", f"{self.registry}/units")

    @property
    def push(self) -> tuple[str, ...]:
        return ("--push", "--tier", "load", "--registry-prefix", f"{self.registry}/team")

    def records(self) -> dict[str, str]:
        """Log by name of what was built in the last run, as BuildKit's progress told it."""
        return {path.name: path.read_text() for path in (self.cache / "logs").glob("*.log")}

    def heavy_steps(self) -> list[str]:
        """Steps of the last run that did heavy work; what BuildKit found in its cache is none."""
        lines = [line for text in self.records().values() for line in text.splitlines()]
        cached = {line.split()[0] for line in lines if line.endswith(" CACHED")}
        return [line for line in lines if HEAVY.search(line) and line.split()[0] not in cached]

    def layers(self, tag: str, repository: str = "team/onnxruntime-gpu") -> list[tuple[str, int]]:
        manifest = Registries().repository(f"{self.registry}/{repository}").manifest(tag)
        assert manifest is not None
        return [(row["digest"], row["size"]) for row in manifest.content["layers"]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    subprocess.run([ROOT / "scripts" / "go-tools.sh", "buildkitd"], check=True)
    buildkitd = TOOLS / "bin" / "buildkitd"
    subprocess.run([sys.executable, "-m", "ortimg", "fetch", *CELLS], cwd=ROOT, check=True)
    cache = new_cache(folder / "cache")
    with (
        registry(folder / "registry") as found,
        builder(folder / "one", f"fleet-one-{os.getpid()}", buildkitd) as one,
        builder(folder / "two", f"fleet-two-{os.getpid()}", buildkitd) as two,
    ):
        yield Fleet(found.host, one, two, cache)
    shutil.rmtree(folder)


def new_cache(folder: Path) -> Path:
    """The same inputs, by hard links: nothing is fetched, and nothing of this machine's own is changed."""
    for part in ("blobs", "index"):
        shutil.copytree(Cache.default().root / part, folder / part, copy_function=_link)
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


# In this order: each test goes on where the one before it ended.


def test_an_interrupted_build_is_resumed(fleet: Fleet) -> None:
    command = fleet.command("build", *CELLS, "--builder", fleet.one, *fleet.shared, *fleet.push)
    log = fleet.cache / "first.log"
    with log.open("wb") as file:
        first = subprocess.Popen(
            command, cwd=ROOT, env=fleet.environment, stdout=file, stderr=file, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
    wait_for(lambda: "ort-verify:" in log.read_text() and "built in" in log.read_text(), "a unit", 400)
    first.send_signal(signal.SIGINT)
    assert first.wait(120) == 130
    told = log.read_text()
    done = set(re.findall(r"^(\S+:\S+): built in", told, re.MULTILINE))
    assert done
    again = fleet.run("build", "--resume")
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stderr.startswith("resuming: ortimg build " + " ".join(CELLS))
    repeated = {name for name in done if f"{name}: started" in again.stderr}
    assert repeated == set()
    assert "2 built" in again.stdout


def test_what_is_in_the_registry_is_unchanged_for_every_builder(fleet: Fleet) -> None:
    for name in (fleet.one, fleet.two):
        found = fleet.build(name, *fleet.push)
        assert {row["result"] for row in found.values()} == {"unchanged"}
        assert {row["image"] for row in found.values()} == {
            f"{fleet.registry}/team/onnxruntime-gpu:{cell}" for cell in CELLS
        }
        assert fleet.records() == {}


def test_the_second_builder_redoes_no_heavy_step(fleet: Fleet, tmp_path: Path) -> None:
    began = time.monotonic()
    found = fleet.build(fleet.two, "--output", str(tmp_path / "out"))
    print(f"an empty second builder: {time.monotonic() - began:.0f} s")
    assert {row["result"] for row in found.values()} == {"built"}
    assert {name.removesuffix(".log") for name in fleet.records()} == {*CELLS}  # no unit, no base, no tools
    assert fleet.heavy_steps() == []
    for cell in CELLS:
        index = json.loads((tmp_path / "out" / cell / "index.json").read_text())
        digest = index["manifests"][0]["digest"].replace(":", "/")
        manifest = json.loads((tmp_path / "out" / cell / "blobs" / digest).read_text())
        here = [(row["digest"], row["size"]) for row in manifest["layers"]]
        pushed = fleet.layers(cell)
        heavy = [layer for layer in pushed if layer[1] > 10_000_000]
        assert len(heavy) == 3  # CUDA, ONNX Runtime, the distribution
        assert set(heavy) <= set(here)


def test_both_cells_hold_the_same_heavy_layers(fleet: Fleet) -> None:
    first, second = (fleet.layers(cell) for cell in CELLS)
    shared = set(first) & set(second)
    assert sum(size for _, size in shared) > 0.9 * sum(size for _, size in first)


def test_a_base_that_only_this_engine_has_is_handed_over(fleet: Fleet, tmp_path: Path) -> None:
    """A local tag, which no registry knows: the builder gets it by digest from this machine."""
    project, name = tmp_path / "project", f"ortimg-test-base:{os.getpid()}"
    (project / "catalogue").mkdir(parents=True)
    cell = {"ort": "1.16.2", "cuda": "11.8", "cudnn": "8", "base": "mine"}
    base = {
        "name": "mine",
        "title": "Mine",
        "image": name,
        "glibc": "2.36",
        "glibcxx": "3.4.30",
        "confidence": "A",
    }
    (project / "images.yaml").write_text(json.dumps({"repository": "x", "include": [cell]}))
    (project / "catalogue" / "bases.yaml").write_text(json.dumps({"bases": [base]}))
    root = Cache(fleet.cache).get("base/debian12/bootstrap")
    assert root is not None
    subprocess.run(["docker", "import", Cache(fleet.cache).path(root), name], check=True, capture_output=True)
    try:
        done = fleet.run("-C", str(project), "build", "--builder", fleet.one, *fleet.shared, "--verify-only")
    finally:
        subprocess.run(["docker", "image", "rm", name], check=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 built" in done.stdout
    log = fleet.records()["1.16.2-cuda11.8-cudnn8-mine.log"]
    assert "[context base] OCI load from client" in log
    shutil.rmtree(fleet.cache / "layouts")


def test_an_image_with_its_provenance_is_the_same_image(fleet: Fleet) -> None:
    path = f"{fleet.registry}/attested"
    words = ("--push", "--tier", "load", "--registry-prefix", path, "--provenance")
    found = fleet.build(fleet.one, *words, cells=CELLS[:1])
    assert found[CELLS[0]]["result"] == "built"
    repository = Registries().repository(f"{path}/onnxruntime-gpu")
    index = repository.manifest(CELLS[0])
    assert index is not None
    plain = Registries().repository(f"{fleet.registry}/team/onnxruntime-gpu").digest(CELLS[0])
    assert images_of(index.content) == [plain]  # what is in the index is what is pushed without one
    (attestation,) = (row for row in index.content["manifests"] if row["digest"] != plain)
    manifest = repository.manifest(attestation["digest"])
    assert manifest is not None
    (layer,) = manifest.content["layers"]
    statement = json.loads(repository.blob(layer["digest"]) or b"")
    assert statement["predicateType"].startswith("https://slsa.dev/provenance/")
    assert statement["subject"][0]["digest"]["sha256"] == (plain or "").removeprefix("sha256:")
    # The label inside the index is what the next build and the aliases go by.
    again = fleet.build(fleet.one, *words, cells=CELLS[:1])
    assert again[CELLS[0]]["result"] == "unchanged"
    moved = fleet.run("push", "--aliases-only", "--tier", "load", "--registry-prefix", path, CELLS[0])
    assert moved.returncode == 0, moved.stderr
    assert repository.digest("1.16.2") == index.digest


def test_an_image_of_a_builder_elsewhere_comes_into_the_engine(fleet: Fleet, tmp_path: Path) -> None:
    name = f"ortimg-test/fleet-{os.getpid()}"
    cell = {"ort": "1.16.2", "cuda": "11.8", "cudnn": "8", "base": "debian12"}
    (tmp_path / "images.yaml").write_text(json.dumps({"repository": name, "include": [cell]}))
    engine, image = Engine(), f"{name}:{CELLS[0]}"
    try:
        done = fleet.run("-C", str(tmp_path), "build", "--builder", fleet.one, *fleet.shared, "--load")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 built" in done.stdout
        loaded = engine.inspect(image)
        assert loaded is not None
        assert loaded.labels["ortimg.identifier"] == CELLS[0]
        again = fleet.run("-C", str(tmp_path), "build", "--builder", fleet.one, *fleet.shared, "--load")
        assert "1 unchanged" in again.stdout, again.stderr
        # It runs here, and its verifier finds what it found over there.
        verified = fleet.run("-C", str(tmp_path), "verify", image)
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        for found in engine.images(reference=f"{name}:*"):
            for reference in found.references:
                engine.remove(reference)


def test_an_updated_base_rebuilds_nothing_heavy(fleet: Fleet, tmp_path: Path) -> None:
    before = fleet.layers(CELLS[0])
    cache = Cache(fleet.cache)
    name = "base/debian12/bootstrap"
    entry, packages = cache.get(name), cache.get(f"{name}-packages")
    assert entry is not None
    assert packages is not None
    root = tmp_path / "root.tar"
    shutil.copyfile(cache.path(entry), root)
    (tmp_path / "updated").write_text("a security update\n")
    subprocess.run(["tar", "-rf", root, "-C", tmp_path, "--transform", "s,^,etc/,", "updated"], check=True)
    cache.adopt(name, root, sha256=None, origin=entry.origin, details=entry.details)
    began = time.monotonic()
    found = fleet.build(fleet.two, *fleet.push, cells=CELLS[:1])
    seconds = time.monotonic() - began
    assert found[CELLS[0]]["result"] == "built"
    steps = [line for line in fleet.heavy_steps() if "ADD root.tar" not in line]
    assert steps == []
    after = fleet.layers(CELLS[0])
    new = [layer for layer in after if layer not in before]
    total = sum(size for _, size in after)
    print(f"an updated base: {seconds:.0f} s, {sum(s for _, s in new) / total:.3f} of the bytes are new")
    assert sum(size for _, size in new) < 0.1 * total
    assert set(before[:2]) <= set(after)  # CUDA and ONNX Runtime


def test_aliases_move_when_all_cells_are_there(fleet: Fleet) -> None:
    words = ("push", "--aliases-only", "--registry-prefix", f"{fleet.registry}/team", "--tier")
    low = fleet.run(*words, "run", *CELLS)
    assert low.returncode == 1
    assert "No alias tag was moved" in low.stderr
    absent = fleet.run(*words, "load")
    assert absent.returncode == 1
    assert "does not have it" in absent.stderr
    repository = Registries().repository(f"{fleet.registry}/team/onnxruntime-gpu")
    assert repository.digest("1.16.2") is None
    good = fleet.run(*words, "load", *CELLS)
    assert good.returncode == 0, good.stderr
    assert repository.digest("1.16.2") == repository.digest(CELLS[0])


def test_without_a_registry_units_travel_as_oci_layouts(fleet: Fleet) -> None:
    """Made by one builder, kept on this machine, handed to the other one by digest."""
    layouts = fleet.cache / "layouts"
    assert not layouts.exists()
    found = fleet.build(fleet.one, "--verify-only", cells=CELLS[:1], shared=())
    assert (found[CELLS[0]]["result"], found[CELLS[0]]["image"]) == ("built", None)
    made = {path.parent.parent.name for path in layouts.glob("*/*/index.json")}
    assert {"cuda", "ort", "ort-verify", "cuda-stub"} <= made
    fleet.build(fleet.two, "--verify-only", cells=CELLS[:1], shared=())
    assert fleet.heavy_steps() == []


def test_two_cold_builders_give_one_digest(fleet: Fleet, tmp_path: Path) -> None:
    """Everything anew on both, units too: nothing of one reaches the other. Last of all: it empties them."""
    folders = []
    prunes = [["docker", "buildx", "--builder", name, "prune", "-af"] for name in (fleet.one, fleet.two)]
    for prune in prunes:
        subprocess.run(prune, check=True, capture_output=True)
    for name, prune in zip((fleet.one, fleet.two), prunes, strict=True):
        alone = replace(fleet, cache=new_cache(tmp_path / f"cache-{name}"))
        folder = tmp_path / f"out-{name}"
        began = time.monotonic()
        found = alone.build(name, "--output", str(folder), cells=CELLS[:1], shared=())
        print(f"a cold builder: {time.monotonic() - began:.0f} s, {len(alone.heavy_steps())} heavy steps")
        assert found[CELLS[0]]["result"] == "built"
        assert {"cuda", "ort", "ort-verify", "cuda-stub"} <= {
            log.partition("_")[0] for log in alone.records()
        }
        assert alone.heavy_steps()
        shutil.rmtree(alone.cache)
        subprocess.run(prune, check=True, capture_output=True)  # two at once would take much disk
        folders.append(folder / CELLS[0])
    first, second = (json.loads((folder / "index.json").read_text())["manifests"] for folder in folders)
    if first[0]["digest"] != second[0]["digest"]:
        pytest.fail("\n".join(layout_differences(*folders)), pytrace=False)


def test_a_plain_http_registry_is_told_with_its_cure(fleet: Fleet) -> None:
    host = socket.gethostname()
    if not socket.gethostbyname(host).startswith("127."):
        pytest.skip("this machine's name is not on the loopback")
    port = fleet.registry.rpartition(":")[2]
    done = fleet.run(
        "build", CELLS[0], "--builder", fleet.one, "--verify-only", "--units", f"{host}:{port}/u"
    )
    assert done.returncode == 3
    assert f"{host}:{port} speaks plain HTTP" in done.stderr
    assert "buildkitd.toml" in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "keeps images to itself: say where they go"),
        (("--load", "--verify-only"), 2, "keeps images to itself: say where they go"),
        (("--push", "--registry-prefix", "127.0.0.1:9/x"), 2, "Say --tier load if that is what you mean."),
        (("--push", "--tier", "load"), 2, "names no registry to push to"),
        (("--verify-only", "--units", "units"), 2, "names no registry"),
        (("--verify-only", "--units", "127.0.0.1:9/u"), 3, "finds nothing at 127.0.0.1:9"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_built(
    fleet: Fleet, words: tuple[str, ...], code: int, said: str
) -> None:
    done = fleet.run("build", CELLS[0], "--builder", fleet.one, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 2
