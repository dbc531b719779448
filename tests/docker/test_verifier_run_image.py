"""Tier run of an image by a real engine, on the stub world with a GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_world import make_run_world
from stub_world import NVIDIA

from ortimg.core.gpu_access import Device, Way
from ortimg.core.model import Tier
from ortimg.engine.client import Engine
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.verify import image as verify_image_module
from ortimg.verify.binary import Verifier
from ortimg.verify.image import verify_image
from ortimg.verify.report import RunReport, Verdict
from ortimg.verify.wish import Provider, RunWish

MODEL = Path(verify_image_module.__file__).parent / "model" / "verify.onnx"

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("world")
    world = make_run_world(folder / "root")
    with tarfile.open(folder / "root.tar", "w") as tar:
        tar.add(world.root, ".")
    name = f"localhost/ortimg-test/run:{os.getpid()}"
    changes = [f"ENV {key}={value}" for key, value in NVIDIA.items()]
    Engine().import_root(folder / "root.tar", name, [*changes, "USER 1234:1234"])
    yield name
    subprocess.run(["docker", "image", "rm", "-f", name], capture_output=True, check=False)


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU: see tests/gpu")
def test_an_engine_without_a_gpu_is_the_environments_fault(image: str, verifier: Verifier) -> None:
    """`could not select device driver "" with capabilities: [[gpu]]`."""
    with pytest.raises(EnvironmentFault, match="gives no GPU to a container") as caught:
        verify_image(Engine(), image, Tier.RUN, verifier)
    assert "NVIDIA Container Toolkit" in str(caught.value)
    left = subprocess.run(
        ["docker", "ps", "-aq", "--filter", f"ancestor={image}"], capture_output=True, text=True
    )
    assert left.stdout == ""


@pytest.fixture
def without_device_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub world brings its GPU along: all but the request for one is as in a real run."""
    whole = verify_image_module._with_gpu

    def rest(way: Way, device: Device) -> dict[str, object]:
        return {key: value for key, value in whole(way, device).items() if key != "device_requests"}

    monkeypatch.setattr(verify_image_module, "_with_gpu", rest)


@pytest.mark.usefixtures("without_device_request")
def test_a_run_in_a_read_only_container_as_any_user(image: str, verifier: Verifier, tmp_path: Path) -> None:
    shutil.copy(MODEL, tmp_path / "net.onnx")  # the stub library does not look at it
    wish = RunWish(model=tmp_path / "net.onnx", shapes=("image=2x3x4x8",))
    with pytest.raises(ConfigError, match=r"net\.onnx: Permission denied for uid 1234"):
        verify_image(Engine(), image, Tier.RUN, verifier, wish=wish)  # pytest's folders are private
    tmp_path.chmod(0o755)
    report = verify_image(Engine(), image, Tier.RUN, verifier, wish=wish)
    assert report.verdict is Verdict.PASS, report.failures
    assert isinstance(report.run, RunReport)
    assert (report.run.model, report.run.inputs[0].shape) == ("net.onnx", "2x3x4x8")
    assert report.run.nodes is not None


@pytest.mark.usefixtures("without_device_request")
def test_which_device_is_passed_on(image: str, verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    report = verify_image(Engine(), image, Tier.RUN, verifier, wish=RunWish(options=("device_id=7",)))
    assert report.verdict is Verdict.ENVIRONMENT
    assert any('CUDA_VISIBLE_DEVICES is "0"' in finding.evidence for finding in report.findings)


@pytest.mark.usefixtures("without_device_request")
def test_a_wrong_wish_is_wrong_usage(image: str, verifier: Verifier) -> None:
    with pytest.raises(ConfigError, match="no such option"):
        verify_image(Engine(), image, Tier.RUN, verifier, wish=RunWish(options=("nope=1",)))


def test_any_user_saves_outputs_without_a_gpu(image: str, verifier: Verifier, tmp_path: Path) -> None:
    """`--provider cpu` asks for no GPU; the folder is written by the image's user, then as it was."""
    saved = tmp_path / "saved"
    wish = RunWish(provider=Provider.CPU, save_outputs=saved)
    report = verify_image(Engine(), image, Tier.RUN, verifier, wish=wish)
    assert (report.tier, report.verdict) == (Tier.LOAD, Verdict.PASS), report.failures
    assert {path.name for path in saved.iterdir()} >= {"tensors.json", "output-000-out.npy"}
    assert {path.stat().st_uid for path in saved.iterdir()} == {1234}
    assert saved.stat().st_mode & 0o022 == 0
    again = verify_image(
        Engine(), image, Tier.RUN, verifier, wish=RunWish(provider=Provider.CPU, reference=saved)
    )
    assert isinstance(again.run, RunReport)
    assert again.run.reference is not None
    assert again.run.reference.largest_relative_error == 0
