"""What a run is asked for is checked before a GPU is: a machine without one must not hide a typing error."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from ortimg.errors import ConfigError
from ortimg.verify.wish import BenchWish, Places, RunWish, refused

OWN_MODEL = Path(str(files("ortimg.verify") / "model" / "verify.onnx"))


def words(wish: RunWish) -> list[str]:
    return wish.words(Places(model="/models/m"))


def test_a_model_of_onnx_is_handed_on() -> None:
    assert words(RunWish(model=OWN_MODEL)) == ["--model=/models/m"]


def test_a_model_in_orts_own_format_is_handed_on(tmp_path: Path) -> None:
    (tmp_path / "m.ort").write_bytes(b"\x18\0\0\0ORTM\0\0\0\0")
    assert words(RunWish(model=tmp_path / "m.ort")) == ["--model=/models/m"]


@pytest.mark.parametrize(
    "content", [b"", b"root:x:0:0", b"version https://git-lfs.github.com/spec/v1\n", b"\x08"]
)
def test_what_is_no_model_is_wrong_usage(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(ConfigError, match="is not an ONNX model"):
        words(RunWish(model=tmp_path / "m.onnx"))


def test_a_model_that_was_cut_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(OWN_MODEL.read_bytes()[:200])
    with pytest.raises(ConfigError, match="is not an ONNX model"):
        words(RunWish(model=tmp_path / "m.onnx"))


def test_a_model_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        words(RunWish(model=tmp_path))


def test_an_option_that_cuda_has_is_handed_on() -> None:
    assert RunWish(options=("gpu_mem_limit=4G",)).words(Places()) == ["--option=gpu_mem_limit=4G"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("gpu_mem_limt=4G", 'no such option; did you mean "gpu_mem_limit"'),
        ("gpu_mem_limit", "write KEY=VALUE"),
        ("=1", "write KEY=VALUE"),
    ],
)
def test_an_option_that_cuda_has_not_is_wrong_usage(option: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        words(RunWish(options=(option,)))


@pytest.mark.parametrize(("wish", "verb"), [(RunWish(), "verify"), (RunWish(bench=BenchWish()), "bench")])
def test_a_refusal_names_the_verb_that_was_typed(wish: RunWish, verb: str) -> None:
    error = refused("ort-verify: --shape x=a: no size\nort-verify --help shows the options.\n", wish)
    assert str(error) == f"--shape x=a: no size\n`ortimg {verb} --help` shows the options."
