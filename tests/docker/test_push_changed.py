"""What a registry has with the same content is not built again; a build can push what it built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from real import IDENTIFIER, RealCell, ortimg
from registries import Registry, registry, repository

from ortimg.core.lock import BaseLock, Lock, dump, merge, planned
from ortimg.engine.client import Engine
from ortimg.errors import ExitCode
from ortimg.factory.contents import possible_contents
from ortimg.inputs.cache import Cache
from ortimg.inputs.lockfile import read_lock
from ortimg.project import load_project
from ortimg.publishing.changed import since_lock
from ortimg.registry.model import CONFIG, MANIFEST, Descriptor, canonical
from ortimg.rendering import build_context, render_project

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

OTHER = IDENTIFIER.replace("debian12", "debian13")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "images.yaml").write_text(
        'repository: ortimg-test/changed\nmatrix:\n  ort: ["1.16.2"]\n  cuda: ["11.8"]\n  cudnn: ["8"]\n'
        f"  base: [debian12, debian13]\ntags: {{latest: {IDENTIFIER}}}\n"
    )
    return folder


def put_labelled(name: str, tag: str, labels: dict[str, str]) -> None:
    """An image with labels and nothing else."""
    host, _, path = name.partition("/")
    repo = repository(host, path)
    config = canonical({"architecture": "amd64", "os": "linux", "config": {"Labels": labels}})
    row = Descriptor(media_type=CONFIG, digest=repo.upload_bytes(config), size=len(config))
    content = {"schemaVersion": 2, "mediaType": MANIFEST, "config": row.as_data(), "layers": []}
    repo.put_manifest(canonical(content), MANIFEST, tag)


def contents(folder: Path, identifier: str) -> frozenset[str]:
    project = load_project(folder)
    cell = next(cell for cell in project.plan.cells if cell.identifier == identifier)
    files = render_project(project)
    lock = merge(read_lock(folder), planned([cell]))
    return possible_contents(cell, files, build_context(files), Cache.default(), lock)


def test_the_content_of_an_image_is_known_without_building_it(real_cell: RealCell, engine: Engine) -> None:
    image = engine.inspect(real_cell.reference)
    assert image is not None
    assert image.labels["ortimg.content"] in contents(Path(__file__).parents[2], IDENTIFIER)


def test_only_what_the_registry_lacks_is_stale(real: Registry, project: Path) -> None:
    name = f"{real.host}/changed/stale"
    (content, *_) = sorted(contents(project, IDENTIFIER))
    put_labelled(name, IDENTIFIER, {"ortimg.content": content, "ortimg.tier": "load"})
    put_labelled(name, OTHER, {"ortimg.content": "0" * 64})
    done = ortimg("list", "--stale", name, "--json", cwd=project)
    assert done.returncode == ExitCode.DONE, done.stderr
    rows = {row["identifier"]: row["stale"] for row in json.loads(done.stdout)["cells"]}
    assert rows == {IDENTIFIER: None, OTHER: "made of other inputs, or of another text"}
    none = ortimg("list", "--stale", f"{real.host}/changed/none", cwd=project)
    assert none.stdout.count("the registry does not have it") == 2
    assert none.stderr.splitlines() == [
        "2 stale, 0 up to date",
        f"Next: `ortimg build --changed-since {real.host}/changed/none`, then `ortimg push`.",
    ]
    whole = ortimg("list", IDENTIFIER, "--stale", name, cwd=project)
    assert whole.stderr.splitlines() == ["0 stale, 1 up to date"]

    # A build of what is there builds nothing, and needs no engine for it.
    built = ortimg("build", IDENTIFIER, "--changed-since", name, "--json", cwd=project)
    assert built.returncode == ExitCode.DONE, built.stderr
    (row,) = json.loads(built.stdout)["cells"]
    assert (row["result"], row["image"], row["tier"]) == ("unchanged", f"{name}:{IDENTIFIER}", "load")
    wrong = ortimg("build", "--changed-since", "nowhere", cwd=project)
    assert wrong.returncode == ExitCode.USAGE
    assert "no lock file" in wrong.stderr


def _write(folder: Path, lock: Lock) -> Path:
    path = folder / "old.lock"
    path.write_text(dump(lock))
    return path


def test_pins_against_an_older_lock(project: Path, tmp_path: Path) -> None:
    assert ortimg("render", cwd=project).returncode == ExitCode.DONE
    lock = merge(read_lock(project), planned(load_project(project).plan.cells))
    (tmp_path / "same.lock").write_text(dump(lock))
    done = ortimg("build", "--changed-since", str(tmp_path / "same.lock"), "--json", cwd=project)
    assert done.returncode == ExitCode.DONE, done.stderr
    assert [row["result"] for row in json.loads(done.stdout)["cells"]] == ["unchanged", "unchanged"]
    old = msgspec.structs.replace(lock, bases={**lock.bases, "debian13": BaseLock(image="debian:old")})
    kept = since_lock(load_project(project), load_project(project).plan.cells, _write(tmp_path, old))
    assert [*kept] == [IDENTIFIER]


def test_a_build_is_pushed(real_cell: RealCell, engine: Engine, real: Registry, project: Path) -> None:  # noqa: ARG001
    words = ["--push", "--registry-prefix", f"{real.host}/built", "--json"]
    early = ortimg("build", IDENTIFIER, "--available", *words, cwd=project)
    assert early.returncode == ExitCode.USAGE
    try:
        done = ortimg("build", IDENTIFIER, "--tier", "load", *words, cwd=project)
        assert done.returncode == ExitCode.DONE, done.stderr
        repo = repository(real.host, "built/ortimg-test/changed")
        (row,) = json.loads(done.stdout)["push"]["images"]
        assert (row["result"], row["digest"]) == ("pushed", repo.digest(IDENTIFIER))
        assert repo.digest("latest") == row["digest"]
        # The next run needs neither engine nor upload.
        again = ortimg(
            "build", IDENTIFIER, "--tier", "load", "--changed-since", "registry", *words, cwd=project
        )
        assert again.returncode == ExitCode.DONE, again.stderr
        report = json.loads(again.stdout)
        assert [found["result"] for found in report["cells"]] == ["unchanged"]
        assert report["push"] is None
    finally:
        for tag in (IDENTIFIER, "latest"):
            engine.remove(f"ortimg-test/changed:{tag}")
