"""`scripts/pin_python_wheels.py`: the row of a version, made of what the package index says."""

from __future__ import annotations

import json

import pin_python_wheels
import pytest
from wishes import CATALOGUE

from ortimg.core.catalogue import parse_catalogue
from ortimg.core.model import PythonRelease


@pytest.mark.parametrize("row", CATALOGUE.python_releases, ids=lambda row: row.version)
def test_a_row_reads_back_as_what_it_is(row: PythonRelease) -> None:
    text = f"python_releases:\n{pin_python_wheels.row_text(row)}"
    (parsed,) = parse_catalogue(
        b"releases: []", b"cuda_sets: []", b"bases: []", text.encode()
    ).python_releases
    assert parsed == row


def test_a_lock_is_read_for_this_platform() -> None:
    row = CATALOGUE.python_releases[0]
    names = [(file.filename, file.sha256, file.size) for file in reversed(row.files)]
    names += [
        (f"onnxruntime_gpu-{row.version}-cp311-cp311-win_amd64.whl", "0" * 64, 1),
        (f"onnxruntime_gpu-{row.version}-cp313-cp313t-manylinux_2_28_x86_64.whl", "0" * 64, 1),
    ]
    wheels = ",\n".join(
        f'{{ url = "https://files.example/a/{name}", hash = "sha256:{sha256}", size = {size} }}'
        for name, sha256, size in names
    )
    lock = f'[[package]]\nname = "onnxruntime-gpu"\nversion = {json.dumps(row.version)}\n'
    lock += f"wheels = [\n{wheels}\n]\n"
    assert pin_python_wheels.read_lock(lock, row.cuda_major) == row
