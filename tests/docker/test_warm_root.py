"""warm.sh in the stub world with a GPU that must compile: the order of the starts, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from stub_world import NEEDS_ROOT, World
from warm_world import make_warm_world

from ortimg.core.warm_record import Step, Use, judge
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault
from ortimg.verify.binary import Verifier
from ortimg.verify.wish import RunWish
from ortimg.warming.folder import SCRIPT, look, read_record
from ortimg.warming.measure import Course, warm_root

pytestmark = NEEDS_ROOT

ONCE = Course(RunWish(), starts=1, seconds=60)
ROOT = os.geteuid() == 0
MODEL = SCRIPT.parents[1] / "verify" / "model" / "verify.onnx"
TO_A_COPY = (Step.NO_CACHE, Step.COLD, Step.SECOND, Step.SECOND_PROOF, Step.PROOF, Step.COPIED)


def _unwritable(used: bool) -> list[Step]:
    """Starts with caches that cannot be written to: timed ones only where the driver uses such a cache."""
    kinds = [(Step.MOUNT_PROOF, Step.MOUNT), (Step.OTHER_PROOF, Step.OTHER)] if ROOT else []
    kinds.append((Step.LOCKED_PROOF, Step.LOCKED))
    return [step for proof, timed in kinds for step in ((proof, timed) if used else (proof,))]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_warm_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


def test_a_root_is_warmed_and_nothing_is_left_in_it(
    world: World, verifier: Verifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_DISABLE_PTX_JIT", "1")  # the user's own settings do not disturb
    monkeypatch.setenv("CUDA_CACHE_PATH", "/nowhere")
    before = sorted(world.root.rglob("*"))
    warm_root(world.root, tmp_path / "out", verifier, ONCE)
    assert sorted(world.root.rglob("*")) == before
    record = read_record(tmp_path / "out")
    assert [start.name for start in record.attempts] == [*TO_A_COPY, *_unwritable(True)]
    assert [start.exit for start in record.attempts] == [1, *[0] * (len(record.attempts) - 1)]
    warmth = judge(record)
    assert not warmth.native
    assert warmth.gpu.compute == "9.0"
    assert warmth.cold[0] > 0.1 > warmth.second[0]  # the stub sleeps while it "compiles"
    assert look(tmp_path / "out").files == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["cache", "warm.json"]
    assert warmth.use is (Use.READ_ONLY if ROOT else Use.WRITABLE)  # without root no mount was tried
    assert str(world.root) not in Path("/proc/self/mounts").read_text()


def test_a_driver_that_must_write_is_found_out_and_nothing_fails(
    world: World, verifier: Verifier, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    world.write("/etc/fake/must-write", "yes")
    before = sorted(world.root.rglob("*"))
    warm_root(world.root, tmp_path / "out", verifier, ONCE)
    assert sorted(world.root.rglob("*")) == before
    record = read_record(tmp_path / "out")
    assert [start.name for start in record.attempts] == [*TO_A_COPY, *_unwritable(False)]
    assert {start.exit for start in record.attempts if start.name in _unwritable(False)} == {1}
    warmth = judge(record)
    assert warmth.use is Use.WRITABLE
    assert dict(warmth.unwritable) == dict.fromkeys((one.value for one in _unwritable(True)[1::2]), False)
    assert look(tmp_path / "out").files == 2
    assert "does not use a cache of folders and files without a right to write" in capfd.readouterr().err


@pytest.mark.skipif(not ROOT, reason="needs root, who can become somebody else")
def test_what_could_not_be_tried_is_said_and_fails_nothing(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    """With no right to mount and to give files away: the script does as where it is nobody special."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("unshare", "chown"):
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        (tools / name).chmod(0o755)
    command = ["sh", str(SCRIPT), f"--verify={verifier.program}", f"--stub={verifier.stub}", "--starts=1"]
    command += [f"--root={world.root}", f"--out={tmp_path / 'out'}"]
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=os.environ | path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "read-only-mount: skipped, no right to mount here" in done.stderr
    assert "other-uid: skipped" in done.stderr
    warmth = judge(read_record(tmp_path / "out"))
    assert (warmth.use, warmth.unwritable) == (Use.WRITABLE, (("no-write-bits", True),))


