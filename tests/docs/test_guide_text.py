"""Every page of the guide keeps the rules of tests/guide.py, and its Chinese twin says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from guide import GUIDE, RUN, TWIN, Kind, english_pages, lines_of, read_page
from guide_prose import dead_links, differences, in_order
from readme import ROOT, blocks, commands, fault_of

from ortimg.project import load_project

PAGES = {read_page(path).name: path for path in english_pages()}
ORDER = (
    *("archive", "which-version", "using-an-image", "by-hand", "cpp", "python", "options", "on-the-gpu"),
    *("warm-up", "faults", "measuring", "upgrading", "security"),
)


def told(path: Path, faults: list[str]) -> str:
    return "\n".join(f"{path.relative_to(ROOT)}:{fault}" for fault in faults)


def both(path: Path) -> list[Path]:
    return [path, twin] if (twin := read_page(path).twin).exists() else [path]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_becomes_of_it(name: str) -> None:
    for path in both(PAGES[name]):
        faults = [*read_page(path).faults]
        assert not faults, told(path, faults)


@pytest.mark.parametrize("name", PAGES)
def test_every_image_of_a_block_is_one_of_ours(name: str) -> None:
    plan = load_project(ROOT).plan
    known = {f"{plan.repository}:{tag}" for cell in plan.cells for tag in (cell.identifier, *cell.tags)}
    for step in read_page(PAGES[name]).steps:
        if step.marker.kind is Kind.IMAGE:
            assert step.marker.value in known | {"debian:12", "debian:13"}, step.block.line


@pytest.mark.parametrize("name", PAGES)
def test_every_ortimg_command_between_the_blocks_exists_with_its_options(name: str) -> None:
    for path in both(PAGES[name]):
        text = path.read_text("utf-8")
        run = {line for block in blocks(text) for line in lines_of(block)}
        found = [each for each in commands(text) if each.words[0] == "ortimg" and each.line not in run]
        faults = [f"{each.line}: {fault}" for each in found if (fault := fault_of(each))]
        assert not faults, told(path, faults)


@pytest.mark.parametrize("name", PAGES)
def test_no_link_is_dead(name: str) -> None:
    for path in both(PAGES[name]):
        dead = [*dead_links(path, path.read_text("utf-8"))]
        assert not dead, told(path, dead)


@pytest.mark.parametrize("name", [name for name, path in PAGES.items() if path.parent == GUIDE])
def test_every_page_of_the_guide_has_a_twin(name: str) -> None:
    twin = read_page(PAGES[name]).twin
    assert twin.exists()


@pytest.mark.parametrize("name", PAGES)
def test_the_chinese_page_has_the_same_sections_and_blocks(name: str) -> None:
    page = read_page(PAGES[name])
    if page.twin.exists():  # the test above demands it of the guide
        found = [*differences(page, read_page(page.twin))]
        assert not found, told(page.path, found)


def test_no_chinese_page_is_alone() -> None:
    alone = [
        path
        for path in GUIDE.glob(f"*{TWIN}")
        if not path.with_name(path.name[: -len(TWIN)] + ".md").exists()
    ]
    assert not alone


@pytest.mark.parametrize("suffix", [".md", TWIN])
def test_the_index_lists_the_pages_in_the_order_of_reading(suffix: str) -> None:
    text = (GUIDE / f"index{suffix}").read_text("utf-8")
    assert in_order(text, [f"{name}{suffix}" for name in ORDER])
    assert {path.name.split(".")[0] for path in GUIDE.glob("*.md")} <= {"index", *ORDER}


def test_most_blocks_are_run() -> None:
    """A guide whose every block says "not run" would pass all the rest."""
    steps = [step for path in PAGES.values() for step in read_page(path).steps]
    run = [step for step in steps if step.marker.kind in RUN]
    assert len(run) > len(steps) / 3
