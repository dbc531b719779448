"""`ortimg fit`: which cells run on a host, which not and why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from hosts import CELLS, DRIVERS, FACTS, NAMES, answer, cell, host
from hypothesis import given, settings
from hypothesis import strategies as st
from wishes import CATALOGUE, images, matrix
from wishes import cell as wish

from ortimg.cli import cli
from ortimg.core.drivers import Driver
from ortimg.core.fit import fit, may_fit
from ortimg.core.fit_rules import RANK, Host, Verdict
from ortimg.core.fit_table import fit_table
from ortimg.core.model import Confidence, GpuArchitectures, WheelSource

NATIVE, JIT, UNKNOWN, REFUSED = Verdict.NATIVE, Verdict.JIT, Verdict.UNKNOWN, Verdict.REFUSED


def test_the_classic_question() -> None:
    """Driver 470.82.01 with a T4: CUDA 11.8 runs by minor-version compatibility, CUDA 12 does not."""
    machine = host("470.82.01", "Tesla T4")
    runs = answer(cell("1.16.2", "11.8"), machine)
    assert runs.verdict is NATIVE
    assert runs.reasons == (
        "runs by minor-version compatibility: driver 470.82.01 is older than its own (520.61.05), "
        "and CUDA 11 runs from 450.80.02 on",
    )
    for other in (cell("1.18.0", "12.2"), cell("1.23.2", "12.6")):
        refused = answer(other, machine)
        assert refused.verdict is REFUSED
        assert refused.reasons == (
            f"CUDA {other.cuda_set.cuda} needs driver 525.60.13 or newer, the host has 470.82.01",
        )


@pytest.mark.parametrize(
    ("ort", "cuda", "driver", "gpu", "verdict", "words"),
    [
        ("1.16.2", "11.8", "450.80.02", "T4", NATIVE, "minor-version"),
        ("1.16.2", "11.8", "450.51.05", "T4", REFUSED, "450.80.02 or newer"),
        ("1.16.2", "11.8", "520.61.05", "T4", NATIVE, None),
        ("1.16.2", "11.8", "580.159.04", "H200", JIT, "compiles its kernels at the first start"),  # measured
        ("1.18.0", "12.2", "535.54.03", "H100", JIT, "CUDA_CACHE_PATH"),
        # JIT is outside minor-version compatibility: the driver must be as new as the toolkit of the PTX
        ("1.18.0", "12.2", "525.60.13", "H100", REFUSED, "PTX of CUDA 12.2 takes driver 535.54.03 or newer"),
        ("1.16.2", "11.8", "515.105.01", "H100", REFUSED, "needs driver 520.61.05 or newer"),
        ("1.16.2", "11.8", "580.65.06", "RTX 5090", REFUSED, "CUBLAS_STATUS_EXECUTION_FAILED"),  # measured
        ("1.16.2", "11.8", "580.65.06", "B200", REFUSED, "CUBLAS_STATUS_EXECUTION_FAILED"),
        ("1.23.2", "12.6", "580.65.06", "RTX 5090", UNKNOWN, "was never tried"),
        ("1.24.1", "12.6", "580.65.06", "12.0", UNKNOWN, "was never tried"),
        ("1.24.1", "12.8", "580.65.06", "T4", NATIVE, None),
        ("1.24.1", "12.8", "580.65.06", "H100", NATIVE, None),
        ("1.30.0", "12.8", "580.65.06", "RTX 5090", UNKNOWN, "compute capability 12.0 in libcufft.so.11;"),
        ("1.23.0", "12.6", "580.65.06", "RTX 5090", REFUSED, "portable code for 9.0a"),
        ("1.23.0", "12.6", "580.65.06", "H100", NATIVE, None),
        ("1.23.1", "12.6", "580.65.06", "RTX 5090", UNKNOWN, "probably missing"),
        ("1.30.0", "13.0", "580.65.06", "RTX 5090", NATIVE, None),
        ("1.30.0", "13.0", "580.65.06", "B200", REFUSED, "no code for compute capability 10.0"),
        ("1.30.0", "13.0", "580.65.06", "V100", REFUSED, "no code for compute capability 7.0"),
        ("1.30.0", "13.0", "575.57.08", "T4", REFUSED, "CUDA 13.0 needs driver 580 or newer"),
        ("1.28.0", "13.0", "580.65.06", "B200", NATIVE, None),
        ("1.29.0", "13.0", "580.65.06", "B200", UNKNOWN, "wheel of ONNX Runtime has no code"),
        ("1.16.2", "11.8", "470.256.02", "Tesla K80", REFUSED, "machine code for 6.0, 6.1"),
        # ONNX Runtime has code for it, the set's cuDNN 8.9 does not
        ("1.14.1", "11.8", "470.256.02", "Tesla K80", REFUSED, "no code for compute capability 3.7"),
        ("1.14.1", "11.8", "495.29.05", "Tesla K80", REFUSED, "the last branch for Kepler is 470"),
        ("1.16.2", "11.8", "590.44.01", "V100", REFUSED, "the last branch for Volta is 580"),
        ("1.16.2", "11.8", "590.44.01", "GTX 1080", REFUSED, "the last branch for Pascal is 580"),
        ("1.16.2", "11.8", "580.95.05", "V100", NATIVE, None),
        ("1.16.2", "11.8", "535.104.05", "RTX 4090", NATIVE, None),
        ("1.16.2", "11.8", "470.82.01", "RTX 4090", REFUSED, "needs driver 520.61.05 or newer"),
        ("1.22.0", "12.6", "560.28.03", "L4", NATIVE, None),
        ("1.22.0", "12.6", "580.65.06", "GB200", REFUSED, "Arm processor"),
        ("1.22.0", "12.6", "580.65.06", "Jetson AGX Orin", REFUSED, "Arm processor"),
    ],
)
def test_verdicts(ort: str, cuda: str, driver: str, gpu: str, verdict: Verdict, words: str | None) -> None:
    found = answer(cell(ort, cuda), host(driver, gpu))
    assert found.verdict is verdict, found.reasons
    if words is None:
        assert found.reasons == ()
    else:
        assert words in " | ".join(found.reasons)


def test_what_is_not_told_is_said() -> None:
    without_driver = answer(cell("1.16.2", "11.8"), host(None, "T4"))
    assert without_driver.verdict is NATIVE
    assert without_driver.reasons == ("the driver is not told; CUDA 11.8 needs driver 450.80.02 or newer",)
    without_gpu = answer(cell("1.16.2", "11.8"), host("535.54.03"))
    assert without_gpu.verdict is UNKNOWN
    assert without_gpu.reasons[0].startswith(
        "the GPU is not told; of ONNX Runtime, there is machine code for 6.0"
    )
    needs = answer(cell("1.18.0", "12.2"), host(None, "H100"))
    assert needs.verdict is JIT
    assert needs.reasons[0].endswith("this takes driver 535.54.03 or newer")


def test_a_host_is_as_good_as_its_worst_gpu() -> None:
    found = answer(cell("1.16.2", "11.8"), host("580.65.06", "T4", "RTX 5090"))
    assert found.verdict is REFUSED
    assert answer(cell("1.16.2", "11.8"), host("580.65.06", "T4", "H100")).verdict is JIT


def test_a_driver_known_only_by_libcuda() -> None:
    gpus = (NAMES.find("T4"),)
    assert answer(cell("1.16.2", "11.8"), Host(driver=Driver(None, "11.4"), gpus=gpus)).verdict is NATIVE
    refused = answer(cell("1.18.0", "12.2"), Host(driver=Driver(None, "11.4"), gpus=gpus))
    assert refused.reasons == ("CUDA 12.2 needs driver 525.60.13 or newer, the host has one for CUDA 11.4",)


def test_glibc_counts_only_where_the_host_loads_the_libraries() -> None:
    old = host("535.54.03", "T4", glibc="2.17")
    assert answer(cell("1.16.3", "11.8"), old).verdict is NATIVE
    refused = answer(cell("1.17.1", "11.8"), old)
    assert refused.verdict is REFUSED
    assert refused.reasons == ("ONNX Runtime 1.17.1 needs glibc 2.27, the host has 2.17",)
    container = msgspec.structs.replace(old, unpacked=False)  # as --here reads it
    found = answer(cell("1.17.1", "11.8"), container)
    assert found.verdict is NATIVE
    assert found.reasons[-1] == (
        "only in a container: unpacked on the host itself, "
        "ONNX Runtime 1.17.1 needs glibc 2.27, the host has 2.17"
    )
    new = answer(cell("1.16.3", "11.8"), host("535.54.03", "T4", glibc="2.41"))
    assert new.verdict is NATIVE
    assert "executable stack" in new.reasons[-1]


def test_unmeasured_sets_and_unread_archives_are_unknown() -> None:
    one = cell("1.16.2", "11.8")
    machine = host("535.54.03", "T4")
    bare = msgspec.structs.replace(one, cuda_set=msgspec.structs.replace(one.cuda_set, gpu=()))
    assert answer(bare, machine).reasons == ("which GPUs the CUDA 11.8 set has code for was not measured",)
    unread = msgspec.structs.replace(
        one, release=msgspec.structs.replace(one.release, gpu=GpuArchitectures())
    )
    found = answer(unread, machine)
    assert (found.verdict, found.reasons) == (
        UNKNOWN,
        ("which GPUs the archive of ONNX Runtime has code for is not known",),
    )


def test_a_wheel_that_differs_in_kind_only_does_not_matter() -> None:
    one = cell("1.23.2", "12.6")
    wheel = one.release.wheel
    assert isinstance(wheel, WheelSource) and wheel.gpu is not None
    assert "86" in wheel.gpu.sass and "86" not in one.release.gpu.sass
    assert answer(one, host("580.65.06", "A10")).verdict is NATIVE


def test_ranking_and_the_nearest_cell() -> None:
    cells = [one for one in CELLS if one.base.name in ("debian12", "centos7")]
    answers = fit(cells, host("470.82.01", "T4"), DRIVERS)
    assert [RANK[row.verdict] for row in answers] == sorted(RANK[row.verdict] for row in answers)
    assert answers[0].cell.identifier == "1.18.1-cuda11.8-cudnn8-debian12"
    refused = {row.cell.identifier: row.nearest for row in answers if row.verdict is REFUSED}
    assert refused["1.18.0-cuda12.2-cudnn8-debian12"] == "1.18.0-cuda11.8-cudnn8-debian12"
    assert refused["1.23.2-cuda12.6-cudnn9-debian12"] == "1.18.1-cuda11.8-cudnn8-debian12"
    assert all(row.nearest is None for row in answers if row.verdict is not REFUSED)
    nothing = fit(cells, host("300.1", "T4"), DRIVERS)
    assert {row.nearest for row in nothing} == {None}


def test_what_counts_as_a_fit() -> None:
    machine = host("470.82.01")
    answers = fit([cell("1.16.2", "11.8")], machine, DRIVERS)
    assert answers[0].verdict is UNKNOWN
    assert may_fit(answers, machine), "only for want of the GPU's name"
    blackwell = host("580.65.06", "RTX 5090")
    assert not may_fit(fit([cell("1.23.2", "12.6")], blackwell, DRIVERS), blackwell)


hosts = st.builds(
    host,
    st.sampled_from(
        [None, "418.39", "450.80.02", "470.82.01", "525.60.13", "535.54.03", "580.65.06", "595.45.04"]
    ),
    st.sampled_from(
        ["T4", "V100", "A100", "L4", "H100", "B200", "RTX 5090", "Tesla K80", "GB200", "8.6", "6.1"]
    ),
    glibc=st.sampled_from([None, "2.17", "2.27", "2.36", "2.41"]),
)


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=40), hosts)
@settings(max_examples=100)
def test_answers_are_whole(cells: list, machine: Host) -> None:  # type: ignore[type-arg]
    answers = fit(cells, machine, DRIVERS)
    assert sorted(row.cell.identifier for row in answers) == sorted(one.identifier for one in cells)
    fitting = {row.cell.identifier for row in answers if row.fits}
    for row in answers:
        assert row.reasons or row.verdict is NATIVE
        assert all(reason and "\n" not in reason for reason in row.reasons)
        if row.verdict is REFUSED:
            assert row.nearest in fitting if fitting else row.nearest is None


@given(st.sampled_from(CELLS), hosts)
@settings(max_examples=100)
def test_a_newer_driver_helps_until_the_gpu_is_dropped(one, machine: Host) -> None:  # type: ignore[no-untyped-def]
    last = msgspec.structs.replace(machine, driver=Driver("580.999"))
    if machine.driver.version and int(machine.driver.version[:3]) < 580 and "K80" not in str(machine.gpus):
        assert RANK[answer(one, last).verdict] <= RANK[answer(one, machine).verdict]


def test_the_table_of_the_readme() -> None:
    cells = [cell("1.16.2", "11.8"), cell("1.16.2", "11.8", "debian13"), cell("1.23.2", "12.6")]
    head, rule, *rows = fit_table(cells, FACTS).splitlines()
    assert rule.count("|") == head.count("|") == rows[0].count("|") == rows[1].count("|")
    assert len(rows) == 2, "one row for all bases"
    assert rows[0] == (
        "| 1.16.2 | 11.8 | 8.9.6.50 | 450.80.02 "
        "| Pascal 6.0 6.1, Volta 7.0, Turing 7.5, Ampere 8.0 8.6, Ada 8.9 "
        "| Hopper 9.0 (driver from 520.61.05) | - |"
    )
    assert rows[1].startswith("| 1.23.2 | 12.6 | 9.5.1.17 | 525.60.13 | Pascal 6.0 6.1, ")
    assert rows[1].endswith("| - | Blackwell 10.0 10.3 12.0 |")


def test_confidence_of_measured_rows() -> None:
    measured = [row.key for row in CATALOGUE.releases if row.gpu.ptx_isa]
    assert {row.gpu.confidence for row in CATALOGUE.releases if row.gpu.ptx_isa} == {Confidence.MEASURED}
    assert "1.16.2-cuda11" in measured and "1.22.0-cuda12" in measured
    for row in CATALOGUE.cuda_sets:
        libraries = {code.library for code in row.gpu}
        assert libraries <= {*row.libraries}
        assert len(libraries) == len(row.gpu)
        for part in ("libcublas", "libcublasLt", "libcufft", "libcurand", "libcudnn_"):
            assert any(name.startswith(part) for name in libraries), f"{row.key}: {part}"


# the command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "images.yaml").write_text(
        images(
            matrix=matrix(["1.16.2", "1.18.0"], ["11.8", "12.2"], ["8"], ["debian12", "debian13"]),
            include=[wish("1.23.2", "12.6", "9")],
        )
    )
    return tmp_path


def ortimg(*arguments: str, folder: Path | None = None) -> Result:
    place = ["-C", str(folder)] if folder else []
    return CliRunner().invoke(cli, [*place, "fit", *arguments])


def test_command(project: Path) -> None:
    result = ortimg("--driver", "470.82.01", "--gpu", "Tesla T4", folder=project)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout == (
        "Host: driver 470.82.01, T4 (compute capability 7.5)\n"
        "\n"
        "native   1.18.0-cuda11.8-cudnn8-{debian12,debian13}\n"
        "native   1.16.2-cuda11.8-cudnn8-{debian12,debian13}\n"
        "           runs by minor-version compatibility: driver 470.82.01 is older than its own (520.61.05), "
        "and CUDA 11 runs from 450.80.02 on\n"
        "refused  1.23.2-cuda12.6-cudnn9-debian12  (nearest: 1.18.0-cuda11.8-cudnn8-…)\n"
        "           CUDA 12.6 needs driver 525.60.13 or newer, the host has 470.82.01\n"
        "refused  1.18.0-cuda12.2-cudnn8-{debian12,debian13}  (nearest: 1.18.0-cuda11.8-cudnn8-…)\n"
        "           CUDA 12.2 needs driver 525.60.13 or newer, the host has 470.82.01\n"
        "\n"
        "docker run --rm --gpus all r:1.18.0-cuda11.8-cudnn8-debian12\n"
    )


def test_json(project: Path) -> None:
    result = ortimg("--driver", "470.82.01", "--gpu", "Tesla T4", "--json", folder=project)
    data = json.loads(result.stdout)
    assert data["schema"] == 1
    assert data["host"]["driver"] == "470.82.01"
    assert data["host"]["gpus"] == [{"name": "T4", "compute_capability": "7.5"}]
    assert len(data["cells"]) == 7
    assert data["cells"][0]["verdict"] == "native"
    assert data["cells"][-1] == {
        "identifier": "1.18.0-cuda12.2-cudnn8-debian13",
        "verdict": "refused",
        "reasons": ["CUDA 12.2 needs driver 525.60.13 or newer, the host has 470.82.01"],
        "nearest": "1.18.0-cuda11.8-cudnn8-debian13",
    }
    assert data["run"] == "docker run --rm --gpus all r:1.18.0-cuda11.8-cudnn8-debian12"


def test_selectors_and_filters(project: Path) -> None:
    def cells(*arguments: str) -> list[str]:
        data = json.loads(ortimg("--gpu", "T4", "--json", *arguments, folder=project).stdout)
        return [row["identifier"] for row in data["cells"]]

    assert cells("1.16.2-*") == [f"1.16.2-cuda11.8-cudnn8-debian{release}" for release in (12, 13)]
    assert cells("--cuda", "12", "--base", "debian13") == ["1.18.0-cuda12.2-cudnn8-debian13"]
    assert cells("--cuda", "12.2.2", "--base", "debian13") == ["1.18.0-cuda12.2-cudnn8-debian13"]
    assert cells("--cudnn", "9") == ["1.23.2-cuda12.6-cudnn9-debian12"]
    assert cells("--ort", "1.16.2", "--base", "debian12") == ["1.16.2-cuda11.8-cudnn8-debian12"]


def test_the_whole_catalogue_needs_no_project(tmp_path: Path) -> None:
    result = ortimg("--all", "--gpu", "T4", "--driver", "535.54.03", "--json", folder=tmp_path)
    assert result.exit_code == 0
    assert len(json.loads(result.stdout)["cells"]) == len(CELLS) > 300
    without = ortimg("--gpu", "T4", folder=tmp_path)
    assert without.exit_code == 2
    assert "there is no images.yaml" in without.stderr
    assert "--all" in without.stderr


def test_nothing_fits(project: Path) -> None:
    result = ortimg("--driver", "418.39", "--gpu", "T4", folder=project)
    assert result.exit_code == 1
    assert "docker run" not in result.stdout
    assert json.loads(ortimg("--driver", "418.39", "--json", folder=project).stdout)["run"] is None


def test_unpacked_on_the_host_itself_there_is_no_container_to_run(project: Path) -> None:
    result = ortimg("--gpu", "T4", "--driver", "535.54.03", "--glibc", "2.36", folder=project)
    assert result.exit_code == 0
    assert "docker run" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu", "T5"], 'no GPU "T5" is known; near: Jetson T5000, T500, T4'),
        (["--driver", "abc"], '--driver "abc" is no driver version such as 535.104.05'),
        (["--driver", "12.2"], "looks like a CUDA version"),
        (["--driver", "0"], '--driver "0" is no driver version'),
        (["--driver", "470.82.01.02.03"], '--driver "470.82.01.02.03" is no driver version'),
        (["--gpu", "Quantum X"], "nvidia-smi --query-gpu=compute_cap"),
        (["--glibc", "new"], '--glibc "new" is no version such as 2.36'),
        (["--driver", "abc", "--gpu", "T5"], 'no GPU "T5"'),
        (["--here", "--driver", "535.54.03"], "contradicts --driver"),
        (["--here", "--gpu", "T4", "--glibc", "2.36"], "contradicts --gpu, --glibc"),
        ([], "nothing to fit to is told"),
        (["--gpu", "T4", "1.99-*"], '"1.99-*" matches no cell'),
        (["--gpu", "T4", "1.99-*"], "`ortimg list` shows every cell"),
        (["--all", "--gpu", "T4", "*-python3.11"], "--all knows the flavour runtime alone"),
        (
            ["--ort", "1.17.2"],
            "1.17.2 has no release archive for Linux and GPUs (no release with binaries); 1.17.3",
        ),
        (["--ort", "latest"], '"latest" is no version'),
        (["--base", "alpine3.20"], "musl"),
        (["--base", "debian99"], 'did you mean "debian13"?'),
        (["--base", "arm64"], "arm64"),
        (["--ort", "1.16.2", "--cuda", "12.2"], "has no release archive for CUDA 12"),
        (["--cuda", "12.2.2", "--cudnn", "9"], "holds cuDNN 8 (12.2.2-cudnn8), none holds cuDNN 9"),
        (["--cuda", "11.8", "--cudnn", "9"], "no cell has CUDA 11.8, cuDNN 9"),
        (["--ort", "1.22.0"], "images.yaml has no cell with ONNX Runtime 1.22.0"),
        (["--cuda", "9"], "no cell has CUDA 9"),
        (["--cuda", "11.9"], "no cell has CUDA 11.9: there is no set of CUDA 11.9 and cuDNN 8 libraries"),
        (["--cudnn", "10"], "for CUDA 13 is built with cuDNN 9, which cuDNN 10 does not replace"),
        (
            ["--cuda", "11.8", "--cudnn", "none"],
            "1.18.1 for CUDA 11 links to cuDNN 8, so it does not load without it; nearest cell: "
            "1.18.1-cuda11.8-cudnn8-",
        ),
        (["--driver", "470.57", "--cuda", "12.4"], "CUDA 12.4 itself needs driver 525.60.13 or newer"),
        (["--driver", "525.60.13", "--cuda", "12.9"], "itself runs on driver 525.60.13 by minor-version"),
        (["--driver", "550", "--cuda", "13.1"], "CUDA 13.1 itself needs driver 580 or newer"),
    ],
)
def test_wrong_questions(project: Path, arguments: list[str], words: str) -> None:
    result = ortimg(*arguments, folder=project)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 2 + len(arguments) // 4


def test_help_tells_the_exit_codes() -> None:
    text = " ".join(ortimg("--help").stdout.split())
    assert "0 at least one cell fits, as far as was told 1 none does 2 " in text


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (
            ["--all", "--ort", "1.16.2", "--gpu", "12.0", "--driver", "580.65.06"],
            "1.24.4-cuda13.0-cudnn9-debian12",
        ),
        (["1.18.0-cuda12*", "--gpu", "9.0", "--driver", "525.60.13"], "1.18.0-cuda11.8-cudnn8-debian12"),
        (["1.18.0-cuda12*", "--gpu", "9.0", "--driver", "450.80.02"], None),  # nothing in images.yaml
    ],
)
def test_where_nothing_of_the_question_fits_what_does_is_named(
    project: Path, arguments: list[str], nearest: str | None
) -> None:
    result = ortimg(*arguments, "--json", folder=project)
    assert result.exit_code == 1
    rows = json.loads(result.stdout)["cells"]
    assert {row["verdict"] for row in rows} == {"refused"}
    assert [row["nearest"] for row in rows if row["identifier"].endswith("debian12")] == [nearest]


# --here, on a machine made of stand-in programs


def machine(tmp_path: Path, script: str) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


MODERN = (
    'case "$1" in *compute_cap*) echo "7.5"; echo "7.5";; *) echo "Tesla T4, 535.104.05"; '
    'echo "Tesla T4, 535.104.05";; esac'
)
OLD = (
    'case "$1" in *compute_cap*) echo "Field \\"compute_cap\\" is not a valid field to query."; exit 2;; '
    '*) echo "Tesla T4, 470.82.01";; esac'
)
STRANGE = 'case "$1" in *compute_cap*) exit 2;; *) echo "Quantum X, 470.82.01";; esac'
NO_DRIVER = 'echo "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."; exit 9'


@pytest.mark.parametrize(("script", "driver"), [(MODERN, "535.104.05"), (OLD, "470.82.01")])
def test_here(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, driver: str
) -> None:
    monkeypatch.setenv("PATH", machine(tmp_path, script)["PATH"])
    data = json.loads(ortimg("--here", "--json", folder=project).stdout)
    assert data["host"]["driver"] == driver
    assert data["host"]["gpus"] == [{"name": "Tesla T4", "compute_capability": "7.5"}]
    assert data["host"]["glibc"]
    assert data["cells"][0]["verdict"] == "native"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (NO_DRIVER, "nvidia-smi fails: NVIDIA-SMI has failed"),
        ("exit 0", "nvidia-smi names no GPU"),
        (STRANGE, 'no GPU "Quantum X" is known'),
    ],
)
def test_here_without_an_answer(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setenv("PATH", machine(tmp_path, script)["PATH"])
    result = ortimg("--here", folder=project)
    assert result.exit_code == 3
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 2


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has an NVIDIA driver")
def test_here_on_a_machine_without_a_gpu(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = ortimg("--here", folder=project)
    assert result.exit_code == 3
    assert (
        "no NVIDIA driver answers on this machine: nvidia-smi is not installed; libcuda.so.1" in result.stderr
    )