def test_where_kernels_are_native_nothing_is_done(world: World, verifier: Verifier, tmp_path: Path) -> None:
    world.write("/etc/fake/native", "yes")
    warm_root(world.root, tmp_path / "out", verifier, ONCE)
    record = read_record(tmp_path / "out")
    assert [start.name for start in record.attempts] == [Step.NO_CACHE]
    assert judge(record).native
    assert not (tmp_path / "out" / "cache").exists()


def test_a_model_of_the_user_is_warmed_and_the_verifiers_too(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    model = tmp_path / "net of mine.onnx"
    model.write_bytes(MODEL.read_bytes())  # the stub runs any
    course = Course(RunWish(model=model, shapes=("image=2x3x4x8",)), starts=1, seconds=60)
    warm_root(world.root, tmp_path / "out", verifier, course)
    record = read_record(tmp_path / "out")
    models = [(start.name, start.report.run.model) for start in record.attempts if start.report]  # type: ignore[union-attr]
    assert (Step.TOP_UP, "the model of ort-verify") in models
    assert [model for name, model in models if name is Step.PROOF] == [
        "net of mine.onnx",
        "the model of ort-verify",
    ]
    assert judge(record).model == "net of mine.onnx"


def test_a_start_that_fails_is_told_and_recorded(
    world: World, verifier: Verifier, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    world.write("/etc/fake/cuda-output", "0.7")  # not what the CPU gives
    with pytest.raises(CheckFailed, match="the warm-up failed"):
        warm_root(world.root, tmp_path / "out", verifier, ONCE)
    assert "a cold start failed" in capfd.readouterr().err
    with pytest.raises(CheckFailed, match=r"'cold' failed: run\.outputs"):
        judge(read_record(tmp_path / "out"))
    assert not (tmp_path / "out" / "cache").exists()


def test_no_driver_is_the_machines_fault(world: World, verifier: Verifier, tmp_path: Path) -> None:
    world.path("/usr/lib/libcuda.so.1").unlink()
    world.ldconfig()
    with pytest.raises(EnvironmentFault, match="cannot warm anything"):
        warm_root(world.root, tmp_path / "out", verifier, ONCE)


def test_a_wrong_option_is_wrong_usage(world: World, verifier: Verifier, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="refused its options"):
        warm_root(world.root, tmp_path / "out", verifier, Course(RunWish(shapes=("nope",)), seconds=60))


def test_an_earlier_record_is_not_overwritten(world: World, verifier: Verifier, tmp_path: Path) -> None:
    (tmp_path / "out" / "cache").mkdir(parents=True)
    with pytest.raises(ConfigError):
        warm_root(world.root, tmp_path / "out", verifier, ONCE)


def test_a_stop_leaves_nothing_in_the_root(world: World, verifier: Verifier, tmp_path: Path) -> None:
    world.write("/etc/fake/hang", "yes")
    command = ["sh", str(SCRIPT), f"--verify={verifier.program}", f"--root={world.root}"]
    process = subprocess.Popen(
        [*command, f"--out={tmp_path / 'out'}"], start_new_session=True, stderr=subprocess.DEVNULL
    )
    limit = time.monotonic() + 20
    while not list(world.root.glob("ortimg-warm.*/empty")) and time.monotonic() < limit:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(20) == 130
    assert list(world.root.glob("ortimg-warm.*")) == []
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--nonsense=1"],
        ["--starts"],
        ["--starts=0", "--verify=/bin/true", "--out=out"],
        ["--verify=/nowhere", "--out=out"],
        ["--verify=/bin/true"],
        ["--verify=/bin/true", "--out=out", "--root=/nowhere"],
        ["--verify=/bin/true", "--out=out", "--root=/etc"],  # no root: nothing may be put there
        ["stray"],
    ],
)
def test_the_script_alone_says_what_is_wrong(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run(["sh", SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("warm: ")
    assert list(tmp_path.iterdir()) == []
