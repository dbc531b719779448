"""`ortimg compare` as people call it, from the catalogue alone: no engine, no network."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper
from wishes import cell, images

from ortimg.cli import cli


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))


def compare(*words: str, project: Path | None = None) -> Result:
    return CliRunner().invoke(cli, ["-C", str(project or "/nowhere"), "compare", *words])


def found(*words: str, project: Path | None = None) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """Exit code, and the findings by check."""
    done = compare(*words, "--json", project=project)
    data = json.loads(done.stdout)
    assert (data["schema"], data["verdict"]) == (1, "action-needed" if done.exit_code else "drop-in")
    by_check: dict[str, list[dict[str, Any]]] = {}
    for one in data["findings"]:
        by_check.setdefault(one["check"], []).append(one)
    return done.exit_code, by_check


def test_from_1_18_1_to_1_20_1() -> None:
    code, checks = found("1.18.1", "1.20.1")
    assert code == 1
    assert checks["cuda"][0]["evidence"] == "CUDA 11 → 12"
    assert checks["cudnn"][0]["evidence"] == "cuDNN 8 → 9"
    gained = checks["libraries.needed"][0]["evidence"].partition(";")[0]
    assert "libnvrtc.so.12" in gained and "libcudnn_graph.so.9" in gained
    assert "SONAME libonnxruntime.so.1.18.1 → libonnxruntime.so.1;" in checks["soname"][0]["evidence"]
    assert "525.60.13" in checks["driver"][0]["cure"]


def test_from_1_24_4_to_1_31_1() -> None:
    code, checks = found("1.24.4", "1.31.1")
    assert code == 1
    assert "now optional" in checks["cudnn"][0]["evidence"]
    assert "gained libcudnn.so.9" in checks["libraries.lazy"][0]["evidence"]
    assert "Pascal 6.0, Pascal 6.1, Volta 7.0" in checks["gpu.lost"][0]["evidence"]
    assert "inferred, not read, for NEW" in checks["gpu.code"][0]["evidence"]
    assert checks["archive"][0]["verdict"] == "skipped"


def test_the_same_version_twice_is_a_drop_in() -> None:
    done = compare("1.18.1", "1.18.1")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].strip().startswith("drop-in: nothing to act on; not known: exports")


def test_which_archive_a_version_means_is_told() -> None:
    _, checks = found("1.18.1-cuda12", "1.24.4")
    assert [one["evidence"] for one in checks["chosen"]] == [
        "NEW: 1.24.4 means 1.24.4-cuda12 here; write 1.24.4-cuda13 for the other archive"
    ]
    _, checks = found("1.18.1", "1.18.1-cuda12")
    assert checks["cuda"][0]["evidence"] == "CUDA 11 → 12"
    _, checks = found("1.24.4-cuda13", "1.25.1")  # the archive for the CUDA that is there already
    assert checks["cuda"][0]["verdict"] == "ok"


def test_what_the_user_has_settles_what_is_open() -> None:
    code, checks = found("1.20.1", "1.18.1-cuda12", "--driver", "535.54.03", "--gpu", "Tesla T4",
                         "--option", "gpu_mem_limit=4G")  # fmt: skip
    assert (checks["driver"][0]["verdict"], checks["options"][0]["verdict"]) == ("ok", "ok")
    assert [one["verdict"] for one in checks["gpu"]] == ["ok"]
    assert code == 1 and checks["api.version"][0]["verdict"] == "fail"  # a step back


def test_cells_and_tags(tmp_path: Path) -> None:
    text = images(include=[cell("1.16.2", "11.8"), cell("1.23.2", "12.6", "9")],
                  tags={"latest": "1.23.2-cuda12.6-cudnn9-debian12"})  # fmt: skip
    (tmp_path / "images.yaml").write_text(text)
    code, checks = found("1.16.2-cuda11.8-cudnn8-debian12", "latest", project=tmp_path)
    assert (code, checks["cuda"][0]["verdict"]) == (1, "warning")  # an image brings its libraries
    assert checks["chosen"][0]["evidence"] == "NEW: latest means the cell 1.23.2-cuda12.6-cudnn9-debian12"
    same = found("latest", "1.23.2-cuda12.6-cudnn9-debian13", project=tmp_path)  # a cell of the catalogue
    assert same[0] == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["1.18.2", "1.20.1"], "nearest: 1.18.1"),
        (["1.20.1", "1.99.0"], "nearest: 1.31.1"),
        (["1.18", "1.20.1"], 'ONNX Runtime 1.18 is not in the catalogue; nearest: 1.18'),
        (["1.18.0-cuda13", "1.20.1"], "There is 1.18.0-cuda11 and 1.18.0-cuda12."),
        (["", "1.20.1"], "OLD is empty"),
        (["1.20.1", "./nowhere"], "there is no folder ./nowhere"),
        (["1.20.1-cuda12.4-cudnn9-debian12", "1.20.1"], "Nearest: 1.20.1-cuda12.6-cudnn9-debian12."),
        (["1.18.1", "1.20.1", "--driver", "new"], "no driver version"),
        (["1.18.1", "1.20.1", "--gpu", "Voodoo"], "Voodoo"),
        (["1.18.1", "1.20.1", "--option", "gpu_mem_limi=3"], 'did you mean "gpu_mem_limit"?'),
        (["1.18.1", "1.20.1", "--program", "nowhere"], "there is no file nowhere"),
        (["1.18.1", "1.20.1", "--source", "nowhere"], "there is no file nowhere"),
        (["1.18.1", "1.20.1", "--model", "nowhere"], "there is no file nowhere"),
        (["1.18.1", "1.20.1", "--runs", "3"], "go with --model"),
        (["1.18.1", "1.20.1", "--program", __file__], "is no program or library"),
        (["1.18.1", "1.20.1", "--model", __file__], "is not an ONNX model"),
        (["1.18.1"], "Missing argument"),
    ],
)  # fmt: skip
def test_wrong_questions(words: list[str], text: str) -> None:
    done = compare(*words, "--json")
    assert done.exit_code == 2
    assert text in done.output
    assert not done.stdout


def test_an_empty_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    done = compare("1.18.1", "1.20.1", "--model", str(tmp_path / "m.onnx"))
    assert (done.exit_code, "is not an ONNX model" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("ir", "opset", "words"), [(99, 17, "IR version 99"), (8, 99, "opset 99"), (8, 17, None)]
)
def test_a_model_is_answered_for_both_without_running(
    tmp_path: Path, ir: int, opset: int, words: str | None
) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    _, checks = found("1.16.2", "1.18.0", "--model", str(path))
    old, new = checks["model.old"][0], checks["model.new"][0]
    assert (old["verdict"], new["verdict"]) == (("warning", "fail") if words else ("ok", "ok"))
    if words:
        assert words in old["evidence"] and "ONNX Runtime 1.16.2 knows" in old["evidence"]
        assert words in new["evidence"] and "ONNX Runtime 1.18.0 knows" in new["evidence"]
    assert "model.run" not in checks
