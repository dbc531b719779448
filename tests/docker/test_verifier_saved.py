"""Runs that are held against each other, and runs without a GPU: in a stub world, without an engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from run_world import make_run_world
from stub_world import NEEDS_ROOT, World

from ortimg.core.model import Tier
from ortimg.errors import ConfigError
from ortimg.verify.binary import Verifier
from ortimg.verify.report import Finding, FindingVerdict, Report, RunReport, Verdict
from ortimg.verify.root import verify_root
from ortimg.verify.run_report import Reference
from ortimg.verify.wish import Provider, RunWish

pytestmark = NEEDS_ROOT


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_run_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


def run(world: World, verifier: Verifier, **wish: object) -> Report:
    return verify_root(world.root, Tier.RUN, verifier, None, RunWish(**wish))  # type: ignore[arg-type]


def said(report: Report, check: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.check == check]
    return finding


def numbers(report: Report) -> RunReport:
    assert isinstance(report.run, RunReport)
    return report.run


def reference(report: Report) -> Reference:
    found = numbers(report).reference
    assert found is not None
    return found


def test_what_is_saved_is_what_numpy_reads(world: World, verifier: Verifier, tmp_path: Path) -> None:
    place = tmp_path / "saved"
    report = run(world, verifier, save_outputs=place, shapes=("image=2x3x4x8",))
    assert report.verdict is Verdict.PASS, report.failures
    index = json.loads((place / "tensors.json").read_text())
    assert (index["schema"], index["ort"], index["provider"]) == (1, "1.22.0", "cuda")
    (given,), (got,) = index["inputs"], index["outputs"]
    assert (given["name"], given["type"], given["shape"]) == ("image", "float", [2, 3, 4, 8])
    image, out = np.load(place / given["file"]), np.load(place / got["file"])
    assert (image.dtype, image.shape, out.dtype) == (np.float32, (2, 3, 4, 8), np.float32)
    assert len(np.unique(image)) > 100
    assert out.tolist() == [0.5] * 4


def test_the_same_outputs_pass(sound: World, verifier: Verifier, tmp_path: Path) -> None:
    run(sound, verifier, save_outputs=tmp_path)
    report = run(sound, verifier, reference=tmp_path)
    assert report.verdict is Verdict.PASS, report.failures
    found = reference(report)
    assert (found.ort, found.provider, found.tf32) == ("1.22.0", "cuda", False)
    assert (found.limit, found.largest_relative_error) == (1e-3, 0.0)
    assert [(one.name, one.relative_error) for one in found.outputs] == [("out", 0.0)]


@pytest.mark.parametrize(("output", "good"), [("0.5004", True), ("0.5006", False), ("nan", False)])
def test_the_limit_of_the_reference(
    world: World, verifier: Verifier, tmp_path: Path, output: str, good: bool
) -> None:
    """On the CPU the stub gives 0.5, so only the reference can tell."""
    world.write("/etc/fake/cuda-output", output)
    run(world, verifier, save_outputs=tmp_path / "saved")
    report = run(world, verifier, provider=Provider.CPU, reference=tmp_path / "saved")
    assert (said(report, "run.reference").verdict is FindingVerdict.OK) is good
    assert (report.verdict is Verdict.PASS) is good
    error = reference(report).largest_relative_error
    assert (error is None) is (output == "nan")


def test_other_inputs_are_not_compared(sound: World, verifier: Verifier, tmp_path: Path) -> None:
    run(sound, verifier, save_outputs=tmp_path)
    report = run(sound, verifier, reference=tmp_path, shapes=("image=2x3x4x8",))
    assert "image: float 2x3x4x8 here, float 1x3x1x8 there" in said(report, "run.reference").evidence
    assert report.verdict is Verdict.FAIL
    np.save(tmp_path / "input-000-image.npy", np.ones((1, 3, 1, 8), np.float32))
    report = run(sound, verifier, reference=tmp_path)
    assert "image: other numbers" in said(report, "run.reference").evidence


def test_outputs_that_one_side_lacks_fail(sound: World, verifier: Verifier, tmp_path: Path) -> None:
    run(sound, verifier, save_outputs=tmp_path)
    index = json.loads((tmp_path / "tensors.json").read_text())
    index["outputs"][0]["name"] = "other"
    (tmp_path / "tensors.json").write_text(json.dumps(index))
    report = run(sound, verifier, reference=tmp_path)
    faults = {one.name: one.fault for one in reference(report).outputs}
    assert faults == {
        "out": "the reference has no such output",
        "other": "only the reference has this output",
    }
    assert report.verdict is Verdict.FAIL


def test_a_cut_file_is_named(sound: World, verifier: Verifier, tmp_path: Path) -> None:
    run(sound, verifier, save_outputs=tmp_path)
    file = tmp_path / "output-000-out.npy"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"output-000-out\.npy is not a whole \.npy file of float 4"):
        run(sound, verifier, reference=tmp_path)


def test_a_folder_that_is_no_reference_is_wrong_usage(
    sound: World, verifier: Verifier, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"holds no tensors\.json"):
        run(sound, verifier, reference=tmp_path)
    (tmp_path / "tensors.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not what --save-outputs writes"):
        run(sound, verifier, reference=tmp_path)


def test_a_run_on_the_cpu_never_reads_as_one_on_a_gpu(
    world: World, verifier: Verifier, tmp_path: Path
) -> None:
    world.path("/usr/lib/libcuda.so.1").unlink()
    world.ldconfig()
    report = run(world, verifier, provider=Provider.CPU, save_outputs=tmp_path / "saved", runs=3)
    assert (report.tier, report.verdict) == (Tier.LOAD, Verdict.PASS), report.findings
    device = said(report, "run.device")
    assert device.verdict is FindingVerdict.SKIPPED
    assert "no GPU was used" in device.evidence
    seen = numbers(report)
    assert (seen.provider, seen.device, seen.nodes, seen.memory) == ("cpu", None, None, None)
    assert seen.runs is not None
    assert seen.runs.count == 3
    assert json.loads((tmp_path / "saved" / "tensors.json").read_text())["provider"] == "cpu"


def test_a_run_on_the_cpu_without_a_stub_driver_tells_tier_static(world: World, verifier: Verifier) -> None:
    world.path("/usr/lib/libcuda.so.1").unlink()
    world.ldconfig()
    command = [verifier.program, "--root", world.root, "--tier", "run", "--provider", "cpu", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["tier"] == "static"


@pytest.mark.parametrize("wish", [{"options": ("device_id=0",)}, {"allow_cpu": ("Det",)}])
def test_words_about_cuda_do_not_go_with_the_cpu(
    sound: World, verifier: Verifier, wish: dict[str, tuple[str, ...]]
) -> None:
    with pytest.raises(ConfigError, match="is about CUDA"):
        run(sound, verifier, provider=Provider.CPU, **wish)
