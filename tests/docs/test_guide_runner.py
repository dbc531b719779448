"""The runner of the guide's blocks: what it promises them, and that it fails where a page is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from guide import read_page
from guide_runner import BlockError, Runner

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

IMAGE = "onnxruntime-gpu:1.16.2-cuda11.8-cudnn8-debian12"


def block(marker: str, text: str, language: str = "sh") -> str:
    return f"<!-- {marker} -->\n```{language}\n{text}\n```\n\n"


def output(text: str) -> str:
    return block("output", text, "text")


def run(text: str, folder: Path) -> None:
    page = read_page(Path("page.md"), text)
    assert page.faults == ()
    runner = Runner(page, folder / "page")
    try:
        runner.run()
    finally:
        runner.close()


def test_files_carry_from_block_to_block(tmp_path: Path) -> None:
    page = block("file: sub/words.txt", "hello", "text")
    page += block("run: host", "cat sub/words.txt; ls; ortimg --version >here")
    page += output("hello\n…\nimages.lock\nimages.yaml\nsub")
    page += block(f"run: image={IMAGE}", "pwd; cat here")
    page += output("/guide\nortimg, version …")
    run(page, tmp_path)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (block("run: host", "false\ntrue"), "page.md:3: exit code 1, the page says 0"),
        (block("run: host", "false | true"), "exit code 1, the page says 0"),
        (block("run: host exit=2", "true"), "exit code 0, the page says 2"),
        (block("run: host", "echo $UNSET"), "UNSET: unbound variable"),
        (block("run: host", "echo one") + output("two"), "page.md:3: it did not print what line 8 shows"),
        (block("run: host", "echo one; echo two >&2") + output("one"), "it did not print"),
        (block(f"run: image={IMAGE}", "exit 4"), "exit code 4, the page says 0"),
    ],
)
def test_a_block_that_does_not_do_what_its_page_says_fails(page: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BlockError) as caught:
        run(page, tmp_path)
    assert said in str(caught.value)
    assert "--- block" in str(caught.value)


def test_blocks_after_a_failed_one_are_not_run(tmp_path: Path) -> None:
    with pytest.raises(BlockError):
        run(block("run: host", "false") + block("run: host", "touch ../after"), tmp_path)
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize("where", ["host", f"image={IMAGE}"])
def test_a_block_that_hangs_is_ended_with_all_it_started(where: str, tmp_path: Path) -> None:
    page = read_page(Path("page.md"), block(f"run: {where}", "echo begun; sleep infinity | cat"))
    runner = Runner(page, tmp_path / "page", limit=5)
    try:
        with pytest.raises(BlockError, match=r"begun\s+\(no end within 5 s\)"):
            runner.run()
    finally:
        runner.close()


def test_what_a_page_started_is_taken_away_after_a_failure_too(tmp_path: Path) -> None:
    page = block("run: host", "touch ../started") + block("run: host", "false")
    with pytest.raises(BlockError) as caught:
        run(page + block("run: host always", "rm ../started; false"), tmp_path)
    assert not (tmp_path / "started").exists()
    assert "page.md:8" in str(caught.value), "the failure is that of the block that failed first"


def test_a_container_is_what_its_marker_says(tmp_path: Path) -> None:
    page = block(f"run: image={IMAGE} user=10001:10001 root=ro", "id -u; touch mine; touch /etc/x || echo no")
    page += output("10001\ntouch: cannot touch '/etc/x': Read-only file system\nno")
    page += block(f"run: image={IMAGE}", "id -u; ls /sys/class/net")
    page += output("0\nlo")
    run(page, tmp_path)


def test_a_kept_container_has_what_an_earlier_block_left(tmp_path: Path) -> None:
    page = block("run: image=debian:12 keep", "touch /etc/kept")
    page += block("run: image=debian:12 keep", "ls /etc/kept; head -1 /etc/os-release")
    page += output('/etc/kept\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"')
    page += block("run: image=debian:12 exit=2", "ls /etc/kept")
    run(page, tmp_path)
