"""ort-verify in image builds and containers of a real engine, on the stub world."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from stub_world import ABORTS, EMPTY, HANGS, NVIDIA, PREFIX, SEGFAULTS, World, make_world

from ortimg.core.model import Tier
from ortimg.engine.client import Engine
from ortimg.errors import EnvironmentFault
from ortimg.verify.binary import Verifier
from ortimg.verify.image import verify_image
from ortimg.verify.report import FindingVerdict, Verdict, parse_report

pytestmark = pytest.mark.engine

DOCKERFILE = """\
FROM scratch
COPY root/ /
COPY verifier/ort-verify /usr/local/bin/
{env}
RUN --network=none --mount=type=bind,source=verifier,target=/run/stub \\
    ["/usr/local/bin/ort-verify", "--tier", "load", "--timeout", "5", \\
     "--stub", "/run/stub/libcuda.so.1", "--report", "/usr/share/ortimg/verify.json"]
CMD ["/usr/local/bin/ort-verify", "--tier", "static"]
"""
UNVERIFIED = "FROM scratch\nCOPY root/ /\n{env}\nCMD []\n"
ENV = "\n".join(f"ENV {key}={value}" for key, value in NVIDIA.items())


@dataclass(frozen=True)
class Build:
    """How a build ended."""

    code: int
    output: str

    @property
    def last(self) -> str:
        """What a person looks at: the end of the step's own words."""
        own = [line for line in self.output.splitlines() if "FAIL  " in line or "cure:" in line]
        return "\n".join(own[-4:])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world") / "root")


@pytest.fixture
def world(sound: World, tmp_path: Path) -> World:
    return sound.copy(tmp_path / "root")


@pytest.fixture
def name() -> Iterator[str]:
    name = f"localhost/ortimg-test/stub:{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["docker", "image", "rm", "-f", name], capture_output=True, check=False)


@pytest.fixture(scope="module")
def image(sound: World, verifier: Verifier) -> Iterator[str]:
    """The sound world, built and verified."""
    name = f"localhost/ortimg-test/stub-sound:{os.getpid()}"
    done = build(sound, verifier, name)
    assert done.code == 0, done.output
    yield name
    subprocess.run(["docker", "image", "rm", "-f", name], capture_output=True, check=False)


