"""What README.md and CONTRIBUTING.md name is there: commands, options, make targets, files.

The blocks that are fenced as "sh run" are run in tests/docker/test_readme_runs.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from readme import ROOT, RUN, SHELL, Block, Command, blocks, commands, fault_of

from ortimg.cli import VERBS, cli

FILES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "ortimg/data/init/README.md")
MAKEFILES = {"ortimg/data/init/README.md": ROOT / "ortimg" / "data" / "init" / "Makefile"}


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def every(name: str, program: str) -> list[Command]:
    return [command for command in commands(text_of(name)) if command.words[0] == program]


def targets(makefile: Path) -> set[str]:
    return set(re.findall(r"^([a-z-]+):(?!=)", makefile.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", FILES)
def test_every_ortimg_command_exists_with_its_options(name: str) -> None:
    found = every(name, "ortimg")
    assert found
    for command in found:
        assert fault_of(command) is None, f"{name}:{command.line}: {' '.join(command.words)}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_has_help(verb: str) -> None:
    assert CliRunner().invoke(cli, [verb, "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("ortimg",), None),
        (("ortimg", "fit", "--driver", "--help"), None),
        (("ortimg", "engine", "start"), None),
        (("ortimg", "brew"), "brew is no command"),
        (("ortimg", "engine", "brew"), "brew is no command of engine"),
        (("ortimg", "fit", "--driver", "--coffee=1"), "fit has no --coffee"),
    ],
)
def test_a_command_that_does_not_exist_is_a_fault(words: tuple[str, ...], fault: str | None) -> None:
    assert fault_of(Command(1, words)) == fault


@pytest.mark.parametrize("name", FILES)
def test_every_make_target_exists(name: str) -> None:
    found = every(name, "make")
    assert found
    there = targets(MAKEFILES.get(name, ROOT / "Makefile"))
    for command in found:
        named = [word for word in command.words[1:] if "=" not in word and not word.startswith("-")]
        named = [word for word in named if re.fullmatch(r"[a-z-]+", word)]
        assert {*named} <= there, f"{name}:{command.line}: {' '.join(command.words)}"


@pytest.mark.parametrize("name", FILES)
def test_every_verb_of_the_readme_table_and_every_linked_file_exists(name: str) -> None:
    for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", text_of(name)):
        assert ((ROOT / name).parent / link).exists(), link


def test_every_verb_is_in_the_readme() -> None:
    named = {command.words[1] for command in every("README.md", "ortimg") if len(command.words) > 1}
    assert set(VERBS) <= named


def test_blocks_of_commands_say_whether_they_are_run() -> None:
    found = [*blocks(text_of("README.md"))]
    assert {block.info for block in found} <= {
        *SHELL,
        "",
        "text",
        "yaml",
        "dockerfile",
        "c",
        "cpp",
        "python",
        "json",
    }
    for block in found:
        if block.info == "":
            assert not re.search(r"^(\$ )?(ortimg|make|docker|pip) ", block.text, re.MULTILINE), block.line


def test_the_two_commands() -> None:
    """`make images` is run, `make test` is what runs it."""
    found = [*blocks(text_of("README.md"))]
    assert any("make images" in block.text for block in found if block.info == RUN)
    shown = [block for block in found if "make test" in block.text.split("\n")]
    assert shown
    assert all(block.info == "sh" for block in shown)


TWINS = ("README.md", "README.zh-CN.md")


def shape(text: str) -> dict[str, object]:
    """What two languages of one text must share."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    rows = [line for line in prose.splitlines() if line.startswith("|")]
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    return {
        "headings": [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)],
        "blocks": [(block.info, block.text) for block in blocks(text)],
        "generated": re.findall(r"^<!-- ortimg:(\w+) -->\n(.*?)^<!-- /", text, re.MULTILINE | re.DOTALL),
        "first columns": [row.split(" | ")[0] for row in rows if row.startswith("| `")],
        "links": [link.replace(".zh.md", ".md") for link in links if link not in TWINS],
        "code": sorted(re.findall(r"`[^`]+`", prose)),
    }


def test_the_readme_says_the_same_in_both_languages() -> None:
    """Headings by level, blocks, generated tables, commands, links, words of code."""
    english, chinese = (shape(text_of(name)) for name in TWINS)
    assert english == chinese
    assert all(english.values())


def test_the_readme_names_its_twin() -> None:
    for name, twin in zip(TWINS, reversed(TWINS), strict=True):
        assert f"]({twin})" in text_of(name)


def test_the_picture_of_the_run_asks_no_other_host_and_has_its_text() -> None:
    """`scripts/record_run.py` makes both."""
    folder = ROOT / "docs" / "images"
    picture, words = (folder / "run.svg").read_text("utf-8"), (folder / "run.txt").read_text("utf-8")
    assert len(picture) < 300_000
    assert "url(" not in picture.replace("url(#", "") and "<image" not in picture
    typed = [line.removeprefix("$ ") for line in words.splitlines() if line.startswith("$ ")]
    assert len(typed) == 3
    for line in typed:
        assert commands_exist(line)
        assert line.replace(" ", "&#160;").replace("'", "&#x27;") in picture


def commands_exist(line: str) -> bool:
    return all(command.words[1] in VERBS for command in commands(f"```sh\n{line}\n```\n"))


EXAMPLE = """\
Use `ortimg list` or
`ortimg build [--available] 'x*'`, it's fine.

```sh run
make images
.venv/bin/ortimg list --json | head
```

```yaml
ortimg: no command
```

```sh
cd x && make test
```
"""


def test_reading_a_file() -> None:
    assert [*blocks(EXAMPLE)] == [
        Block(5, "sh run", "make images\n.venv/bin/ortimg list --json | head\n"),
        Block(10, "yaml", "ortimg: no command\n"),
        Block(14, "sh", "cd x && make test\n"),
    ]
    assert [(command.line, command.words) for command in commands(EXAMPLE)] == [
        (5, ("make", "images")),
        (6, ("ortimg", "list", "--json", "head")),
        (14, ("make", "test")),
        (1, ("ortimg", "list")),
        (2, ("ortimg", "build", "--available", "x*")),
    ]
