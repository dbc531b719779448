"""Records of run verdicts: what one holds, what it proves, and what is no record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from wishes import images, matrix

from ortimg.cli import cli
from ortimg.errors import CheckFailed, ConfigError
from ortimg.records.identity import MANIFEST, root_identity
from ortimg.records.record import (
    Identity,
    Record,
    Subject,
    best_tier,
    dump_record,
    make_record,
    of_other_digests,
    parse_record,
    proves_run,
    row,
)
from ortimg.records.store import FOLDER, read_file, read_records, write_file, write_record
from ortimg.verify.report import FindingVerdict, Report, Verdict, parse_report

RUNS = Path(__file__).parents[2] / "docs" / "gpu-runs"
CELL = "1.16.2-cuda11.8-cudnn8-debian12"
DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def report(name: str = "run") -> Report:
    """One that a real GPU gave."""
    return parse_report((RUNS / CELL / f"{name}.json").read_bytes())


def record(name: str = "run", digest: str | None = DIGEST, subject: Subject = Subject.IMAGE) -> Record:
    return make_record(
        report(name), subject, digest, Identity(identifier=CELL), "1.2.3", "2026-12-02T00:00:00Z"
    )


def changed(**values: Any) -> bytes:
    """A record's file with other values; `report__verdict` is one inside of `report`."""
    data = json.loads(dump_record(record()))
    for key, value in values.items():
        *outer, last = key.split("__")
        place = data
        for name in outer:
            place = place[name]
        place[last] = value
    return json.dumps(data).encode()


# what it holds


def test_a_record_holds_the_verdict_and_what_it_was_made_on() -> None:
    made = record()
    data = json.loads(dump_record(made))
    assert (data["schema"], data["subject"], data["digest"]) == (1, "image", DIGEST)
    assert (data["tier"], data["verdict"]) == ("run", "pass")
    assert data["identity"]["identifier"] == CELL
    assert (data["gpu"]["name"], data["gpu"]["compute"]) == ("NVIDIA H200", "9.0")
    assert data["gpu"]["driver"] == "580.159.04"
    assert data["versions"] == {"ortimg": "1.2.3", "ort": "1.16.2", "cuda": "11.8"}
    assert data["date"] == data["report"]["run"]["date"]
    assert data["report"]["findings"]


def test_a_carried_record_cannot_speak_to_the_terminal() -> None:
    sly = parse_record(changed(gpu__name="\x1b[2J", report__run__device__name="\x1b[2J"), "f")
    assert sly.gpu_words == "?[2J, compute 9.0, driver 580.159.04"


def test_what_is_written_is_read() -> None:
    assert parse_record(dump_record(record()), "f") == record()


def test_a_failure_is_recorded_too() -> None:
    made = record("no-cudnn-part")
    assert made.verdict.value == "fail"
    assert parse_record(dump_record(made), "f") == made


def test_a_failure_before_any_gpu_was_looked_at() -> None:
    made = make_record(
        msgspec.structs.replace(report("no-cudnn-part"), run=msgspec.UNSET),
        Subject.IMAGE,
        DIGEST,
        Identity(),
        "1",
        "2026-12-02T00:00:00Z",
    )
    assert (made.gpu, made.date) == (None, "2026-12-02T00:00:00Z")
    assert parse_record(dump_record(made), "f") == made


def test_a_machine_that_cannot_tell_leaves_no_record() -> None:
    with pytest.raises(CheckFailed, match="this machine could not tell"):
        record("no-visible-device")


def test_a_root_says_plainly_that_it_is_no_image() -> None:
    loose = record(digest=None, subject=Subject.ROOT)
    assert loose.about.startswith("An unpacked root was run, not an image, and it is bound to no digest")
    tied = record(subject=Subject.ROOT)
    assert f"says that it was exported from {DIGEST}" in tied.about
    assert record().about == f"The image {DIGEST} itself was run."


# what it proves


def test_a_passing_record_of_this_very_digest_makes_tier_run() -> None:
    assert best_tier("load", DIGEST, [record()]) == "run"


