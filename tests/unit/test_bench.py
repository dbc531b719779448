"""`ortimg bench` of a measurement made elsewhere: what is said about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ortimg.benching.judgement import Judgement, judge, words
from ortimg.benching.plot import check_plot, write_plot
from ortimg.benching.words import tell
from ortimg.cli import cli
from ortimg.verify.bench_report import BenchNodes, BenchPoint, BenchReport


def point(provider: str, p95: float, **more: object) -> BenchPoint:
    times = {
        "p50_ms": p95 / 2,
        "p95_ms": p95,
        "p99_ms": p95 * 2,
        "mean_ms": p95,
        "min_ms": p95,
        "max_ms": p95,
    }
    told = {"shape": "x=1x8", "binding": False, "concurrency": 1, "per_second": 10.0} | times | more
    if provider == "cuda":
        told = {"tf32": False} | told
    return BenchPoint(provider=provider, **told)  # type: ignore[arg-type]


def measured(*points: BenchPoint, **more: object) -> BenchReport:
    return BenchReport(model="net.onnx", warmup=20, runs=200, points=points, **more)  # type: ignore[arg-type]


def only(report: BenchReport) -> Judgement:
    (judgement,) = judge(report)
    return judgement


def test_a_gain_of_thirty_percent_is_worth_it() -> None:
    assert only(measured(point("cpu", 10), point("cuda", 7))).worth_it
    assert not only(measured(point("cpu", 10), point("cuda", 7.1))).worth_it


def test_a_gain_needs_no_reason() -> None:
    report = measured(point("cpu", 10), point("cuda", 5, idle_share=0.9))
    assert words(only(report)) == ["x=1x8: CUDA's P95 is 50 % below the CPU's (5.000 against 10.000 ms)"]


def test_copies_are_the_reason_where_binding_is_much_faster() -> None:
    report = measured(point("cpu", 10), point("cuda", 10), point("cuda", 2, binding=True))
    (reason,) = only(report).reasons
    assert reason.startswith("copies between host and GPU: without them P95 is 2.000 instead of 10.000 ms")
    slow = measured(point("cpu", 10), point("cuda", 10), point("cuda", 9, binding=True))
    assert not any("copies" in reason for reason in only(slow).reasons)


def test_nodes_on_the_cpu_are_a_reason() -> None:
    nodes = BenchNodes(total=5, cuda=2, cpu=3, copies=4, cpu_operators=("Det", "Atan"))
    (reason,) = only(measured(point("cpu", 10), point("cuda", 30), nodes=nodes)).reasons
    assert reason.startswith("3 of 5 nodes run on the CPU (Det, Atan), with 4 copies")


@pytest.mark.parametrize(("idle", "is_reason"), [(0.93, True), (0.5, False)])
def test_a_gpu_that_idles_is_a_reason(idle: float, is_reason: bool) -> None:
    (reason,) = only(measured(point("cpu", 1), point("cuda", 1, idle_share=idle))).reasons
    assert ("the GPU is idle 93 % of the time" in reason) is is_reason
    assert ("nothing in these numbers says why" in reason) is not is_reason


def test_an_idle_share_that_is_not_known_is_no_evidence() -> None:
    report = measured(point("cpu", 1), point("cuda", 1), idle="not measured: no libnvidia-ml.so.1")
    assert any("not known (not measured: no libnvidia-ml.so.1)" in reason for reason in only(report).reasons)


def test_slower_on_cuda_is_said() -> None:
    assert "is 50 % above the CPU's" in words(only(measured(point("cpu", 10), point("cuda", 15))))[0]


def test_a_judgement_is_of_copied_tensors_and_one_thread() -> None:
    report = measured(
        point("cpu", 99, concurrency=4),
        point("cpu", 10),
        point("cuda", 1, binding=True),
        point("cuda", 2, concurrency=4),
        point("cuda", 3),
    )
    assert (only(report).cpu_p95_ms, only(report).cuda_p95_ms) == (10, 3)


def test_a_judgement_is_without_tf32_where_both_are_known() -> None:
    report = measured(point("cpu", 10), point("cuda", 1, tf32=True), point("cuda", 4, tf32=False))
    assert only(report).cuda_p95_ms == 4
    assert only(measured(point("cpu", 10), point("cuda", 1, tf32=True))).cuda_p95_ms == 1


def test_each_shape_is_judged_for_itself() -> None:
    report = measured(
        point("cpu", 1), point("cpu", 50, shape="x=32x8"), point("cuda", 1), point("cuda", 2, shape="x=32x8")
    )
    assert [(one.shape, one.worth_it) for one in judge(report)] == [("x=1x8", False), ("x=32x8", True)]


def test_the_table_tells_every_point() -> None:
    report = measured(
        point("cpu", 10, first_ms=12.5),
        point("cuda", 3, tf32=True, binding=True, concurrency=4),
        point("cuda", 4, idle_share=0.25),
        tf32_not_measured="none here",
        cuda_not_measured="no GPU",
    )
    lines = tell(report).splitlines()
    rows = [line.split("  ") for line in lines if line.startswith("x=1x8  ")]
    assert [row[1] for row in rows] == ["CPU", "CUDA, TF32", "CUDA"]
    assert "on the GPU" in rows[1]
    assert rows[0][-5:] != rows[1][-5:]
    assert any("12.5" in line for line in lines)
    assert any(line.endswith("25 %") for line in lines)
    assert lines[-1] == "CUDA not measured: no GPU"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """As `ort-verify --bench --json` writes it on a machine without a GPU."""
    bench = {
        "model": "net.onnx",
        "warmup": 20,
        "runs": 200,
        "points": [
            {"provider": "cpu", "shape": "x=1x8", "binding": False, "concurrency": 1, "first_ms": 3.0,
             "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "mean_ms": 1.0, "min_ms": 1.0, "max_ms": 4.0,
             "per_second": 900.0}
        ],
        "cuda_not_measured": "no GPU here",
    }  # fmt: skip
    finding = {"check": "bench.cuda", "verdict": "skipped", "evidence": "CUDA not measured", "cure": "a GPU"}
    report = {
        "schema": 1,
        "target": "root",
        "tier": "load",
        "verdict": "environment",
        "findings": [finding],
        "bench": bench,
    }
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(report))
    return path


def bench(*args: str) -> Result:
    return CliRunner().invoke(cli, ["bench", *args])


def test_a_measurement_that_was_carried_here_is_shown(file: Path) -> None:
    done = bench("--from", str(file))
    assert done.exit_code == 3
    assert "CUDA not measured: no GPU here" in done.stdout
    assert bench("--from", str(file), "--cpu-only").exit_code == 0


def test_its_json_has_the_judgement(file: Path) -> None:
    told = json.loads(bench("--from", str(file), "--json").stdout)
    assert (told["schema"], told["judgement"]) == (1, [])
    assert told["bench"]["points"][0]["p95_ms"] == 2.0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "give a TARGET, or --from FILE"),
        (["root", "--from", "x"], "give a TARGET, or --from FILE"),
        (["root", "--batch", "1,x"], "1,8,32"),
        (["root", "--batch", "0"], "1,8,32"),
        (["root", "--plot", "a.gif"], "an .svg or a .png"),
        (["root", "--plot", "/nowhere/a.svg"], "no folder /nowhere"),
        (["root", "--gpu-device", "fast"], 'error: --gpu-device "fast" is no GPU'),
        (["/nowhere"], "no folder /nowhere"),
        ([""], "an empty TARGET"),
        (["--from", "/nowhere.json"], "/nowhere.json cannot be read"),
        (["--from", "/"], "/ cannot be read"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_measured(args: list[str], said: str) -> None:
    result = bench(*args)
    assert result.exit_code == 2
    assert said in result.output
    assert "measuring in" not in result.output


def test_a_file_without_a_measurement_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert bench("--from", str(tmp_path / "x.json")).exit_code == 2


def test_a_plot_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    report = measured(point("cpu", 10), point("cuda", 0.1, tf32=True), point("cuda", 4, binding=True))
    write_plot(report, tmp_path / "a.svg")
    write_plot(report, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "CUDA, TF32" in (tmp_path / "a.svg").read_text()
    check_plot(tmp_path / "c.PNG")
    write_plot(report, tmp_path / "c.PNG")
    assert (tmp_path / "c.PNG").read_bytes().startswith(b"\x89PNG")