def build(world: World, verifier: Verifier, name: str, text: str = DOCKERFILE, env: str = ENV) -> Build:
    context = world.root.parent
    shutil.rmtree(context / "verifier", ignore_errors=True)
    shutil.copytree(verifier.folder, context / "verifier")
    (context / "Dockerfile").write_text(text.format(env=env))
    command = ["docker", "buildx", "build", "--progress", "plain", "--load", "-t", name, str(context)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return Build(done.returncode, done.stdout + done.stderr)


def run(image: str, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = ["docker", "run", "--rm", "--network", "none", *options, image, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def without_ldconfig_and_line(world: World) -> None:
    for path in world.path("/etc/ld.so.conf.d").iterdir():
        path.unlink()
    world.ldconfig()


def without_ldconfig(world: World) -> None:
    world.path("/etc/ld.so.cache").unlink()


def remove(inside: str, *, ldconfig: bool = True) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.path(inside).unlink()
        if ldconfig:
            world.ldconfig()

    return change


def replace(library: str, source: str) -> Callable[[World], None]:
    return lambda world: world.replace(world.cuda(library), source)


def cpu_archive(world: World) -> None:
    world.ort("libonnxruntime_providers_shared.so").unlink()
    world.ort("libonnxruntime_providers_cuda.so").unlink()


CUDA_FOLDER = "/usr/local/cuda-12.2/lib64"
BROKEN = {
    "libcurand.so.10": remove(f"{CUDA_FOLDER}/libcurand.so.10"),
    "libcufft.so.11": remove(f"{CUDA_FOLDER}/libcufft.so.11"),
    "libnvrtc.so.12": remove(f"{CUDA_FOLDER}/libnvrtc.so.12"),
    "libz.so.1": remove("/usr/lib/libz.so.1"),
    "libcublasLt.so.12": remove(f"{CUDA_FOLDER}/libcublasLt.so.12"),
    "libcudnn_cnn.so.9": remove(f"{CUDA_FOLDER}/libcudnn_cnn.so.9"),
    "libonnxruntime.so.1": remove(f"{PREFIX}/lib/libonnxruntime.so.1", ldconfig=False),
    "libonnxruntime.so ": remove(f"{PREFIX}/lib/libonnxruntime.so", ldconfig=False),
    "libonnxruntime_providers_shared.so": remove(f"{PREFIX}/lib/libonnxruntime_providers_shared.so"),
    "CPU archive": cpu_archive,
    "/etc/ld.so.conf.d": without_ldconfig_and_line,
    "ldconfig": without_ldconfig,
    "exit 134": replace("libcufft.so.11", ABORTS),
    "exit 139": replace("libcufft.so.11", SEGFAULTS),
    "hang": replace("libcufft.so.11", HANGS),
}


@pytest.mark.parametrize("word", BROKEN)
def test_a_build_fails_and_its_last_lines_name_the_cause(
    world: World, verifier: Verifier, name: str, word: str
) -> None:
    BROKEN[word](world)
    done = build(world, verifier, name)
    assert done.code != 0
    assert word in done.last, done.output[-3000:]
    assert "cure:" in done.last
    assert Engine().inspect(name) is None


def test_a_hang_leaves_no_process(world: World, verifier: Verifier, name: str) -> None:
    world.replace(world.cuda("libcufft.so.11"), HANGS)
    build(world, verifier, name)
    left = [
        path
        for path in Path("/proc").glob("[0-9]*")
        if _command(path).startswith("/usr/local/bin/ort-verify")
    ]
    assert left == []


def test_the_build_fails_without_the_nvidia_variables(world: World, verifier: Verifier, name: str) -> None:
    done = build(world, verifier, name, env="")
    assert done.code != 0
    assert "NVIDIA_VISIBLE_DEVICES, NVIDIA_DRIVER_CAPABILITIES not set" in done.last


def test_the_stub_is_in_no_layer_and_the_report_is(image: str, tmp_path: Path) -> None:
    with (tmp_path / "image.tar").open("wb") as out:
        container = subprocess.run(
            ["docker", "create", image], capture_output=True, text=True, check=True
        ).stdout.strip()
        try:
            subprocess.run(["docker", "export", container], stdout=out, check=True)
        finally:
            subprocess.run(["docker", "rm", container], capture_output=True, check=True)
    tar = ["tar", "-xOf", tmp_path / "image.tar", "usr/share/ortimg/verify.json"]
    report = subprocess.run(tar, capture_output=True, check=True).stdout
    names = subprocess.run(
        ["tar", "-tf", tmp_path / "image.tar"], capture_output=True, text=True, check=True
    ).stdout
    assert "libcuda.so" not in names
    assert "run/stub" not in names
    assert parse_report(report).verdict is Verdict.PASS
    assert parse_report(report).tier is Tier.LOAD
    assert b"hostname" not in report


ENVIRONMENTS = {
    "root of the file system": (),
    "lib folder": ("-w", f"{PREFIX}/lib"),
    "other user": ("-u", "1234:1234"),
    "read-only": ("--read-only",),
    "harmless LD_LIBRARY_PATH": ("-e", "LD_LIBRARY_PATH=/opt/venv/lib"),
    "no rights": ("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
}


@pytest.mark.parametrize("options", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_the_verdict_does_not_depend_on_where_it_runs(image: str, options: tuple[str, ...]) -> None:
    done = run(image, options=options)
    assert done.returncode == 0, done.stderr
    assert parse_report(done.stdout).verdict is Verdict.PASS


def test_the_verdict_is_the_same_with_an_empty_environment(image: str) -> None:
    done = run(image, "/usr/bin/env", "-i", "/usr/local/bin/ort-verify")
    assert done.returncode == 0, done.stderr
    assert parse_report(done.stdout).verdict is Verdict.PASS


def test_a_preloaded_library_is_told(image: str) -> None:
    done = run(image, options=("-e", f"LD_PRELOAD={CUDA_FOLDER}/libcurand.so.10"))
    (warning,) = [
        finding
        for finding in parse_report(done.stdout).findings
        if finding.verdict is FindingVerdict.WARNING and "LD_PRELOAD" in finding.evidence
    ]
    assert "unset LD_PRELOAD" in str(warning.cure)


def test_a_preloaded_library_does_not_stand_in_for_a_missing_one(
    world: World, verifier: Verifier, name: str
) -> None:
    """The image has it off the loader's path, as pip's wheels do."""
    hidden = "/opt/hidden/libcurand.so.10"
    world.path("/opt/hidden").mkdir(parents=True)
    world.cuda("libcurand.so.10").rename(world.path(hidden))
    world.ldconfig()
    assert build(world, verifier, name, UNVERIFIED).code == 0
    mount = ("-v", f"{verifier.folder}:/run/v:ro", "--entrypoint", "/run/v/ort-verify")
    done = run(name, options=(*mount, "-e", f"LD_PRELOAD={hidden}"))
    report = parse_report(done.stdout)
    said = "\n".join(f"{finding.verdict.value} {finding.evidence}" for finding in report.findings)
    assert f"warning LD_PRELOAD is set: {hidden}" in said, said
    assert report.verdict is Verdict.FAIL
    assert "libcurand.so.10" in report.failures[-1].evidence, said


@pytest.mark.parametrize("folder", ["/", f"{PREFIX}/lib", "/usr/lib"])
def test_a_moved_core_fails_from_every_folder(
    world: World, verifier: Verifier, name: str, folder: str
) -> None:
    for path in world.ort("x").parent.glob("libonnxruntime.so*"):
        path.rename(world.path("/usr/lib") / path.name)
    world.ldconfig()
    assert build(world, verifier, name, UNVERIFIED).code == 0
    mount = ("-v", f"{verifier.folder}:/run/v:ro", "-w", folder, "--entrypoint", "/run/v/ort-verify")
    done = run(name, options=mount)
    assert done.returncode == 1
    assert "the loader takes /lib/libonnxruntime.so.1" in done.stderr


def test_an_image_that_ortimg_did_not_build(world: World, verifier: Verifier, name: str) -> None:
    world.path("/usr/share/ortimg/manifest.json").unlink()
    assert build(world, verifier, name, UNVERIFIED).code == 0
    report = verify_image(Engine(), name, Tier.LOAD, verifier)
    assert report.verdict is Verdict.PASS, report.failures
    assert report.target == name


def test_a_foreign_image_without_the_variables_fails(world: World, verifier: Verifier, name: str) -> None:
    world.path("/usr/share/ortimg/manifest.json").unlink()
    assert build(world, verifier, name, UNVERIFIED, env="").code == 0
    report = verify_image(Engine(), name, Tier.STATIC, verifier)
    assert [finding.check for finding in report.failures] == ["container.environment"]


def test_a_foreign_image_with_a_missing_library_fails(world: World, verifier: Verifier, name: str) -> None:
    world.path("/usr/share/ortimg/manifest.json").unlink()
    world.cuda("libcufft.so.11").unlink()
    assert build(world, verifier, name, UNVERIFIED).code == 0
    report = verify_image(Engine(), name, Tier.LOAD, verifier)
    assert "libcufft.so.11" in report.failures[-1].evidence


def test_an_image_without_glibc_fails(verifier: Verifier, name: str, tmp_path: Path) -> None:
    (tmp_path / "root" / "bin").mkdir(parents=True)
    (tmp_path / "root" / "bin" / "sh").write_text(EMPTY)
    assert build(World(tmp_path / "root"), verifier, name, UNVERIFIED).code == 0
    report = verify_image(Engine(), name, Tier.STATIC, verifier)
    assert "not a glibc system" in report.failures[0].evidence


def test_an_unknown_image_is_the_environments_fault(verifier: Verifier) -> None:
    with pytest.raises(EnvironmentFault, match="no image"):
        verify_image(Engine(), "localhost/ortimg-test/never:1", Tier.STATIC, verifier)


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