@pytest.mark.parametrize(
    "records",
    [
        [],
        [record(digest=OTHER)],
        [record("no-cudnn-part")],
        [record(digest=None, subject=Subject.ROOT)],
        [record("own-model")],  # says something of that model
        [record("node-allowed")],
    ],
    ids=["none", "other digest", "failed", "root", "own model", "nodes on the CPU"],
)
def test_anything_else_leaves_it_load(records: list[Record]) -> None:
    assert best_tier("load", DIGEST, records) == "load"
    assert best_tier("load", None, [record()]) == "load"


def test_a_failed_run_of_the_whole_model_proves_nothing() -> None:
    whole = report()
    wrong = msgspec.structs.replace(whole.findings[-1], verdict=FindingVerdict.FAIL)
    bad = msgspec.structs.replace(whole, verdict=Verdict.FAIL, findings=(*whole.findings[:-1], wrong))
    made = make_record(bad, Subject.IMAGE, DIGEST, Identity(), "1", "now")
    assert parse_record(dump_record(made), "f") == made
    assert not proves_run(made, DIGEST)


def test_a_run_with_nodes_allowed_on_the_cpu_proves_less() -> None:
    run = msgspec.structs.replace(report().run, cpu_fallback=True)  # type: ignore[type-var]
    made = make_record(
        msgspec.structs.replace(report(), run=run), Subject.IMAGE, DIGEST, Identity(), "1", "now"
    )
    assert proves_run(record(), DIGEST)
    assert not proves_run(made, DIGEST)


def test_records_of_another_digest_are_told() -> None:
    records = [record(), record(digest=OTHER)]
    assert of_other_digests(CELL, DIGEST, records) == (records[1],)
    assert of_other_digests(CELL, None, records) == tuple(records)
    assert of_other_digests("1.18.0-cuda12.2-cudnn8-debian12", DIGEST, records) == ()


def test_a_row_of_the_list() -> None:
    assert row(record()) == {
        "digest": DIGEST,
        "subject": "image",
        "verdict": "pass",
        "gpu": "NVIDIA H200",
        "compute": "9.0",
        "driver": "580.159.04",
        "date": record().date,
    }


# what is no record


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no whole record"),
        (dump_record(record())[:-40].encode(), "no whole record"),
        (b'{"schema": 1}', "no whole record"),
        (b"\xff\xfe", "no whole record"),
        (b"[]", "no whole record"),
        (b'{"x": ' + b"[" * 200_000, "no whole record"),
        ((RUNS / CELL / "run.json").read_bytes(), "no whole record"),  # a report is none yet
        (changed(schema=2), "has schema 2"),
        (changed(tier="load"), "no whole record"),
        (changed(digest="sha256:abc"), "is no digest"),
        (changed(digest=DIGEST + "\n"), "is no digest"),
        (changed(digest=None), "names no digest"),
        (changed(verdict="fail"), "it says fail of tier run, and the report in it says pass"),
        (changed(report__tier="load"), "of tier load"),
        (changed(report__verdict="fail"), "it says pass of tier run, and the report in it says fail"),
        (changed(report__findings=[]), "holds no check at all"),
        (changed(gpu__name="NVIDIA T4"), "another GPU"),
        (changed(gpu=None, report__run={"model": "m"}), "no model was run on a GPU"),
        (changed(verdict="environment", report__verdict="environment"), "could not tell"),
    ],
)
def test_a_file_that_is_cut_or_contradicts_itself_is_no_record(content: bytes, words: str) -> None:
    with pytest.raises(CheckFailed, match=words) as caught:
        parse_record(content, "verdicts/x.json")
    assert "verdicts/x.json" in caught.value.message
    assert caught.value.hint


def test_a_pass_with_a_failed_check_in_it_is_no_record() -> None:
    data = json.loads(dump_record(record()))
    data["report"]["findings"][0]["verdict"] = "fail"
    with pytest.raises(CheckFailed, match="says pass with 1 failed checks"):
        parse_record(json.dumps(data), "f")


# the folder


