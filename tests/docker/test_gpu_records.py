"""Verdicts of tier run on a real engine, kept and attached, on the stub world with a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from registries import registry
from run_world import make_run_world, profile
from stub_world import NVIDIA, World

from ortimg.cli import cli
from ortimg.core.gpu_access import EVERY, Device, Way, docker_options
from ortimg.core.model import Tier
from ortimg.engine.client import Engine, Image
from ortimg.errors import ExitCode
from ortimg.factory.gpu import GpuStage, with_verdicts
from ortimg.factory.result import CellResult, Outcome
from ortimg.factory.run import Report as BuildReport
from ortimg.records.attach import attach, attached
from ortimg.records.record import ARTIFACT_TYPE, Identity, Record, Subject, best_tier, dump_record
from ortimg.records.recording import record_image
from ortimg.records.store import FOLDER, read_file, read_records, write_file
from ortimg.records.wish import RecordWish
from ortimg.registry.client import Registries
from ortimg.registry.referrers import put_referrer
from ortimg.verify import image as verify_image_module
from ortimg.verify.binary import get_verifier
from ortimg.verify.image import verify_image
from ortimg.verify.report import Verdict
from ortimg.verify.run_report import RunReport

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU: see tests/gpu"),
]
CELL = "1.22.0-cuda12.2-cudnn9-stub"  # what the manifest of the stub world says
REPOSITORY = f"localhost/ortimg-test/records-{os.getpid()}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_run_world(tmp_path_factory.mktemp("world") / "root")


def put(world: World, name: str, folder: Path, *changes: str) -> Image:
    with tarfile.open(folder / "root.tar", "w") as tar:
        tar.add(world.root, ".")
    env = [f"ENV {key}={value}" for key, value in NVIDIA.items()]
    labels = [f"LABEL ortimg.identifier={CELL}", "LABEL ortimg.tier=load"]
    return Engine().import_root(folder / "root.tar", name, [*env, *labels, *changes])


@pytest.fixture(scope="module")
def image(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    name = f"{REPOSITORY}:one"
    put(world, name, tmp_path_factory.mktemp("tar"), "LABEL ortimg.content=one")
    yield name
    subprocess.run(["docker", "image", "rm", "-f", name], capture_output=True, check=False)


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """With the verifier that other tests compiled."""
    monkeypatch.setenv("ORTIMG_CACHE", str(request.config.cache.mkdir("ortimg")))


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub world brings its GPU along: all but the request for one is as in a real run."""
    whole = verify_image_module._with_gpu

    def rest(way: Way, device: Device) -> dict[str, object]:
        return {key: value for key, value in whole(way, device).items() if key != "device_requests"}

    monkeypatch.setattr(verify_image_module, "_with_gpu", rest)


def verify(project: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(project), "verify", *words])


def digest_of(reference: str) -> str:
    there = Engine().inspect(reference)
    assert there is not None
    assert there.digest is not None
    return there.digest


# no GPU


def test_an_engine_without_a_gpu_is_exit_3_and_leaves_no_record(image: str, tmp_path: Path) -> None:
    done = verify(tmp_path, image, "--gpu", "--record")
    assert done.exit_code == 3, done.output
    first, second = done.stderr.strip().splitlines()
    assert 'could not select device driver "" with capabilities: [[gpu]]' in first
    assert "install the NVIDIA Container Toolkit" in second
    assert not (tmp_path / FOLDER).exists()


def test_a_build_with_gpu_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(
        f"repository: {REPOSITORY}\n"
        'matrix: {ort: ["1.16.2"], cuda: ["11.8"], cudnn: ["8"], base: [debian12], flavour: [runtime]}\n'
    )
    done = CliRunner().invoke(cli, ["-C", str(tmp_path), "build", "--gpu"])
    assert done.exit_code == 3, done.output
    assert len(done.stderr.strip().splitlines()) == 2
    assert "install the NVIDIA Container Toolkit" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["images.yaml"]
    assert Engine().inspect(f"localhost/ortimg/gpu-probe:{os.getpid()}") is None


# a verdict is kept


