"""Shards of a fleet: each cell once, each heavy layer once, the same on every machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from wishes import cell as wish
from wishes import images, matrix, planned

from ortimg.cli import cli
from ortimg.core.disk_need import CUDA_KEPT, CUDA_MEANWHILE, engine_need
from ortimg.core.model import Cell
from ortimg.core.shards import ShardName, disk_need, parse_size, shards_for, split, weight
from ortimg.errors import ConfigError

ALL = planned(
    images(
        matrix=matrix(
            ["1.16.2", "1.17.1", "1.18.0"], ["11.8", "12.2"], ["8"], ["debian12", "debian13", "rocky9"]
        ),
        include=[
            wish("1.23.2", "12.6", "9"),
            wish("1.23.2", "12.6", "9", "debian13", flavour="devel"),
            wish("1.30.0", "13.0", "9"),
        ],
    )
).cells
SETS = {cell.cuda_set.key for cell in ALL}

some_cells = st.sets(st.integers(0, len(ALL) - 1)).map(lambda at: [ALL[place] for place in sorted(at)])
counts = st.integers(1, 9)


def project(folder: Path) -> Path:
    text = images(include=[wish("1.16.2", "11.8"), wish("1.23.2", "12.6", "9"), wish("1.30.0", "13.0", "9")])
    (folder / "images.yaml").write_text(text)
    return folder


def ortimg(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), *arguments])


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """As a person runs it: errors are lines, not exceptions."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "ortimg", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@given(some_cells, counts)
def test_every_cell_is_in_exactly_one_shard_and_in_its_order(cells: list[Cell], count: int) -> None:
    shards = split(cells, count)
    assert [str(shard.name) for shard in shards] == [f"{number}/{count}" for number in range(1, count + 1)]
    found = [cell.identifier for shard in shards for cell in shard.cells]
    assert sorted(found) == sorted(cell.identifier for cell in cells)
    for shard in shards:
        places = [cells.index(cell) for cell in shard.cells]
        assert places == sorted(places)


@given(some_cells, counts)
def test_no_heavy_layer_is_made_in_two_shards(cells: list[Cell], count: int) -> None:
    shards = split(cells, count)
    for layer in (lambda cell: cell.cuda_set.key, lambda cell: cell.unit_key):
        made = [key for shard in shards for key in {layer(cell) for cell in shard.cells}]
        assert len(made) == len(set(made))


@given(st.permutations(ALL), counts)
def test_the_order_of_the_cells_changes_nothing(cells: list[Cell], count: int) -> None:
    def names(of: list[Cell]) -> list[set[str]]:
        return [{cell.identifier for cell in shard.cells} for shard in split(of, count)]

    assert names(cells) == names([*ALL])


@given(some_cells, counts)
def test_bytes_are_balanced(cells: list[Cell], count: int) -> None:
    """The heaviest shard without its lightest set is no heavier than any other shard (greedy by weight)."""
    shards = split(cells, count)
    heaviest = max(shards, key=lambda shard: weight(shard.cells))
    sets = {cell.cuda_set.key for cell in heaviest.cells}
    if len(sets) > 1:
        parts = [[cell for cell in heaviest.cells if cell.cuda_set.key == key] for key in sets]
        rest = weight(heaviest.cells) - min(weight(part) for part in parts)
        assert rest <= min(weight(shard.cells) for shard in shards)


def test_more_shards_than_cuda_sets_leave_some_empty() -> None:
    shards = split(ALL, len(SETS) + 2)
    assert [bool(shard.cells) for shard in shards] == [True] * len(SETS) + [False] * 2
    assert [shard.need for shard in shards[len(SETS) :]] == [0, 0]


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "1/0", "a/b", "1/4/4", "-1/4", "1/4\n", "²/4", " 1/4"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no shard"):
        ShardName.parse(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("14GB", 14_000_000_000),
        ("14 GB", 14_000_000_000),
        ("13.5GiB", 14_495_514_624),
        ("7", 7),
        ("2M", 2_000_000),
    ],
)
def test_sizes_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "14 XB", "-1GB", "0GB", "1e3", "14GBs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no size"):
        parse_size(text)


@given(st.integers(11, 200))
def test_the_fewest_shards_that_keep_the_budget(gigabytes: int) -> None:
    budget = gigabytes * 10**9
    try:
        shards = shards_for(ALL, budget)
    except ConfigError:
        assert max(shard.need for shard in split(ALL, len(SETS))) > budget
        return
    assert max(shard.need for shard in shards) <= budget
    if len(shards) > 1:
        assert max(shard.need for shard in split(ALL, len(shards) - 1)) > budget


def test_a_set_that_is_too_large_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"CUDA 11\.8-cudnn8 with its 9 cells needs .* the budget is 1\.0 GB"
    ):
        shards_for(ALL, 10**9)
    assert shards_for((), 1)[0].cells == ()


def test_two_cuda_sets_at_once_need_more_than_one_after_the_other() -> None:
    one = [cell for cell in ALL if cell.cuda_set.key == "11.8-cudnn8"][:1]
    other = [cell for cell in ALL if cell.cuda_set.key == "12.2-cudnn8"][:1]
    sizes = [sum(wheel.size for wheel in cells[0].cuda_set.wheels) for cells in (one, other)]
    assert engine_need([*one, *other]) > int((CUDA_KEPT + CUDA_MEANWHILE) * sum(sizes))
    assert engine_need(one) < disk_need(one) < engine_need([*one, *other])
    assert engine_need(one, {"11.8-cudnn8"}) < engine_need(one)


def test_list_shows_a_shard(tmp_path: Path) -> None:
    folder = project(tmp_path)
    whole = ortimg(folder, "list").stdout.splitlines()
    parts = [ortimg(folder, "list", "--shard", f"{number}/2").stdout.splitlines() for number in (1, 2)]
    assert sorted(parts[0] + parts[1]) == sorted(whole)
    assert all(parts)


def test_list_tells_how_many_shards_a_disk_asks_for(tmp_path: Path) -> None:
    found = json.loads(ortimg(project(tmp_path), "list", "--json", "--max-disk", "14GB").stdout)
    assert [row["shard"] for row in found["shards"]] == ["1/3", "2/3", "3/3"]
    assert all(0 < row["bytes"] <= 14 * 10**9 and len(row["cells"]) == 1 for row in found["shards"])
    lines = ortimg(tmp_path, "list", "--max-disk", "14GB").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["--shard", f"{number}/3"] for number in (1, 2, 3)]


@pytest.mark.parametrize("verb", ["build", "fetch", "list"])
def test_an_empty_shard_is_said_and_is_no_fault(tmp_path: Path, verb: str) -> None:
    code, stdout, stderr = run(project(tmp_path), verb, "--shard", "4/4", "--json")
    assert code == 0
    assert stderr == "shard 4/4 is empty: 3 CUDA sets fill 3, none is split\n"
    assert json.loads(stdout)["schema"] == 1
    assert not json.loads(stdout).get("cells")
    assert not json.loads(stdout).get("inputs")


@pytest.mark.parametrize("verb", ["build", "fetch", "list"])
def test_a_shard_that_is_none_is_wrong_usage(tmp_path: Path, verb: str) -> None:
    code, stdout, stderr = run(project(tmp_path), verb, "--shard", "5/4")
    assert (code, stdout) == (2, "")
    assert stderr.splitlines()[0] == 'error: "5/4" is no shard'
