"""The doctor on a machine with a real GPU and driver, and on real errors of ONNX Runtime there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run, Target

pytestmark = pytest.mark.gpu


def doctor(*words: str, text: str | None = None, **env: str) -> tuple[int, dict[str, str], str]:
    """Exit code, the finding of each check, all output."""
    done = subprocess.run(
        [sys.executable, "-m", "ortimg", "doctor", "--json", *words],
        capture_output=True,
        text=True,
        input=text,
        check=False,
        env=os.environ | env,
    )
    if not done.stdout:
        return done.returncode, {}, done.stderr
    rows = json.loads(done.stdout)["findings"]
    return (
        done.returncode,
        {row["check"]: f"{row['verdict']}: {row['evidence']}" for row in rows},
        done.stdout,
    )


@pytest.fixture
def _one_system(target: Target) -> None:
    """The tests of this machine run once, not for each target."""
    first = os.environ.setdefault("ORTIMG_DOCTOR_TESTED", target.name)
    if first != target.name:
        pytest.skip("this machine is looked at once")


@pytest.mark.usefixtures("_one_system")
def test_the_driver_and_the_gpu_of_this_machine_are_told() -> None:
    _, seen, output = doctor()
    assert seen["driver.absent"].startswith("ok: driver "), output


@pytest.mark.usefixtures("_one_system")
@pytest.mark.parametrize("visible", ["-1", "99", "GPU-abc", "", "0,-1", "0,0", "0, 0"])
def test_a_list_that_hides_gpus_is_told(visible: str) -> None:
    code, seen, output = doctor(CUDA_VISIBLE_DEVICES=visible)
    assert "it stops at" in seen["device.visible"], output
    assert code == 3, output


@pytest.mark.usefixtures("_one_system")
def test_a_device_id_that_is_not_there_is_told() -> None:
    code, seen, output = doctor("--option", "device_id=77")
    assert code == 3, output
    assert "device_id=77, and CUDA sees" in seen["device.id"]


@pytest.mark.usefixtures("_one_system")
def test_a_limit_larger_than_the_card_is_told() -> None:
    _, seen, output = doctor("--option", f"gpu_mem_limit={1 << 50}")
    assert "the card has" in seen["option.memory"], output


@pytest.mark.parametrize("visible", ["-1", "99"])
def test_real_errors_of_hidden_gpus_are_known(
    run: Run, monkeypatch: pytest.MonkeyPatch, visible: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    text = "\n".join(finding.evidence for finding in run().findings)
    code, seen, output = doctor("--log", "-", text=text)
    assert code in (1, 3), output
    assert {"log.no-device", "log.device-id"} & set(seen), output


def test_a_real_error_of_a_small_limit_is_known(run: Run) -> None:
    text = run(options=("gpu_mem_limit=4096",)).failures[0].evidence
    code, seen, output = doctor("--log", "-", text=text)
    assert code == 1, output
    assert "gpu_mem_limit is used up" in seen["log.memory-limit"]


def test_an_unpacked_root_passes_with_this_driver(target: Target) -> None:
    if target.root is None:
        pytest.skip("tests/docker looks at images")
    code, seen, output = doctor(str(target.root))
    assert code == 0, output
    assert seen["driver.too-old"].startswith("ok"), output


def test_a_process_on_the_gpu_is_seen_with_its_driver(target: Target) -> None:
    if target.root is None:
        pytest.skip("needs a root")
    code = (
        "import ctypes, time; ctypes.CDLL('libcuda.so.1').cuInit(0); print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        _, seen, output = doctor("--pid", str(process.pid))
        process.kill()
    assert "libcuda.so" in maps
    assert "driver.stub-or-compat" not in seen, output
