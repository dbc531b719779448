"""The real devel cell: programs are found their headers and library, compiled, linked, and run elsewhere.

The session of such a program gets as far as one can without a GPU, with the stub driver: "no device".
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from real import MARK, ROOT, RealCell, build_text, changed, make_real_cell

from ortimg.core.content import Unit
from ortimg.engine.buildx import BuildOutcome
from ortimg.engine.client import Engine
from ortimg.factory.disk import builder_name
from ortimg.factory.images import PREFIX as PREFIX_OF_IMAGES
from ortimg.factory.steps import Builder
from ortimg.factory.stores import EngineStore
from ortimg.inputs.cache import Cache
from ortimg.inputs.headers import name as headers_name

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

RUNTIME = "1.23.2-cuda12.6-cudnn9-debian13"
PREFIX = "/opt/onnxruntime/1.23.2"
PROGRAM = Path(__file__).parent / "program"
NO_DEVICE = "CUDA failure 100: no CUDA-capable device is detected"
# The stub driver is there for this step alone, and the model comes with it.
RUN = (
    "RUN --network=none --mount=type=bind,from=stub,target=/run/stub"
    " --mount=type=bind,from=model,target=/run/model"
    f" : {MARK}; LD_PRELOAD=/run/stub/libcuda.so.1 {{program}} /run/model/verify.onnx >/tmp/said 2>&1;"
    f" cat /tmp/said; grep -q '{NO_DEVICE}' /tmp/said\n"
)
LIMIT = 120


@pytest.fixture(scope="module")
def devel(tidy_engine: Engine) -> RealCell:
    """1.23.2 for CUDA 12.6 on Debian 13 with headers and a compiler."""
    return make_real_cell(tidy_engine, f"{RUNTIME}-devel")


@pytest.fixture(scope="module")
def runtime(tidy_engine: Engine) -> RealCell:
    return make_real_cell(tidy_engine, RUNTIME)


def build(dockerfile: str, cell: RealCell, folder: Path) -> BuildOutcome:
    """Build a user's Dockerfile beside the program's files."""
    stub = cell.image.units[Unit.STUB].reference
    model = ROOT / "ortimg" / "verify" / "model"
    contexts = {"stub": f"docker-image://{stub}", "model": str(model)}
    return build_text(dockerfile, folder, contexts, context=PROGRAM)


def compiled(cell: RealCell, command: str) -> str:
    return (
        f"FROM {cell.reference} AS build\n"
        "WORKDIR /src\n"
        "COPY main.cpp CMakeLists.txt ./\n"
        f"RUN --network=none : {MARK}; set -eux; {command}\n"
    )


WAYS = {
    "find_package": "cmake -B build; cmake --build build; mv build/program /program",
    "find_package by CMAKE_PREFIX_PATH": (
        f"env -u CMAKE_PREFIX_PATH cmake -B build -DCMAKE_PREFIX_PATH={PREFIX};"
        " cmake --build build; mv build/program /program"
    ),
    "pkg-config": "g++ main.cpp $(pkg-config --cflags --libs libonnxruntime) -o /program",
    "the other include": (
        "sed -i 's#<onnx#<onnxruntime/onnx#' main.cpp;"
        " g++ main.cpp $(pkg-config --cflags --libs libonnxruntime) -o /program"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_is_compiled_and_loads_the_provider(devel: RealCell, tmp_path: Path, way: str) -> None:
    dockerfile = compiled(devel, WAYS[way]) + RUN.format(program="/program")
    outcome = build(dockerfile, devel, tmp_path)
    assert outcome.ok, str(outcome.failure)


@pytest.mark.parametrize("way", ["find_package", "pkg-config"])
def test_the_program_runs_in_the_runtime_image(
    devel: RealCell, runtime: RealCell, tmp_path: Path, way: str
) -> None:
    """What a user does: compile in the one, run in the other."""
    dockerfile = compiled(devel, WAYS[way])
    dockerfile += f"\nFROM {runtime.reference}\nCOPY --from=build /program /usr/local/bin/program\n"
    outcome = build(dockerfile + RUN.format(program="program"), runtime, tmp_path)
    assert outcome.ok, str(outcome.failure)


def test_the_check_of_the_program_can_fail(devel: RealCell, tmp_path: Path) -> None:
    """Without its stub driver the program does not get as far."""
    run = changed(RUN, "LD_PRELOAD=/run/stub/libcuda.so.1 ", "")
    outcome = build(compiled(devel, WAYS["pkg-config"]) + run.format(program="/program"), devel, tmp_path)
    assert not outcome.ok


@pytest.mark.parametrize(
    ("asked", "found"), [("", True), ("1.23.2 EXACT", True), ("1.23.3", False), ("2.0", False)]
)
def test_versions_that_are_asked_for(devel: RealCell, tmp_path: Path, asked: str, found: bool) -> None:
    command = f"sed -i 's/onnxruntime 1.20 /onnxruntime {asked} /' CMakeLists.txt; cmake -B build"
    assert build(compiled(devel, command), devel, tmp_path).ok is found


def test_pkg_config_says_the_version_and_the_place(devel: RealCell, engine: Engine) -> None:
    script = (
        "pkg-config --modversion libonnxruntime; readlink -f $(pkg-config --variable=libdir libonnxruntime)"
    )
    shown = engine.run(devel.reference, ["sh", "-ec", script], limit=LIMIT)
    assert shown.stdout.split() == ["1.23.2", f"{PREFIX}/lib"]


def test_the_origin_of_the_headers_is_told(devel: RealCell, engine: Engine) -> None:
    origin = devel.image.identities.origins["headers"]
    there = engine.inspect(devel.reference)
    assert there is not None
    assert there.labels["ortimg.origin"].endswith(f",headers={origin}")
    if origin == "debian":
        entry = Cache.default().peek(headers_name(devel.image.cell.release))
        assert entry is not None
        assert entry.details["package"].startswith("libonnxruntime-dev_1.23.2+dfsg")


def test_heavy_layers_are_those_of_the_runtime_image(
    devel: RealCell, runtime: RealCell, engine: Engine
) -> None:
    for unit in (Unit.CUDA, Unit.ORT):
        assert devel.image.units[unit].reference == runtime.image.units[unit].reference
    first, second = engine.inspect(devel.reference), engine.inspect(runtime.reference)
    assert first is not None
    assert second is not None
    assert first.layers[:2] == second.layers[:2]


def test_no_compiler_in_the_runtime_image(runtime: RealCell, engine: Engine) -> None:
    shown = engine.run(runtime.reference, ["which", "g++", "cmake", "pkg-config", "python3"], limit=LIMIT)
    assert shown.stdout == ""


def test_where_docker_hub_answers_the_engine_adds_the_packages(
    devel: RealCell, tidy_engine: Engine, tmp_path: Path
) -> None:
    """The base stage by itself, upon a bare distribution in place of Docker Hub's image."""
    bare = make_real_cell(tidy_engine, RUNTIME).base
    builder = Builder(ROOT, tmp_path, tmp_path, builder_name(), threading.Event())
    reference = f"{PREFIX_OF_IMAGES}/base-debian13-devel:{MARK}"
    cell = devel.image.cell
    target = EngineStore(tidy_engine).target(reference)
    outcome = builder.base(reference, cell, f"docker-image://{bare}", target, lambda _step: None)
    try:
        assert outcome.ok, str(outcome.failure)
        command = ["sh", "-ec", "which g++ cmake make pkg-config; ls /var/lib/apt/lists | wc -l"]
        shown = tidy_engine.run(reference, command, limit=LIMIT)
        tools = [f"/usr/bin/{name}" for name in ("g++", "cmake", "make", "pkg-config")]
        assert shown.stdout.split() == [*tools, "0"]
    finally:
        tidy_engine.remove(reference)
