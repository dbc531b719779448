"""A build of the real cell FAILS, with the right name in its last lines, whatever is taken from it."""

from __future__ import annotations

import shutil
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from real import CUDA, LDCONFIG, MARK, ORT, ROOT, VERIFY, RealCell, before_ldconfig, changed, compile_library

from ortimg.data import read_catalogue
from ortimg.engine.buildx import BuildOutcome
from ortimg.factory.steps import VERIFY_STEP
from ortimg.inputs.cache import Cache
from ortimg.inputs.wheels import cached_wheel, fetch_wheel

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

PROVIDER = "libonnxruntime_providers_cuda.so"
SHARED = "libonnxruntime_providers_shared.so"
CUDNN_PARTS = ("ops_infer", "cnn_infer", "adv_infer", "ops_train")


def remove(*paths: str) -> str:
    return f"RUN --network=none : {MARK}; rm {' '.join(paths)}"


def last_lines(outcome: BuildOutcome, count: int = 5) -> str:
    """The end of what a person sees of a build that the verifier failed."""
    assert not outcome.ok
    failure = outcome.failure
    assert failure is not None
    assert VERIFY_STEP.search(failure.step or ""), str(failure)
    assert failure.exit_code == 1, str(failure)
    assert not failure.environment
    assert "ort-verify: FAIL, tier load" in failure.last_lines, str(failure)
    text = "\n".join(failure.last_lines[-count:])
    assert "cure: " in text
    return text


def test_the_unchanged_dockerfile_passes(real_cell: RealCell, tmp_path: Path) -> None:
    assert real_cell.build(real_cell.dockerfile, tmp_path).ok


NEEDED = (
    "libcufft.so.10",
    "libcudnn.so.8",
    "libcublas.so.11",
    "libcublasLt.so.11",
    "libcurand.so.10",
    "libcudart.so.11.0",
)


@pytest.mark.parametrize("library", NEEDED)
def test_a_missing_library_is_named(real_cell: RealCell, tmp_path: Path, library: str) -> None:
    dockerfile = before_ldconfig(real_cell.dockerfile, remove(f"{CUDA}/{library}"))
    text = last_lines(real_cell.build(dockerfile, tmp_path))
    assert f"{library} not found, needed by {PROVIDER}: not in this image" in text


@pytest.mark.parametrize("part", CUDNN_PARTS)
def test_a_missing_part_of_cudnn_is_named(real_cell: RealCell, tmp_path: Path, part: str) -> None:
    """ORT itself notices none of them: it asks cuDNN for nothing before it has a device."""
    library = f"libcudnn_{part}.so.8"
    dockerfile = before_ldconfig(real_cell.dockerfile, remove(f"{CUDA}/{library}"))
    text = last_lines(real_cell.build(dockerfile, tmp_path))
    assert f"{library} not found, needed by libcudnn.so.8, which opens it when it is used" in text


@pytest.mark.parametrize("name", [SHARED, PROVIDER])
def test_a_missing_provider_is_named(real_cell: RealCell, tmp_path: Path, name: str) -> None:
    dockerfile = before_ldconfig(real_cell.dockerfile, remove(f"{ORT}/{name}"))
    text = last_lines(real_cell.build(dockerfile, tmp_path))
    assert f"{name} missing in {ORT}" in text


def test_without_the_line_of_cuda_in_ld_so_conf(real_cell: RealCell, tmp_path: Path) -> None:
    heredoc = "/opt/onnxruntime/current/lib\n"
    dockerfile = changed(real_cell.dockerfile, f"{heredoc}{CUDA}\n", heredoc)
    text = last_lines(real_cell.build(dockerfile, tmp_path))
    assert f"no file of /etc/ld.so.conf.d names {CUDA}" in text


def test_without_the_ldconfig_run(real_cell: RealCell, tmp_path: Path) -> None:
    text = last_lines(real_cell.build(changed(real_cell.dockerfile, LDCONFIG, ""), tmp_path))
    assert "ldconfig has not run" in text


@pytest.fixture(scope="module")
def cublas12(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with NVIDIA's libcublas.so.12, from the wheel of the catalogue's CUDA 12.2 set."""
    row = next(row for row in read_catalogue().cuda_sets if row.key == "12.2-cudnn8")
    wheel = next(wheel for wheel in row.wheels if wheel.filename.startswith("nvidia_cublas"))
    cache = Cache.default()
    entry = cached_wheel(cache, wheel.filename, wheel.sha256) or fetch_wheel(
        cache, wheel.requirement, wheel.filename, wheel.sha256, wheel.size, stop=threading.Event()
    )
    folder = tmp_path_factory.mktemp("cublas12")
    with zipfile.ZipFile(cache.path(entry)) as archive:
        member = archive.getinfo("nvidia/cublas/lib/libcublas.so.12")
        member.filename = "libcublas.so.12"
        archive.extract(member, folder)
    yield folder
    shutil.rmtree(folder)  # 106 MB


SWAPS = {
    "beside its place": f"cp /new/libcublas.so.12 {CUDA}/",
    "under the old name": f"cp /new/libcublas.so.12 {CUDA}/libcublas.so.11",
    "linked": f"cp /new/libcublas.so.12 {CUDA}/ && ln -s libcublas.so.12 {CUDA}/libcublas.so.11",
}


@pytest.mark.parametrize("how", SWAPS)
def test_cublas_of_another_major_is_named(
    real_cell: RealCell, cublas12: Path, tmp_path: Path, how: str
) -> None:
    mount = f"--network=none --mount=type=bind,from={MARK},target=/new"
    line = f"RUN {mount} : {MARK}; rm {CUDA}/libcublas.so.11 && {SWAPS[how]}"
    outcome = real_cell.build(before_ldconfig(real_cell.dockerfile, line), tmp_path, {MARK: str(cublas12)})
    text = last_lines(outcome)
    assert "libcublas.so.11" in text
    assert "libcublas.so.12" in text


# A driver that goes wrong when CUDA's run time calls it: the real one of ortimg with one line changed.
STUB = (ROOT / "ortimg" / "verify" / "stub" / "libcuda.c").read_text()
NO_DEVICE = "static CUresult no_device(void) { return CUDA_ERROR_NO_DEVICE; }"
ENDINGS = {
    "abort(); return 0;": "crash: exit 134 (SIGABRT)",
    "return *(volatile int *)0;": "crash: exit 139 (SIGSEGV)",
    "_exit(0); return 0;": "exit 0",
    "for (;;) pause(); return 0;": "hang: it did not end within 3 s and was stopped",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_crash_is_a_failure_with_its_cause(real_cell: RealCell, tmp_path: Path, ending: str) -> None:
    stub = tmp_path / "stub"
    source = changed(STUB, NO_DEVICE, f"static CUresult no_device(void) {{ {ending} }}")
    compile_library(source, stub / "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
    dockerfile = changed(real_cell.dockerfile, VERIFY, VERIFY.replace("--stub", "--timeout 3 --stub"))
    text = last_lines(real_cell.build(dockerfile, tmp_path, {"cuda-stub": str(stub)}))
    assert f'load.session: {ENDINGS[ending]} at "' in text
