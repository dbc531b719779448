"""`ortimg doctor` as people call it, on what they hand in. This machine itself is not judged here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ortimg.cli import cli

LOGS = Path(__file__).parent / "logs"
PROFILES = Path(__file__).parents[1] / "docker" / "profiles"


def doctor(*words: str | Path, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["doctor", *map(str, words)], input=text)


def test_a_log_is_judged_alone_in_the_shape_of_the_design() -> None:
    done = doctor("--log", LOGS / "no-cublas.txt", "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert (report["schema"], report["verdict"]) == (1, "fail")
    assert [set(row) - {"machine"} for row in report["findings"]] == [
        {"check", "verdict", "evidence", "cure"}
    ] * len(report["findings"])
    assert report["findings"][0]["check"] == "log.library-not-found"


def test_an_engine_without_gpus_is_the_machines_fault() -> None:
    text = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
    done = doctor("--log", "-", "--json", text=text)
    assert done.exit_code == 3
    assert json.loads(done.stdout)["verdict"] == "environment"


def test_noise_passes() -> None:
    done = doctor("--log", LOGS / "noise.txt")
    assert done.exit_code == 0
    assert "noise" in done.stdout
    assert "no fault found" in done.stdout


def test_the_worst_comes_last_with_its_cure() -> None:
    lines = doctor("--log", LOGS / "no-cublas.txt").stdout.splitlines()
    assert "log.library-not-found" in lines[-3]
    assert "cure:" in lines[-2]
    assert "1 fault found" in lines[-1]


@pytest.mark.parametrize(("share", "code"), [((), 1), (("--cuda-share", "40"), 0)])
def test_a_profile(share: tuple[str, ...], code: int) -> None:
    done = doctor("--profile", PROFILES / "1.16.2-three-of-five-on-the-cpu.json", *share)
    assert done.exit_code == code
    assert "2 of 5 nodes" in done.stdout


def test_a_copy_of_maps(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "7f00-7f01 r-xp 00000000 08:01 1    /usr/local/cuda/compat/libcuda.so.550.54.14\n"
        "7f02-7f03 r-xp 00000000 08:01 2    /usr/lib/libc.so.6\n7f04-7f05 rw-p 00000000 00:00 0\n"
    )
    done = doctor("--maps", maps)
    assert done.exit_code == 1
    assert "compat/libcuda.so.550.54.14" in done.stdout
    maps.write_text("rubbish\n")
    assert doctor("--maps", maps).exit_code == 2


def test_options_are_judged_by_the_devices_that_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    done = doctor("--option", "device_id=3")
    assert done.exit_code == 3  # as of `ort-verify`: no image is at fault
    assert 'CUDA sees 1 GPU (CUDA_VISIBLE_DEVICES="0")' in done.stdout or "CUDA sees no GPU" in done.stdout


@pytest.mark.parametrize(("name", "words"), [("ABRT", "exit 134 (SIGABRT"), ("SEGV", "exit 139 (SIGSEGV")])
def test_a_program_that_dies(name: str, words: str) -> None:
    done = doctor("--run", "--", "sh", "-c", f"echo the last words >&2; kill -{name} $$")
    assert done.exit_code == 1
    assert words in done.stdout
    assert "last line: the last words" in done.stdout


def test_a_program_that_ends_well() -> None:
    done = doctor("--run", "--", "sh", "-c", "echo fine")
    assert done.exit_code == 0


def test_the_output_of_a_program_is_read_as_a_log() -> None:
    done = doctor("--run", "--", "cat", LOGS / "no-cublas.txt")
    assert done.exit_code == 1
    assert "log.library-not-found" in done.stdout


def test_a_hang_is_named_and_leaves_no_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"setsid sh -c 'echo $$ >>{pids}; exec sleep 1000' & echo $$ >>{pids}; exec sleep 1000"
    done = doctor("--timeout", "2", "--run", "--", "sh", "-c", script)
    assert done.exit_code == 1
    assert "hang: it did not end within 2 s" in done.stdout
    assert len(pids.read_text().split()) == 2
    assert not [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()]


def test_a_program_that_writes_without_end_fills_no_disk() -> None:
    done = doctor("--timeout", "1", "--run", "--", "yes", "the words")
    assert done.exit_code == 1
    assert "last line: the words" in done.stdout


def test_an_environment_that_is_no_text_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.fsdecode(b"/\xff\x07"))
    done = doctor("--here", "--json", "--option", "device_id=0")
    assert "LD_LIBRARY_PATH names /\N{REPLACEMENT CHARACTER}" in done.stdout


def test_an_interrupt_ends_the_program_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = [sys.executable, "-m", "ortimg", "doctor", "--run", "--", "sh", "-c"]
    process = subprocess.Popen(
        [*command, f"echo $$ >{pids}; exec sleep 1000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    while not (pids.exists() and pids.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert not Path(f"/proc/{pids.read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run",), "--run needs a program"),
        (("--run", "--", "/never/there"), "cannot be run"),
        (("--driver", "new"), "no driver version"),
        (("one", "two"), "one TARGET at a time"),
        (("",), "an empty TARGET"),
        (("./never",), "is not there"),
        (("/proc",), "is no root file system"),
        (("/etc/passwd",), "is no folder"),
        (("--pid", "4194304"), "cannot be seen"),
        (("--log", "/never"), "cannot be read"),
        (("--option", "gpu_mem_limit"), "KEY=VALUE"),
        (("--program", "/etc/passwd"), "no ELF program"),
        (("--profile", "/etc/passwd"), "no profile"),
        (("--pid", "1", "image"), "--pid goes without TARGET"),
        (("--profile", "one.json", "other.json"), "other.json is a file: TARGET is an image or a folder"),
    ],
)
def test_wrong_usage_is_told_in_a_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    for name in ("one.json", "other.json"):
        (tmp_path / name).write_text("[]")
    command = [sys.executable, "-m", "ortimg", "doctor", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_is_seen_with_its_own_environment() -> None:
    environment = os.environ | {"LD_LIBRARY_PATH": "/never/there", "CUDA_VISIBLE_DEVICES": "-1"}
    with subprocess.Popen(["sleep", "100"], env=environment) as process:
        done = doctor("--pid", str(process.pid), "--json")
        process.kill()
    said = {row["check"]: row["evidence"] for row in json.loads(done.stdout)["findings"]}
    assert "/never/there" in said["path.missing"]
    assert 'CUDA_VISIBLE_DEVICES="-1"' in said["device.visible"]
