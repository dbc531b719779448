"""What of `--gpu` and `--record` goes together, and what a build says of a run that failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ortimg.cli import cli
from ortimg.core.gpu_access import Device
from ortimg.core.model import Tier
from ortimg.engine.client import Image
from ortimg.engine.gpus import refuse_podman
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.factory.gpu import cause_of, open_stage
from ortimg.factory.site import Wish
from ortimg.records.recording import recordable_digest
from ortimg.records.wish import RecordWish
from ortimg.verify.report import failed, unable
from ortimg.verify.wish import Provider, RunWish

DIGEST = "sha256:" + "a" * 64
FILE = Path("record.json")


def check(
    wish: RecordWish, targets: int = 1, roots: int = 0, tier: Tier = Tier.RUN, run: RunWish | None = None
) -> None:
    wish.check(targets, roots, tier, run or RunWish())


@pytest.mark.parametrize(
    ("wish", "targets", "roots"),
    [
        (RecordWish(), 1, 1),
        (RecordWish(keep=True), 1, 0),
        (RecordWish(keep=True), 3, 0),
        (RecordWish(keep=True, push=True), 3, 0),
        (RecordWish(file=FILE), 1, 0),
        (RecordWish(file=FILE), 1, 1),
        (RecordWish(file=FILE, digest=DIGEST), 1, 1),
    ],
)
def test_what_goes_together(wish: RecordWish, targets: int, roots: int) -> None:
    check(wish, targets, roots)


@pytest.mark.parametrize(
    ("wish", "how", "words"),
    [
        (RecordWish(keep=True), {"tier": Tier.LOAD}, "Add --gpu"),
        (RecordWish(push=True), {"tier": Tier.STATIC}, "Add --gpu"),
        (RecordWish(keep=True), {"run": RunWish(provider=Provider.CPU)}, "only verdicts of tier run"),
        (RecordWish(keep=True), {"run": RunWish(model=Path("m.onnx"))}, "Leave out --model"),
        (RecordWish(keep=True), {"run": RunWish(allow_cpu=("Det",))}, "Leave out --model"),
        (RecordWish(keep=True), {"run": RunWish(options=("use_tf32=1",))}, "Leave out --model"),
        (RecordWish(file=FILE), {"targets": 2}, "is for one target"),
        (RecordWish(keep=True), {"roots": 1}, "--import-record FILE"),
        (RecordWish(keep=True, file=FILE, digest=DIGEST), {"roots": 1}, "--import-record FILE"),
        (RecordWish(push=True), {"roots": 1}, "--import-record FILE"),
        (RecordWish(keep=True, digest=DIGEST), {}, "unpacked root"),
        (RecordWish(file=FILE, digest=DIGEST), {}, "unpacked root"),
        (RecordWish(digest=DIGEST), {"roots": 1}, "--record-file FILE"),
        (RecordWish(keep=True, digest="abc"), {"roots": 1}, "is no digest"),
        (RecordWish(keep=True, digest=DIGEST[:-1]), {"roots": 1}, "is no digest"),
        (RecordWish(bring=FILE), {}, "runs nothing"),
        (RecordWish(bring=FILE, keep=True), {"tier": Tier.LOAD}, "runs nothing"),
        (RecordWish(bring=FILE), {"tier": Tier.LOAD, "roots": 1}, "wants one image"),
        (RecordWish(bring=FILE), {"tier": Tier.LOAD, "targets": 2}, "wants one image"),
    ],
)
def test_what_does_not_is_told_with_what_would(wish: RecordWish, how: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(wish, **how)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "--tier", "load"], "--gpu means tier run"),
        (["--gpu", "--provider", "cpu"], "--gpu means tier run"),
        (["--gpu-device", "0"], "Add --gpu"),
        (["--gpu", "--gpu-device", "none"], "is no GPU"),
        (["--record"], "Add --gpu"),
    ],
)
def test_words_of_verify(tmp_path: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["-C", str(tmp_path), "verify", "r:t", *words])
    assert done.exit_code == 2, done.output
    assert said in done.stderr


@pytest.mark.parametrize(
    "wish", [Wish(output=Path("out"), builder="b"), Wish(push=True, builder="b")], ids=["folder", "registry"]
)
def test_a_build_that_puts_its_images_elsewhere_cannot_run_them(wish: Wish) -> None:
    with pytest.raises(ConfigError, match="puts its images elsewhere") as caught:
        open_stage(Path(), True, None, wish)
    assert "ortimg verify IMAGE --gpu" in str(caught.value)


def test_a_build_without_gpu_asks_nobody() -> None:
    assert open_stage(Path(), False, None, Wish(output=Path("out"))) is None
    with pytest.raises(ConfigError, match="Add --gpu"):
        open_stage(Path(), False, "0", Wish())


def test_podman_gets_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stub in Docker's place gives Podman's answer to `docker info`."""
    stub = tmp_path / "docker"
    stub.write_text("""#!/bin/sh\necho '{"host": {}, "store": {}, "version": {"Version": "4.9.3"}}'\n""")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(EnvironmentFault, match="is Podman") as caught:
        refuse_podman("r:t", Device("0"))
    assert caught.value.hint == (
        "run: podman run --rm --device nvidia.com/gpu=0 --security-opt label=disable"
        " r:t ort-verify --tier run"
    )


def test_a_store_that_does_not_know_the_digest_cannot_have_a_record() -> None:
    unknown = Image(id=DIGEST, references=("r:t",), labels={}, layers=(), packed_size=1)
    with pytest.raises(EnvironmentFault, match="does not know the manifest digest of r:t") as caught:
        recordable_digest("r:t", unknown)
    assert "push the image first" in str(caught.value.hint)


def test_the_cause_of_a_failed_run() -> None:
    bad = failed("r:t", Tier.RUN, "run.nodes", "2 of 5 nodes ran on CUDA", "take another model")
    assert cause_of(bad) == "run.nodes: 2 of 5 nodes ran on CUDA\n  take another model"
    sick = unable("r:t", Tier.RUN, "CUDA failure 999", "see nvidia-smi")
    assert cause_of(sick) == "verify: CUDA failure 999\n  see nvidia-smi"
