"""The doctor's checks of libraries and of the loader's path, on systems written down."""

from __future__ import annotations

import pytest
from doctor_facts import CUDA, ORT, PROVIDER, library, loader, one, said, system

from ortimg.core.doctor.cudnn import PARTS, check_cudnn
from ortimg.core.doctor.facts import LibraryFile
from ortimg.core.doctor.libraries import check_libraries
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.ort import check_ort, version_of
from ortimg.core.doctor.paths import check_paths
from ortimg.verify.report import FindingVerdict

WHEEL = "/opt/venv/lib/python3.11/site-packages/nvidia/cudnn/lib"


def test_another_soname_is_named_with_the_wanted_and_the_present_one() -> None:
    there = system(
        library(PROVIDER, "libcublasLt.so.11"), library(f"{CUDA}/libcublasLt.so.12"), cached=[ORT, CUDA]
    )
    finding = one(check_libraries(there, loader(there)), Check.LIBRARY_SONAME)
    assert finding.verdict is FindingVerdict.FAIL
    assert PROVIDER in finding.evidence
    assert "wants libcublasLt.so.11" in finding.evidence
    assert f"{CUDA}/libcublasLt.so.12 with SONAME libcublasLt.so.12" in finding.evidence


def test_a_preloaded_library_does_not_hide_the_wrong_soname() -> None:
    there = system(
        library(PROVIDER, "libcublasLt.so.11"),
        library(f"{CUDA}/libcublasLt.so.12"),
        cached=[ORT, CUDA],
        environment={"LD_PRELOAD": "/opt/hidden/libcublasLt.so.11"},
    )
    assert (
        "LD_PRELOAD has libcublasLt.so.11"
        in one(check_libraries(there, loader(there)), Check.LIBRARY_SONAME).evidence
    )
    assert said(check_paths(there, loader(there)), Check.PATH_PRELOAD)


@pytest.mark.parametrize("wanted", [True, False])
def test_cudnn_in_site_packages_is_present_and_not_on_the_path(wanted: bool) -> None:
    needed = ["libcudnn.so.9"] if wanted else []
    there = system(library(PROVIDER, *needed), library(f"{WHEEL}/libcudnn.so.9"), cached=[ORT])
    finding = one(check_libraries(there, loader(there)), Check.CUDNN_OFF_PATH)
    assert finding.verdict is (FindingVerdict.FAIL if wanted else FindingVerdict.WARNING)
    assert f"present in {WHEEL}, but not on the loader's search path" in finding.evidence
    assert "preload_dlls" in str(finding.cure)


def test_cudnn_on_the_path_is_no_finding() -> None:
    there = system(library(PROVIDER, "libcudnn.so.9"), library(f"{CUDA}/libcudnn.so.9"), cached=[ORT, CUDA])
    assert not said(check_libraries(there, loader(there)), Check.CUDNN_OFF_PATH)


def test_a_library_that_is_nowhere_and_one_that_is_off_the_path() -> None:
    there = system(
        library(PROVIDER, "libcufft.so.11", "libcurand.so.10", "libz.so.1"),
        library("/opt/x/libcurand.so.10"),
        cached=[ORT],
    )
    found = [*check_libraries(there, loader(there))]
    assert said(found, Check.LIBRARY_MISSING) == [f"fail: {PROVIDER} wants libcufft.so.11, which is nowhere"]
    assert "/opt/x" in one(found, Check.LIBRARY_OFF_PATH).evidence


def test_a_cudnn_for_another_cuda_names_both_cublas() -> None:
    there = system(
        library(f"{CUDA}/libcudnn.so.8", "libcublasLt.so.10"),
        library(f"{CUDA}/libcublasLt.so.11"),
        cached=[CUDA],
    )
    finding = one(check_libraries(there, loader(there)), Check.CUDNN_CUBLAS)
    assert "needs libcublasLt.so.10, the loader has libcublasLt.so.11" in finding.evidence


def test_an_empty_library_file_is_told() -> None:
    there = system(LibraryFile("/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", 0))
    assert said(check_libraries(there, loader(there)), Check.LIBRARY_EMPTY)


def cudnn(major: int, *without: str, folder: str = CUDA, version: str = "") -> list[LibraryFile]:
    names = [f"libcudnn.so.{major}", *(f"libcudnn_{part}.so.{major}" for part in PARTS[major])]
    return [
        library(f"{folder}/{name}", real=f"{folder}/{name}{version}") for name in names if name not in without
    ]