def test_a_projects_records(tmp_path: Path) -> None:
    path = write_record(tmp_path, record())
    assert path == tmp_path / FOLDER / ("a" * 64) / "nvidia-h200.json"
    write_record(tmp_path, record(digest=OTHER))
    found = read_records(tmp_path)
    assert {row.digest for row in found.records} == {DIGEST, OTHER}
    assert found.problems == ()


def test_the_newest_verdict_on_a_gpu_counts(tmp_path: Path) -> None:
    write_record(tmp_path, record())
    write_record(tmp_path, record("node-cuda-lacks"))
    assert [row.verdict.value for row in read_records(tmp_path).records] == ["fail"]


def test_a_project_without_records(tmp_path: Path) -> None:
    assert read_records(tmp_path).records == ()


def test_a_broken_file_hides_no_other(tmp_path: Path) -> None:
    good = write_record(tmp_path, record())
    (good.parent / "cut.json").write_text(dump_record(record())[:100])
    moved = tmp_path / FOLDER / ("c" * 64) / "moved.json"
    write_file(moved, record())
    found = read_records(tmp_path)
    assert len(found.records) == 1
    cut, other = found.problems
    assert "cut.json is no whole record" in cut
    assert f"moved.json speaks of {DIGEST}" in other


def test_a_loose_root_has_no_place_in_the_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="bound to no image") as caught:
        write_record(tmp_path, record(digest=None, subject=Subject.ROOT))
    assert "--digest" in str(caught.value.hint)
    assert not (tmp_path / FOLDER).exists()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_file(tmp_path)


def test_the_list_shows_verdicts_of_a_cell(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(
        images(matrix=matrix(["1.16.2"], ["11.8"], ["8"], ["debian12", "debian13"]))
    )
    good = write_record(tmp_path, record())
    (good.parent / "cut.json").write_text("{")
    done = CliRunner().invoke(cli, ["-C", str(tmp_path), "list", "--json"])
    assert done.exit_code == 0
    assert {cell["identifier"]: cell["verdicts"] for cell in json.loads(done.stdout)["cells"]} == {
        CELL: [row(record())],
        CELL.replace("12", "13"): [],
    }
    assert "cut.json is no whole record" in done.stderr


# what a root is


def unpacked(folder: Path) -> Path:
    manifest = folder / MANIFEST.lstrip("/")
    manifest.parent.mkdir(parents=True)
    ort = {"prefix": "/opt/onnxruntime/1.16.2", "version": "1.16.2"}
    manifest.write_text(json.dumps({"schema": 1, "identifier": CELL, "ort": ort}))
    library = folder / "opt/onnxruntime/1.16.2/lib"
    library.mkdir(parents=True)
    (library / "libonnxruntime.so.1.16.2").write_bytes(b"core")
    return folder


def test_a_root_is_known_by_its_manifest_and_libraries(tmp_path: Path) -> None:
    found = root_identity(unpacked(tmp_path))
    assert found.identifier == CELL
    core = "/opt/onnxruntime/1.16.2/lib/libonnxruntime.so.1.16.2"
    assert found.files.keys() == {MANIFEST, core}
    assert found.files[core] == hashlib.sha256(b"core").hexdigest()


def test_another_library_is_another_root(tmp_path: Path) -> None:
    before = root_identity(unpacked(tmp_path))
    (tmp_path / "opt/onnxruntime/1.16.2/lib/libonnxruntime.so.1.16.2").write_bytes(b"Core")
    assert root_identity(tmp_path) != before


def test_nothing_outside_the_root_is_read(tmp_path: Path) -> None:
    root = unpacked(tmp_path / "root")
    core = root / "opt/onnxruntime/1.16.2/lib/libonnxruntime.so.1.16.2"
    core.unlink()
    (tmp_path / "secret").write_text("x")
    core.symlink_to(tmp_path / "secret")
    assert [*root_identity(root).files] == [MANIFEST]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"identifier": "x", "ort": null}', "\0"])
def test_a_root_without_a_manifest_has_no_identity(tmp_path: Path, text: str) -> None:
    root = unpacked(tmp_path)
    (root / MANIFEST.lstrip("/")).write_text(text)
    assert root_identity(root) == Identity()
