"""`scripts/pin_cuda_set.py`: the row of a new CUDA set, made of its wheels."""

from __future__ import annotations

import zipfile
from pathlib import Path

import measure_cuda_set
import msgspec
import pin_cuda_set
import pytest
from loopback import shared_library
from wishes import CATALOGUE

from ortimg.core.catalogue import parse_catalogue
from ortimg.core.model import CudaSet
from ortimg.data import read_catalogue

# What the catalogue knows of a set besides what its wheels say.
BY_HAND = {"jit_fails": None}


def parsed(text: str) -> CudaSet:
    (row,) = parse_catalogue(b"releases: []", f"cuda_sets:\n{text}".encode(), b"bases: []").cuda_sets
    return row


@pytest.mark.parametrize("row", CATALOGUE.cuda_sets, ids=lambda row: row.key)
def test_a_row_reads_back_as_what_it_is(row: CudaSet) -> None:
    facts = msgspec.structs.replace(row, **BY_HAND)
    assert parsed(pin_cuda_set.row_text(facts, measure_cuda_set.as_yaml(facts.gpu))) == facts


def test_what_pip_is_asked_for() -> None:
    assert pin_cuda_set.requirements("11.8.0", "8.9.6.50") == [
        "cuda-toolkit[cudart,cublas,cufft,curand]==11.8.0",
        "nvidia-cudnn-cu11==8.9.6.50",
    ]
    assert pin_cuda_set.requirements("13.0.2", "9.14.0.64") == [
        "cuda-toolkit[cudart,cublas,cufft,curand,nvrtc]==13.0.2",
        "nvidia-cudnn-cu13==9.14.0.64",
    ]


def test_kinds() -> None:
    assert pin_cuda_set.kind("libnvrtc-builtins.alt.so.13.0") == "libnvrtc-builtins.alt"
    dropped = pin_cuda_set.dropped_kinds(read_catalogue().cuda_sets)
    assert {"libnvblas", "libcufftw", "libOpenCL", "libcudnn_adv_train", "libcudnn_cnn_train"} <= dropped
    assert not {"libcudnn_ops_train", "libcublas", "libcudnn", "libnvrtc"} & dropped


def wheel(folder: Path, filename: str, *members: str) -> Path:
    path = folder / filename
    with zipfile.ZipFile(path, "w") as package:
        for member in members:
            package.writestr(member, shared_library("libc.so.6"))
    return path


def test_a_set_of_wheels(tmp_path: Path) -> None:
    paths = [
        wheel(
            tmp_path,
            "nvidia_cublas_cu12-12.4.5.8-py3-none-manylinux2014_x86_64.whl",
            *("nvidia/cublas/lib/libcublas.so.12", "nvidia/cublas/lib/libnvblas.so.12"),
            *("nvidia/cublas/include/cublas.h", "nvidia/cublas/lib/libcublas_static.a"),
        ),
        wheel(
            tmp_path,
            "nvidia_cuda_runtime-13.0.96-py3-none-manylinux_2_17_x86_64.whl",
            "nvidia/cu13/lib/libcudart.so.13",
        ),
        wheel(tmp_path, "nvidia_nvjitlink_cu12-12.4.127-py3-none-any.whl", "nvidia/nvjitlink/lib/libx.so.12"),
        wheel(tmp_path, "cuda_toolkit-12.4.1-py2.py3-none-any.whl"),
        wheel(
            tmp_path,
            "nvidia_cudnn_cu12-9.1.0.70-py3-none-manylinux2014_x86_64.whl",
            "nvidia/cudnn/lib/libcudnn.so.9",
        ),
    ]
    names = [path.name.split("-")[0] for path in pin_cuda_set.in_order(paths)]
    assert names == ["nvidia_cuda_runtime", "nvidia_cublas_cu12", "nvidia_cudnn_cu12"]
    row = pin_cuda_set.make_row(
        "12.4.1", "9.1.0.70", pin_cuda_set.in_order(paths), CATALOGUE.cuda_sets, tmp_path
    )
    assert (row.key, row.cudnn_version) == ("12.4-cudnn9", "9.1.0.70")
    assert row.libraries == ("libcudart.so.13", "libcublas.so.12", "libcudnn.so.9")
    assert row.wheels[1].dropped == ("libnvblas.so.12",)
    assert row.wheels[1].requirement == "nvidia-cublas-cu12==12.4.5.8"
    assert row.wheels[1].size == paths[0].stat().st_size