@pytest.mark.parametrize(
    ("major", "part"), [(9, "libcudnn_adv.so.9"), (9, "libcudnn_graph.so.9"), (8, "libcudnn_cnn_infer.so.8")]
)
def test_a_missing_part_of_cudnn_is_named(major: int, part: str) -> None:
    there = system(*cudnn(major, part), cached=[CUDA])
    finding = one(check_cudnn(there, loader(there)), Check.CUDNN_PARTS)
    assert finding.verdict is FindingVerdict.FAIL
    assert f"lacks {part}" in finding.evidence


@pytest.mark.parametrize("major", [8, 9])
def test_a_whole_cudnn_is_fine(major: int) -> None:
    there = system(*cudnn(major), cached=[CUDA])
    assert [finding.verdict for finding in check_cudnn(there, loader(there))] == [FindingVerdict.OK]


def test_parts_of_another_cudnn_first_on_the_path_are_mixed() -> None:
    other = library("/opt/old/libcudnn_cnn.so.9")
    there = system(*cudnn(9), other, cached=[CUDA], path="/opt/old")
    assert "two cuDNNs mixed" in one(check_cudnn(there, loader(there)), Check.CUDNN_MIXED).evidence


def test_parts_of_two_versions_in_one_folder_are_mixed() -> None:
    files = cudnn(8, version=".9.6")
    odd = library(f"{CUDA}/libcudnn_cnn_infer.so.8", real=f"{CUDA}/libcudnn_cnn_infer.so.8.9.7")
    there = system(*[odd if odd.path == file.path else file for file in files], cached=[CUDA])
    assert "8.9.6 and 8.9.7" in one(check_cudnn(there, loader(there)), Check.CUDNN_MIXED).evidence


def test_elements_of_the_path_that_do_harm_or_nothing() -> None:
    there = system(library("/opt/x/libcudart.so.12"), path="/usr/local/cuda:/nope::/opt/x", missing=["/nope"])
    found = [*check_paths(there, loader(there))]
    assert "/usr/local/cuda: no .so inside" in said(found, Check.PATH_USELESS)[0]
    assert "/nope, which is missing" in said(found, Check.PATH_MISSING)[0]
    assert "empty element: the loader searches the current directory" in said(found, Check.PATH_EMPTY)[0]
    assert not [one for one in found if "/opt/x" in one.evidence and "no .so" in one.evidence]


@pytest.mark.parametrize(
    ("folders", "order"),
    [
        (
            ["/usr/local/cuda-11.0/lib64", "/usr/local/cuda/lib64"],
            "CUDA 11.0 (/usr/local/cuda-11.0/lib64), then CUDA 12 ",
        ),
        (
            ["/usr/local/cuda-12.1/lib64", "/usr/local/cuda-12.6/lib64"],
            "CUDA 12.1 (/usr/local/cuda-12.1/lib64), then CUDA 12.6 ",
        ),
    ],
)
def test_the_order_of_cuda_folders_is_told(folders: list[str], order: str) -> None:
    names = ["libcudart.so.11.0" if "11.0" in folders[0] else "libcudart.so.12", "libcudart.so.12"]
    there = system(
        *(library(f"{folder}/{name}") for folder, name in zip(folders, names, strict=True)),
        path=":".join(folders),
    )
    finding = one(check_paths(there, loader(there)), Check.PATH_ORDER)
    assert order in finding.evidence
    assert f"put {folders[1]} first" in str(finding.cure)


def test_an_older_libcudart_of_the_same_name_first_is_stale() -> None:
    old, new = "/usr/local/cuda-12.1/lib64", "/usr/local/cuda-12.6/lib64"
    there = system(
        library(f"{old}/libcudart.so.12"), library(f"{new}/libcudart.so.12"), path=old, cached=[new]
    )
    finding = one(check_paths(there, loader(there)), Check.CUDART_STALE)
    assert finding.verdict is FindingVerdict.FAIL
    assert f"{old}/libcudart.so.12 (12.1) before {new}/libcudart.so.12 (12.6)" in finding.evidence
    assert "error 35" in finding.evidence


