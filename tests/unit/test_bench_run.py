"""The harness of `make bench`, as far as it measures nothing: texts, ratios, goals, what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from bench import nvidia, publish, readme
from bench.dockerfile import dockerfile
from bench.limit import Limit
from bench.machine import Machine
from bench.naive import NaiveCell, read_steps
from bench.noise import Stopwatch, Timing
from bench.nvidia import NvidiaSet, Package
from bench.ours import Ours
from bench.ours import read_steps as built_steps
from bench.planning import COMBINATIONS, large_config
from bench.plot import write_plot
from bench.pulling import Pull
from bench.result import SCHEMA, Measured, Result, beyond, distinct, pairs, ratios
from bench.state import State
from bench.words import amount, factor, goal
from ortimg.core.cells import try_plan
from ortimg.data import read_catalogue
from ortimg.errors import ConfigError
from ortimg.project import load_project

ROOT = Path(__file__).parents[2]
ONE, TWO = "1.16.2-cuda11.8-cudnn8-debian12", "1.16.2-cuda11.8-cudnn8-debian13"
CELLS = {cell.identifier: cell for cell in load_project(ROOT).plan.cells}


def timing(seconds: float, foreign: float | None = 0.01) -> Timing:
    return Timing(
        began="2026-12-01T16:00:00Z", seconds=seconds, load_before=1.0, load_after=2.0, own_cpu=0.5,
        foreign_cpu=foreign,
    )  # fmt: skip


def ours() -> Ours:
    return Ours(
        build=timing(100), parts={"wall": 100.0}, steps={}, push=timing(20), stored=25, peak=30,
        layers={ONE: {"cuda": 700, "ort": 100, "d12": 30}, TWO: {"cuda": 700, "ort": 100, "d13": 20}},
        unchanged=timing(1), label=timing(5),
    )  # fmt: skip


def naive(name: str) -> NaiveCell:
    return NaiveCell(
        build=timing(250), push=timing(50), stored=50, layers={f"{name}-all": 1500, name[-8:]: 40},
        steps={"fetch 2/3 RUN curl a": 10.0, "fetch 3/3 RUN pip install b": 20.0}, export=99.0,
    )  # fmt: skip


def limit(seconds: float = 40) -> Limit:
    return Limit(
        copy=seconds / 4, write=seconds / 4, compress=seconds / 2, input_bytes=10, raw_bytes=2400,
        packed_bytes=850, raw_layers={"cuda": 1800, "ort": 400, "d12": 120, "d13": 110}, timing=timing(60),
    )  # fmt: skip


def nvidia_set() -> NvidiaSet:
    package = Package(
        name="libx",
        version="1",
        source="x==1",
        sha256="0",
        libraries={"a": 3000, "b": 500},
        gzip=2000,
        zstd=1600,
    )
    return NvidiaSet(image="i", cuda="11.8", list_from="somewhere", packages=(package,), left_out=())


def measured() -> Measured:
    pull = Pull(packed_bytes=900, pull=timing(30), load=timing(1), second_bytes=20, second=timing(2))
    slow = msgspec.structs.replace(pull, pull=timing(60))
    return Measured(
        ours=ours(), limit=limit(), naive={ONE: naive(ONE), TWO: naive(TWO)}, spared=20.0,
        nvidia=nvidia_set(), pulls={"built": pull, "gzip": slow},
    )  # fmt: skip


def result(found: Measured) -> Result:
    machine = Machine(
        cpu="A CPU", cores=2, memory=24_000_000_000, disk_write=500_000_000, kernel="6", system="Debian",
        python="3.11", engine={"docker": "26"},
    )  # fmt: skip
    return Result(
        schema=SCHEMA, date="2026-12-01T16:40:00Z", version="0.1.0", commit="c", machine=machine,
        cells=(ONE, TWO), measured=found, ratios=ratios(found),
    )  # fmt: skip


# the naive side


def test_the_naive_dockerfile_fetches_all_in_each_cell_and_sets_the_path() -> None:
    text = dockerfile(CELLS[ONE], "onnxruntime.tgz", "http://127.0.0.1:1", "fetch:1", "debian:1")
    assert "curl -fsSL http://127.0.0.1:1/onnxruntime.tgz" in text
    assert "nvidia-cudnn-cu11==8.9.6.50" in text
    assert "LD_LIBRARY_PATH=/opt/onnxruntime/lib:/opt/nvidia/cuda_runtime/lib:/opt/nvidia/cublas/lib" in text
    assert text.count("\nFROM debian:1\n") == 1


def test_a_cell_with_a_wheel_fetches_no_archive() -> None:
    cell = CELLS["1.17.1-cuda11.8-cudnn8-debian12-python3.11"]
    text = dockerfile(cell, None, "http://127.0.0.1:1", "fetch:1", "debian:1")
    assert "curl" not in text
    assert "onnxruntime-gpu==1.17.1" in text
    assert "PYTHONPATH=/opt/python" in text


def test_libraries_of_cuda_13_lie_in_one_folder() -> None:
    cell = CELLS["1.30.0-cuda13.0-cudnn9-debian12"]
    text = dockerfile(cell, "a.tgz", "http://127.0.0.1:1", "fetch:1", "debian:1")
    assert "LD_LIBRARY_PATH=/opt/onnxruntime/lib:/opt/nvidia/cu13/lib:/opt/nvidia/cudnn/lib" in text


def test_seconds_of_steps_are_read_from_the_builders_progress() -> None:
    progress = (
        "#1 [internal] load build definition\n#1 DONE 0.1s\n#6 [fetch 3/3] RUN pip install x\n#6 0.5 x\n"
        "#6 DONE 31.4s\n#8 [stage-1 2/3] COPY --from=fetch /opt/x /opt/x\n#8 DONE 4.0s\n"
        "#9 exporting to image\n#9 exporting layers 80.1s done\n#9 DONE 95.0s\n"
    )
    steps, export = read_steps(progress)
    assert steps == {
        "fetch 3/3 RUN pip install x": 31.4,
        "stage-1 2/3 COPY --from=fetch /opt/x /opt/x": 4.0,
    }
    assert export == 95.0


def test_seconds_of_units_are_read_from_what_a_build_tells() -> None:
    told = (
        "cuda:11.8-cudnn8-590fd6fcbd75f988: started\n"
        "cuda:11.8-cudnn8-590fd6fcbd75f988: built in 51.4 s\n"
        "tools:1ec35f08a2c1d0fa: built in 9.0 s\n"
        "1.16.2-cuda11.8-cudnn8-debian12: built in 8.1 s\n"
    )
    assert built_steps(told) == {"cuda:11.8-cudnn8": 51.4, "tools": 9.0, ONE: 8.1}


# ratios


def test_ratios_are_of_one_run_and_tell_their_goal() -> None:
    found = {row.name: row for row in ratios(measured())}
    assert found["wall"].value == 5.0  # 2 x (250 + 50) / (100 + 20)
    assert found["wall"].met
    assert found["wall-kept-cache"].value == round(580 / 120, 4)
    assert found["stored"].value == 0.25
    assert found["stored"].met
    assert found["pushed"].ours == 850  # each layer once
    assert found["pushed"].against == 1500 * 2 + 40 * 2
    assert found["second-image"].ours == 20
    assert found["second-image"].against == 1540
    assert found["limit"].value == 2.5
    assert found["limit"].met is False
    assert found["pull-built"].value == round(31 / 61, 4)


def test_nvidias_side_is_the_same_image_with_nvidias_packages_for_the_cuda_layer() -> None:
    found = {row.name: row for row in ratios(measured())}
    assert (found["nvidia-raw"].ours, found["nvidia-raw"].against) == (2320, 400 + 120 + 3500)
    assert (found["nvidia-packed"].ours, found["nvidia-packed"].against) == (830, 130 + 2000)


def test_the_older_store_is_held_against_the_same_cell_in_the_other() -> None:
    classic = msgspec.structs.replace(naive(ONE), build=timing(100))
    found = ratios(msgspec.structs.replace(measured(), classic=classic))
    assert next(row for row in found if row.name == "classic").value == 0.5


def test_a_part_that_was_not_measured_gives_no_ratio() -> None:
    assert ratios(Measured()) == ()
    assert {row.name for row in ratios(Measured(ours=ours()))} == {"unchanged", "label"}


def test_a_ratio_tells_that_others_used_the_machine() -> None:
    loud = msgspec.structs.replace(ours(), build=timing(100, foreign=0.4))
    found = {row.name: row for row in ratios(Measured(ours=loud, limit=limit()))}
    assert found["limit"].noisy
    unknown = msgspec.structs.replace(ours(), build=timing(100, foreign=None))
    assert {row.name: row for row in ratios(Measured(ours=unknown, limit=limit()))}["limit"].noisy
    assert not {row.name: row for row in ratios(Measured(ours=ours(), limit=limit()))}["limit"].noisy


def test_what_a_registry_stores_counts_each_blob_once() -> None:
    layers = {"a": {"x": 1, "y": 10}, "b": {"x": 1, "z": 100}}
    assert distinct(layers) == 111
    assert beyond(layers, "a", "b") == 100
    assert list(pairs([ONE, TWO, "1.17.1-cuda11.8-cudnn8-debian12"])) == [(ONE, TWO)]


# words, files


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [(2_414_837_760, "bytes", "2.41 GB"), (28_400_000, "bytes", "28.4 MB"), (0.0123, "s", "0.012 s"),
     (12.34, "s", "12.3 s"), (1234.5, "s", "1,234 s")],
)  # fmt: skip
def test_amounts_for_people(value: float, unit: str, words: str) -> None:
    assert amount(value, unit) == words


def test_goals_for_people() -> None:
    found = {row.name: row for row in ratios(measured())}
    assert (factor(found["wall"]), goal(found["wall"])) == ("5.0 times", "≥ 4 times, met")
    assert (factor(found["limit"]), goal(found["limit"])) == ("2.50", "≤ 1.3, not met")
    assert goal(found["wall-kept-cache"]) == "-"


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "2026-12-01.json"
    path.write_bytes(msgspec.json.encode(result(measured())))
    assert publish.read(path) == result(measured())
    path.write_text(json.dumps({"schema": "another"}))
    with pytest.raises(ConfigError):
        publish.read(path)


def test_the_same_result_gives_the_same_plot(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        write_plot(result(measured()), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_the_readme_has_every_ratio_between_its_markers() -> None:
    lines = readme.block(result(measured()), "2026-12-01")
    text = readme.replaced(f"a\n{readme.START}\nold\n{readme.END}\nb\n", lines)
    assert text.startswith(f"a\n{readme.START}\n`make bench` on 2026-12-01: 2 cells, 2 cores of A CPU")
    assert text.endswith(f"{readme.END}\nb\n")
    assert "| build and push of all cells | 120 s | 600 s | 5.0 times | ≥ 4 times, met |" in text
    assert "old" not in text
    with pytest.raises(ConfigError):
        readme.replaced("no markers", lines)


def test_an_interrupted_run_keeps_what_it_measured(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    assert state.once("limit", Limit, limit) == limit()
    assert State(tmp_path / "state").once("limit", Limit, lambda: limit(99)) == limit()
    state.clear()
    assert not state.has("limit")


# what is measured


def test_a_stopwatch_tells_its_seconds_and_the_load() -> None:
    with Stopwatch() as watch:
        sum(range(1000))
    assert watch.timing.seconds >= 0
    assert watch.timing.load_after >= 0


def test_the_large_plan_is_as_large_as_is_said() -> None:
    plan, _ = try_plan(large_config(COMBINATIONS), read_catalogue())
    assert len(plan.cells) + len(plan.excluded) == pytest.approx(COMBINATIONS, rel=0.05)


def test_every_package_of_nvidias_set_tells_its_source() -> None:
    found = nvidia.read()
    assert found.image.startswith("nvidia/cuda:")
    for package in found.packages:
        assert "==" in package.source
        assert len(package.sha256) == 64
        assert 0 < package.zstd < sum(package.libraries.values())
        assert 0 < package.gzip < sum(package.libraries.values())