@pytest.mark.usefixtures("with_gpu")
def test_a_verdict_is_kept_under_the_digest_and_the_image_stays_as_it_is(image: str, tmp_path: Path) -> None:
    before = Engine().inspect(image)
    done = verify(tmp_path, image, "--gpu", "--record", "--record-file", str(tmp_path / "out.json"), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["verdict"] == "pass"
    digest = digest_of(image)
    (record,) = read_records(tmp_path).records
    assert record == read_file(tmp_path / "out.json")
    assert (record.subject, record.digest, record.identity.identifier) == (Subject.IMAGE, digest, CELL)
    assert record.identity.content == "one"
    assert record.gpu is not None
    assert record.gpu.name == "Stub GPU"
    assert (tmp_path / FOLDER / digest.removeprefix("sha256:") / "stub-gpu.json").is_file()
    after = Engine().inspect(image)
    assert after == before
    assert after is not None
    assert after.labels["ortimg.tier"] == "load"
    assert best_tier("load", digest, [record]) == "run"


@pytest.mark.usefixtures("with_gpu")
def test_the_verdict_is_of_the_image_that_ran_also_where_its_name_has_moved(
    image: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, name = Engine(), f"{REPOSITORY}:moving"
    engine.tag(image, name)
    ran = engine.inspect(name)
    assert ran is not None
    try:
        bad = world.copy(tmp_path / "bad")
        bad.write("/etc/fake/profile.json", profile(("b", "Det", "CPU")))
        put(bad, name, tmp_path, "LABEL ortimg.content=two")
        verifier = get_verifier(Path(os.environ["ORTIMG_CACHE"]))
        report = verify_image(engine, name, Tier.RUN, verifier, image=ran)
        assert report.verdict is Verdict.PASS
        record_image(engine, tmp_path, name, ran, report, RecordWish(keep=True))
        assert digest_of(name) != ran.digest
    finally:
        engine.remove(name)
    (record,) = read_records(tmp_path).records
    assert (record.digest, record.identity.content) == (ran.digest, "one")
    assert f"names another image since: this verdict is of {ran.digest}" in capsys.readouterr().err


# a build


def built(image: str) -> BuildReport:
    there = CellResult(identifier=CELL, result=Outcome.BUILT, image=image, tier="load")
    absent = CellResult(identifier="absent", result=Outcome.UNAVAILABLE, cause="no network")
    return BuildReport(
        results=(there, absent), exit_code=ExitCode.DONE, seconds=1, fetch_seconds=0, unit_seconds=0
    )


def stage(project: Path) -> GpuStage:
    return GpuStage(Engine(), get_verifier(Path(os.environ["ORTIMG_CACHE"])), EVERY, project)


@pytest.mark.usefixtures("with_gpu")
def test_what_was_built_runs_and_is_tier_run_by_its_verdict(image: str, tmp_path: Path) -> None:
    assert with_verdicts(tmp_path, built(image)).results[0].tier == "load"
    done = with_verdicts(tmp_path, stage(tmp_path).run(built(image)))
    first, second = (result.as_data() for result in done.results)
    assert (first["result"], first["tier"], first["digest"]) == ("built", "run", digest_of(image))
    assert (second["result"], second["tier"], second["digest"]) == ("unavailable", None, None)
    assert done.exit_code is ExitCode.DONE


@pytest.mark.usefixtures("with_gpu")
def test_a_cell_that_fails_on_the_gpu_is_a_failed_cell(
    image: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(tmp_path).run(built(image))
    bad = world.copy(tmp_path / "bad")
    bad.write("/etc/fake/profile.json", profile(("a", "Conv", "CUDA"), ("b", "Det", "CPU")))
    name = f"{REPOSITORY}:bad"
    put(bad, name, tmp_path)
    try:
        only_built = with_verdicts(tmp_path, built(name))
        assert only_built.results[0].tier == "load"  # the verdict that is kept is of another digest
        assert f"{CELL}: ignored: the verdict in verdicts/ is of {digest_of(image)[:19]}…" in (
            capsys.readouterr().err
        )
        done = with_verdicts(tmp_path, stage(tmp_path).run(built(name)))
    finally:
        Engine().remove(name)
    result = done.results[0]
    assert (result.result, result.tier, result.environment) == (Outcome.FAILED, "load", False)
    assert "on the GPU: run.nodes: 1 of 2 nodes ran on CUDA" in str(result.cause)
    assert done.exit_code is ExitCode.FAILED
    assert [record.verdict.value for record in read_records(tmp_path).records] != ["pass", "pass"]


@pytest.mark.usefixtures("with_gpu")
def test_a_gpu_that_is_gone_is_not_the_cells_fault(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(way: Way, device: Device) -> dict[str, object]:
        return docker_options(way, device)

    monkeypatch.setattr(verify_image_module, "_with_gpu", refused)
    done = stage(tmp_path).run(built(image))
    assert (done.results[0].result, done.results[0].environment) == (Outcome.FAILED, True)
    assert "install the NVIDIA Container Toolkit" in str(done.results[0].cause)
    assert done.exit_code is ExitCode.ENVIRONMENT
    assert not (tmp_path / FOLDER).exists()


# roots, and records that are carried


@pytest.fixture
def carried(image: str, world: World, tmp_path: Path) -> Path:
    """A record that a machine without an engine made of the image's root."""
    file = tmp_path / "carried.json"
    done = verify(
        tmp_path, str(world.root), "--gpu", "--record-file", str(file), "--digest", digest_of(image)
    )
    assert done.exit_code == 0, done.output
    return file


@pytest.mark.usefixtures("with_gpu")
def test_a_root_says_that_it_is_no_image(world: World, tmp_path: Path) -> None:
    file = tmp_path / "root.json"
    assert verify(tmp_path, str(world.root), "--gpu", "--record-file", str(file)).exit_code == 0
    record = read_file(file)
    assert (record.subject, record.digest) == (Subject.ROOT, None)
    assert "bound to no digest" in record.about
    assert record.identity.files
    assert not (tmp_path / FOLDER).exists()


def test_a_carried_record_is_taken_in_where_it_belongs(image: str, carried: Path, tmp_path: Path) -> None:
    done = verify(tmp_path, image, "--import-record", str(carried), "--json")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert (shown["record"]["verdict"], shown["record"]["digest"]) == ("pass", digest_of(image))
    (record,) = read_records(tmp_path).records
    assert record == read_file(carried)


def test_what_does_not_belong_is_refused(image: str, carried: Path, tmp_path: Path) -> None:
    good = read_file(carried)
    file = tmp_path / "bad.json"

    def refused(record: Record) -> str:
        write_file(file, record)
        done = verify(tmp_path, image, "--import-record", str(file))
        assert done.exit_code == 1, done.output
        assert not (tmp_path / FOLDER).exists()
        return done.stderr

    other = "sha256:" + "0" * 64
    assert f"speaks of {other}, and {image} is" in refused(msgspec.structs.replace(good, digest=other))
    assert "bound to no image" in refused(msgspec.structs.replace(good, digest=None))
    files = dict.fromkeys(good.identity.files, "0" * 64)
    changed = msgspec.structs.replace(good.identity, files=files)
    assert "is another file in the image" in refused(msgspec.structs.replace(good, identity=changed))
    cell = msgspec.structs.replace(good.identity, identifier="another")
    assert "the cell is another" in refused(msgspec.structs.replace(good, identity=cell))
    run = good.report.run
    assert isinstance(run, RunReport)
    report = msgspec.structs.replace(good.report, run=msgspec.structs.replace(run, model="net.onnx"))
    assert 'is of the model "net.onnx"' in refused(msgspec.structs.replace(good, report=report))
    forged = msgspec.structs.replace(good, subject=Subject.IMAGE, identity=Identity(content="f" * 64))
    assert "tells other labels" in refused(forged)
    file.write_text(carried.read_text()[:-200])
    done = verify(tmp_path, image, "--import-record", str(file))
    assert done.exit_code == 1
    assert "no whole record" in done.stderr


# in a registry


@pytest.mark.usefixtures("with_gpu")
def test_a_verdict_is_attached_to_the_digest_in_a_registry(image: str, tmp_path: Path) -> None:
    engine = Engine()
    with registry(tmp_path / "registry") as server:
        name = f"{server.host}/team/records:one"
        engine.tag(image, name)
        try:
            early = verify(tmp_path, name, "--gpu", "--push-record")
            assert early.exit_code == 1
            assert "push it first" in early.stderr
            assert not (tmp_path / FOLDER).exists()  # told before anything was run
            subprocess.run(["docker", "push", "--quiet", name], check=True, capture_output=True)
            done = verify(tmp_path, name, "--gpu", "--push-record")
            assert done.exit_code == 0, done.output
            kept = read_records(tmp_path).records
            repository, digest = Registries().repository(name), digest_of(name)
            assert attached(repository, digest) == (kept, ())
            assert repository.digest("one") == digest  # the image is what it was
            again = attach(repository, digest, kept)
            assert again == attach(repository, digest, kept)
            other = msgspec.structs.replace(kept[0], digest="sha256:" + "0" * 64)
            assert attach(repository, digest, [other]) == []
            put_referrer(repository, digest, ARTIFACT_TYPE, dump_record(kept[0])[:90].encode())
            put_referrer(repository, digest, ARTIFACT_TYPE, dump_record(other).encode())
            found, problems = attached(repository, digest)
            assert found == kept
            assert sorted("no whole record" in problem for problem in problems) == [False, True]
        finally:
            engine.remove(name)