def test_the_same_libcudart_by_two_names_is_not_stale() -> None:
    real = "/usr/local/cuda-12.6/lib64/libcudart.so.12"
    there = system(
        library("/usr/local/cuda/lib64/libcudart.so.12", real=real),
        library(real),
        path="/usr/local/cuda/lib64",
        cached=["/usr/local/cuda-12.6/lib64"],
    )
    assert not said(check_paths(there, loader(there)), Check.CUDART_STALE)


def test_a_second_copy_of_the_same_version_is_not_stale() -> None:
    one_file, other = (
        library(f"{folder}/libcudart.so.12", real=f"{folder}/libcudart.so.12.6.77") for folder in ("/a", "/b")
    )
    there = system(one_file, other, path="/a", cached=["/b"])
    assert not said(check_paths(there, loader(there)), Check.CUDART_STALE)


def test_a_library_beside_its_asker_is_found_by_the_run_path() -> None:
    asker = library(PROVIDER, "libcufft.so.11", run_path="$ORIGIN")
    there = system(asker, library(f"{ORT}/libcufft.so.11"))
    assert not said(check_libraries(there, loader(there)), Check.LIBRARY_OFF_PATH)


def test_two_onnx_runtimes_are_listed_in_their_order() -> None:
    folders = [f"/opt/onnxruntime/{version}/lib" for version in ("1.17.3", "1.20.1")]
    there = system(
        *(
            library(f"{folder}/libonnxruntime.so", defines=(f"VERS_{folder.split('/')[3]}",))
            for folder in folders
        ),
        path=":".join(folders),
    )
    finding = one(check_ort(there, loader(there)), Check.ORT_TWO)
    assert finding.verdict is FindingVerdict.FAIL
    assert (
        f"{folders[0]}/libonnxruntime.so (1.17.3), then {folders[1]}/libonnxruntime.so (1.20.1)"
        in finding.evidence
    )


def test_one_onnx_runtime_under_three_names_is_one() -> None:
    real = f"{ORT}/libonnxruntime.so.1.22.0"
    names = ("libonnxruntime.so", "libonnxruntime.so.1", "libonnxruntime.so.1.22.0")
    there = system(*(library(f"{ORT}/{name}", real=real) for name in names), cached=[ORT])
    assert one(check_ort(there, loader(there)), Check.ORT_TWO).verdict is FindingVerdict.OK


@pytest.mark.parametrize(
    ("run_path", "bad"),
    [("$ORIGIN", False), ("$ORIGIN:/usr/local/cuda-11.8/lib64:", True), ("lib", True), ("", True)],
)
def test_a_run_path_with_an_empty_element_is_told(run_path: str, bad: bool) -> None:
    there = system(library(f"{ORT}/libonnxruntime.so", run_path=run_path), cached=[ORT])
    assert bool(said(check_ort(there, loader(there)), Check.ORT_RUN_PATH)) is bad


@pytest.mark.parametrize(
    ("glibc", "verdict"), [("2.41", "fail"), ("2.36", "warning"), (None, "warning"), ("2.9", "warning")]
)
def test_an_executable_stack_fails_from_glibc_2_41_on(glibc: str | None, verdict: str) -> None:
    there = system(library(PROVIDER, executable_stack=True), glibc=glibc)
    assert one(check_ort(there, loader(there)), Check.ORT_STACK).verdict.value == verdict


def test_the_cpu_package_over_the_gpu_one_is_told() -> None:
    there = system(
        packages={"/site-packages": ("onnxruntime-1.20.1.dist-info", "onnxruntime_gpu-1.20.1.dist-info")}
    )
    finding = one(check_ort(there, loader(there)), Check.PYTHON_PACKAGES)
    assert finding.verdict is FindingVerdict.FAIL
    assert "onnxruntime 1.20.1 and onnxruntime-gpu 1.20.1" in finding.evidence
    assert "pip uninstall" in str(finding.cure)


@pytest.mark.parametrize(
    ("path", "defines", "version"),
    [
        ("/x/libonnxruntime.so", ("VERS_1.20.1",), "1.20.1"),
        ("/x/libonnxruntime.so.1.17.3", (), "1.17.3"),
        ("/opt/onnxruntime/1.18.0/lib/libonnxruntime.so", (), "1.18.0"),
        ("/x/libonnxruntime.so", (), None),
    ],
)
def test_the_version_of_an_onnx_runtime(path: str, defines: tuple[str, ...], version: str | None) -> None:
    assert version_of(library(path, defines=defines)) == version
