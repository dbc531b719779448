"""The folder that a warm-up leaves: read as from a stranger, laid out the same each time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from warm_records import made_up, made_up_cache

from ortimg.cli import cli
from ortimg.core.warm import HIGHEST_LIMIT
from ortimg.errors import CheckFailed, ConfigError, OrtimgError
from ortimg.warming.folder import lay_out, look, read_record


def link(cache: Path) -> None:
    (cache / "passwd").symlink_to("/etc/passwd")


def link_to_folder(cache: Path) -> None:
    (cache / "b").symlink_to("/etc")


def pipe(cache: Path) -> None:
    os.mkfifo(cache / "pipe")


def newline(cache: Path) -> None:
    (cache / "a\nb").write_bytes(b"x")


def hidden(cache: Path) -> None:
    (cache / ".hidden").write_bytes(b"x")


def no_utf8(cache: Path) -> None:
    Path(os.fsdecode(os.fsencode(cache) + b"/\xff")).write_bytes(b"x")


def long_way_down(cache: Path) -> None:
    (cache / "/".join("abcdefghijk")).mkdir(parents=True)


def giant(cache: Path) -> None:
    with (cache / "giant").open("wb") as file:
        file.truncate(HIGHEST_LIMIT + 1)  # a hole: it takes no room


def empty(cache: Path) -> None:
    for path in [cache / "index", cache / "a/0/5f3c81"]:
        path.write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (link, '"cache/passwd" in the cache is a link'),
        (link_to_folder, '"cache/b" in the cache is a link'),
        (pipe, '"cache/pipe" in the cache is no plain file'),
        (newline, r'"cache/a\nb" in the cache is no name'),
        (hidden, '"cache/.hidden" in the cache is no name'),
        (no_utf8, "in the cache is no name"),
        (long_way_down, "folders in folders"),
        (giant, "at the most"),
        (empty, "is empty"),
    ],
)
def test_what_no_compute_cache_holds_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    folder = made_up(tmp_path / "out")
    spoil(folder / "cache")
    with pytest.raises(CheckFailed) as caught:
        lay_out(folder, tmp_path / "rootfs", b"{}", seed=False)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_cache_that_is_a_link_is_refused(tmp_path: Path) -> None:
    folder = made_up(tmp_path / "out")
    (folder / "cache").rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="there is no folder"):
        look(folder)
    (folder / "cache").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is no folder"):
        look(folder)


def test_a_record_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_record(tmp_path)
    os.mkfifo(tmp_path / "warm.json")
    with pytest.raises(ConfigError, match="is no plain file"):  # and does not wait for a writer
        read_record(tmp_path)
    (tmp_path / "warm.json").unlink()
    with (tmp_path / "warm.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OrtimgError, match="no record of a warm-up"):
        read_record(tmp_path)


def test_the_layout_depends_on_the_content_alone(tmp_path: Path) -> None:
    seen = []
    for name, mode in (("one", 0o700), ("two", 0o755)):
        folder = made_up(tmp_path / name)
        for path in (folder / "cache").rglob("*"):
            path.chmod(mode)
            os.utime(path, (mode, mode))
        lay_out(folder, tmp_path / name / "rootfs", b"{}", seed=True)
        root = tmp_path / name / "rootfs"
        files = {path: path.stat() for path in root.rglob("*")}
        seen.append([(str(path.relative_to(root)), of.st_mode, of.st_mtime) for path, of in files.items()])
    assert sorted(seen[0]) == sorted(seen[1])
    modes = {path: mode & 0o777 for path, mode, _ in seen[0]}
    assert modes["usr/local/bin/ortimg-seed"] == 0o755
    assert modes["usr/share/ortimg/warm/cache"] == 0o755
    assert modes["usr/share/ortimg/warm/cache/a/0/5f3c81"] == 0o644
    assert modes["usr/share/ortimg/warm/warm.json"] == 0o644


def test_nothing_is_added_without_the_wish_for_an_entrypoint(tmp_path: Path) -> None:
    folder = made_up(tmp_path / "out")
    baked = lay_out(folder, tmp_path / "rootfs", b"{}", seed=False)
    assert baked.files == 2
    assert not (tmp_path / "rootfs/usr/local").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no TARGET"),
        (["/no/such/folder"], "there is no folder"),
        (["an:image", "--from", "nowhere"], "cannot be read"),
        (["an:image", "--from", ".", "--model", "m.onnx"], "--from runs no model"),
        (["an:image", "--from", ".", "--max-size", "much"], "is no size"),
        (["an:image", "--from", ".", "--tag", "Bad Name:x"], "--tag"),
        (["an:image", "--from", ".", "--tag", "name"], "it has no tag"),
        ([".", "--seed"], "are for images"),
        ([".", "--no-seed"], "are for images"),
        ([".", "--from", "."], "are for images"),
        (["."], "--out is missing"),
    ],
)
def test_wrong_usage_is_told_without_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    with pytest.raises(ConfigError) as caught:
        CliRunner().invoke(cli, ["warm", *words], standalone_mode=False, catch_exceptions=False)
    assert said in str(caught.value)


def test_the_script_is_printed_as_it_is() -> None:
    result = CliRunner().invoke(cli, ["warm", "--script"], standalone_mode=False)
    assert result.output.startswith("#!/bin/sh\n")


def test_the_made_up_cache_is_none(tmp_path: Path) -> None:
    files = [path for path in made_up_cache(tmp_path).rglob("*") if path.is_file()]
    assert all(b"MADE UP" in path.read_bytes() for path in files)
