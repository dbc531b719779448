"""The warmed image, made from a made-up record and cache: layers, rights, the entrypoint, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from real import ROOT, RealCell, ortimg

from ortimg.engine.client import Engine, RunResult

sys.path.insert(0, str(ROOT / "tests" / "unit"))

from warm_records import IDENTIFIER, PROVIDER, made_up, record, starts

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

NAME = "localhost/ortimg-test/warm"
CACHE = "/usr/share/ortimg/warm/cache"
KERNEL = f"{CACHE}/a/0/5f3c81"
USER = "12345:54321"
LIMIT = 60  # seconds for a container


@pytest.fixture(scope="module")
def sha256(engine: Engine, real_cell: RealCell) -> str:
    path = f"/opt/onnxruntime/current/lib/{PROVIDER}"
    return engine.file_hashes(real_cell.reference, [path])[path]


Warm = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def warm(real_cell: RealCell, sha256: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """`ortimg warm --from` of a made-up folder; what it says as JSON. `read_only`: what its driver needs."""
    made = []

    def call(
        name: str, *words: str, reference: str = real_cell.reference, read_only: bool = True
    ) -> dict[str, Any]:
        changes = {"libraries": {PROVIDER: sha256}, "attempts": starts(read_only)}
        folder = made_up(tmp_path_factory.mktemp(name) / "out", **changes)
        tag = f"{NAME}:{os.getpid()}-{name}"
        made.append(tag)
        done = ortimg("warm", reference, "--from", str(folder), "--tag", tag, "--json", *words)
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    yield call
    subprocess.run(["docker", "image", "rm", "-f", *made], capture_output=True, check=False)


@pytest.fixture(scope="module")
def plain(warm: Warm) -> str:
    return str(warm("plain")["image"])


@pytest.fixture(scope="module")
def seeded(warm: Warm) -> str:
    return str(warm("seeded", "--seed")["image"])


@pytest.fixture(scope="module")
def copying(warm: Warm) -> dict[str, Any]:
    """Made of a record whose driver must write, without a word on the entrypoint."""
    return warm("copying", read_only=False)


def run(engine: Engine, image: str, script: str, **options: Any) -> RunResult:
    """A shell script as any user, in a root that cannot be written to, without HOME."""
    settings: dict[str, Any] = {"user": USER, "read_only": True, "cap_drop": ["ALL"]} | options
    return engine.run(image, ["sh", "-c", script], limit=LIMIT, **settings)


def test_one_layer_more_and_the_others_are_the_images_own(
    engine: Engine, real_cell: RealCell, plain: str, seeded: str
) -> None:
    before, after = engine.inspect(real_cell.reference), engine.inspect(plain)
    assert before is not None
    assert after is not None
    assert after.layers[:-1] == before.layers
    assert set(before.env) < set(after.env)
    assert (after.user, after.entrypoint, after.command) == (before.user, before.entrypoint, before.command)
    assert before.labels.items() <= after.labels.items()
    assert after.labels["ortimg.warm.from"] == before.id
    assert after.labels["ortimg.warm.driver"] == "580.159.04"
    with_entrypoint = engine.inspect(seeded)
    assert with_entrypoint is not None
    assert with_entrypoint.layers[:-1] == before.layers
    assert with_entrypoint.entrypoint == ("/usr/local/bin/ortimg-seed", *before.entrypoint)
    assert with_entrypoint.command == before.command


def test_the_same_record_makes_the_same_image(engine: Engine, warm: Warm, plain: str) -> None:
    subprocess.run(["docker", "image", "rm", plain], check=True, capture_output=True)
    first, second = (engine.inspect(warm("plain")["image"]) for _ in range(2))
    assert first is not None
    assert first == second


def test_anyone_can_read_it_and_nobody_write(engine: Engine, plain: str) -> None:
    script = f"""
        set -eu
        test "$CUDA_CACHE_PATH" = {CACHE}
        grep -q 'MADE UP' {KERNEL}
        for file in $(find {CACHE}); do test "$(stat -c %u:%g "$file")" = 0:0; done
        ! touch {CACHE}/new 2>/dev/null
    """
    for options in ({"read_only": False}, {"read_only": True}, {"user": "0:0", "read_only": True}):
        result = run(engine, plain, script, **options)
        assert result.exit_code == 0, result.stderr


def test_nothing_else_is_changed(engine: Engine, plain: str) -> None:
    """The folders above the cache are as in the image, and its own check passes."""
    result = run(
        engine, plain, "stat -c '%a %u:%g %n' / /usr /usr/share /usr/share/ortimg; ort-verify --tier static"
    )
    assert result.exit_code == 0, result.stderr
    for folder in ("/", "/usr", "/usr/share", "/usr/share/ortimg"):
        assert f"755 0:0 {folder}\n" in result.stdout


GROWS = (
    'grep -q "MADE UP" "$CUDA_CACHE_PATH/a/0/5f3c81" && : >"$CUDA_CACHE_PATH/new" && echo "$CUDA_CACHE_PATH"'
)


@pytest.mark.parametrize(
    ("tmpfs", "environment", "place"),
    [
        ({"/tmp": ""}, {}, "/tmp/"),
        ({"/tmp": "", "/here": "mode=1777"}, {"TMPDIR": "/here"}, "/here/"),
        ({"/tmp": "", "/here": "mode=1777"}, {"XDG_CACHE_HOME": "/here"}, "/here/"),
        ({"/tmp": "", "/mine": "mode=1777"}, {"CUDA_CACHE_PATH": "/mine"}, "/mine/"),
        ({}, {}, "/dev/shm/"),
        ({"/tmp": "", "/mine": "mode=1777,size=4k"}, {"CUDA_CACHE_PATH": "/mine"}, "/tmp/"),  # no room there
    ],
)
def test_the_entrypoint_lets_the_cache_grow(
    engine: Engine, seeded: str, tmpfs: Mapping[str, str], environment: Mapping[str, str], place: str
) -> None:
    result = run(engine, seeded, GROWS, tmpfs=tmpfs, environment=environment)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(place)
    moved = "CUDA_CACHE_PATH" in environment and not place.startswith("/mine")
    assert bool(result.stderr) is moved, result.stderr


def test_where_nothing_can_be_written_the_image_s_cache_serves(engine: Engine, seeded: str) -> None:
    script = 'echo "$CUDA_CACHE_PATH"; cat "$CUDA_CACHE_PATH/a/0/5f3c81" >/dev/null'
    result = run(engine, seeded, script, ipc_mode="none")  # no /dev/shm
    assert (result.exit_code, result.stdout) == (0, f"{CACHE}\n")
    assert result.stderr.count("\n") == 1
    assert "no place to write to" in result.stderr


def test_where_the_driver_must_write_the_image_copies_by_itself(
    engine: Engine, copying: dict[str, Any], plain: str, seeded: str
) -> None:
    assert copying["seeded"] is True
    made, with_wish, without = (engine.inspect(name) for name in (copying["image"], seeded, plain))
    assert made is not None
    assert with_wish is not None
    assert without is not None
    assert made.entrypoint == with_wish.entrypoint != without.entrypoint
    assert (made.labels["ortimg.warm.use"], without.labels["ortimg.warm.use"]) == ("writable", "read-only")
    result = run(engine, copying["image"], GROWS, tmpfs={"/tmp": ""})
    assert (result.exit_code, result.stderr) == (0, "")


def test_where_it_must_and_cannot_write_the_cost_is_said(engine: Engine, copying: dict[str, Any]) -> None:
    result = run(engine, copying["image"], 'echo "$CUDA_CACHE_PATH"', ipc_mode="none")
    assert (result.exit_code, result.stdout) == (0, f"{CACHE}\n")
    assert "kernels will be compiled again at each start" in result.stderr


def test_an_image_that_would_compile_at_each_start_is_not_made(
    engine: Engine, real_cell: RealCell, sha256: str, tmp_path: Path
) -> None:
    folder, tag = made_up(tmp_path / "out", libraries={PROVIDER: sha256}), f"{NAME}:{os.getpid()}-none"
    done = ortimg("warm", real_cell.reference, "--from", str(folder), "--tag", tag, "--no-seed")
    assert (done.returncode, done.stdout) == (1, "")
    assert "would compile at each start" in done.stderr
    assert "Leave --no-seed out" in done.stderr
    assert engine.inspect(tag) is None


def test_the_entrypoint_passes_words_signals_and_codes_on(engine: Engine, seeded: str) -> None:
    words = engine.run(seeded, ["sh", "-c", 'echo "$1|$2|$$"; exit 7', "sh", "a b", "*"], limit=LIMIT)
    assert (words.exit_code, words.stdout) == (7, "a b|*|1\n")  # it is process 1, so it gets the signals
    assert engine.run(seeded, [], limit=LIMIT).exit_code == 0  # the image's own command


def test_a_copy_is_used_again_and_somebody_elses_is_not(engine: Engine, seeded: str) -> None:
    script = f"""
        set -eu
        once=$CUDA_CACHE_PATH
        touch "$once/kept"
        CUDA_CACHE_PATH={CACHE} ortimg-seed sh -c 'test -e "$CUDA_CACHE_PATH/kept"'
        rm -rf "$once" && mkdir /tmp/evil && : >/tmp/evil/kernel && ln -s /tmp/evil "$once"
        CUDA_CACHE_PATH={CACHE} ortimg-seed sh -c 'grep -q "MADE UP" "$CUDA_CACHE_PATH/a/0/5f3c81"'
        test "$(ls /tmp/evil)" = kernel
    """
    result = run(engine, seeded, script, tmpfs={"/tmp": ""})
    assert result.exit_code == 0, result.stderr


def test_a_limit_that_is_too_small_is_raised(engine: Engine, seeded: str) -> None:
    result = run(engine, seeded, 'echo "$CUDA_CACHE_MAXSIZE"', environment={"CUDA_CACHE_MAXSIZE": "1024"})
    assert result.stdout == "4294967296\n"
    assert "CUDA_CACHE_MAXSIZE was 1024" in result.stderr


def test_a_cache_that_is_switched_off_stays_off(engine: Engine, seeded: str) -> None:
    result = run(engine, seeded, 'echo "$CUDA_CACHE_PATH"', environment={"CUDA_CACHE_DISABLE": "1"})
    assert (result.stdout, result.stderr) == (f"{CACHE}\n", "")


def test_an_image_that_stands_on_a_cell_is_warmed_too(
    engine: Engine, warm: Warm, real_cell: RealCell, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(
        f'FROM {real_cell.reference}\nENTRYPOINT ["env", "A=1"]\nCMD ["env"]\nUSER 999\n'
    )
    name = f"{NAME}:{os.getpid()}-mine"
    subprocess.run(["docker", "build", "-q", "-t", name, tmp_path], check=True, capture_output=True)
    try:
        image = str(warm("of-mine", "--seed", reference=name)["image"])
        done = engine.run(image, [], limit=LIMIT, read_only=True)
        assert "A=1\n" in done.stdout
        assert f"CUDA_CACHE_PATH={CACHE}\n" not in done.stdout  # a copy, in /dev/shm
    finally:
        subprocess.run(["docker", "image", "rm", "-f", name], capture_output=True, check=False)


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"identifier": "1.18.0-cuda12.2-cudnn8-debian12"}, 1, "which has other kernels"),
        ({"libraries": {PROVIDER: "cd" * 32}}, 1, "another build"),
        ({"attempts": []}, 1, "no start without a cache"),
        ({"schema": 9}, 1, "schema 9"),
    ],
)
def test_a_record_that_does_not_fit_makes_no_image(
    engine: Engine, real_cell: RealCell, tmp_path: Path, changes: dict[str, Any], code: int, words: str
) -> None:
    folder, tag = made_up(tmp_path / "out", **changes), f"{NAME}:{os.getpid()}-none"
    done = ortimg("warm", real_cell.reference, "--from", str(folder), "--tag", tag)
    assert (done.returncode, words in done.stderr, done.stdout) == (code, True, "")
    assert "Traceback" not in done.stderr
    assert engine.inspect(tag) is None
    assert not (folder / "image").exists()


def test_what_cannot_be_warmed_is_refused(
    real_cell: RealCell, plain: str, sha256: str, tmp_path: Path
) -> None:
    folder = str(made_up(tmp_path / "out", libraries={PROVIDER: sha256}))
    for reference, code, words in (
        (real_cell.base, 2, "no label ortimg.identifier"),
        (plain, 2, "is warmed already"),
        ("localhost/no/such:image", 3, "the engine has no image"),
    ):
        done = ortimg("warm", reference, "--from", folder)
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    limited = ortimg("warm", real_cell.reference, "--from", folder, "--max-size", "1K")
    assert (limited.returncode, "would be thrown out" in limited.stderr) == (2, True)
    assert record()["identifier"] == IDENTIFIER  # what the folder is of


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU: see tests/gpu")
def test_without_a_gpu_it_is_the_machines_fault(real_cell: RealCell, plain: str, tmp_path: Path) -> None:
    done = ortimg("warm", real_cell.reference, "--out", str(tmp_path / "out"))
    assert (done.returncode, "gives no GPU to a container" in done.stderr) == (3, True), done.stderr
    assert not (tmp_path / "out").exists()
    checked = ortimg("warm", "--check", plain)
    assert (checked.returncode, "no NVIDIA driver answers" in checked.stderr) == (3, True), checked.stderr
