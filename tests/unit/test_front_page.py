"""Tables between a README's markers, and the schema for editors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from wishes import images, matrix, planned

from ortimg.cli import cli
from ortimg.core.front_page import has_markers, tags_table, with_bases, with_tables
from ortimg.data import images_schema
from ortimg.errors import ConfigError

TABLES = {"fit": "| a |\n", "tags": "| b |\n"}
EMPTY = "# x\n<!-- ortimg:fit -->\n<!-- /ortimg:fit -->\nmore\n"
CONFIG = images(
    matrix=matrix(["1.16.2", "1.17.1"], ["11.8"], ["8"], ["debian12", "rocky9"]),
    tags={"latest": "1.17.1-cuda11.8-cudnn8-debian12", "{ort_minor}": "*-debian12"},
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "images.yaml").write_text(CONFIG)
    return tmp_path


def render(project: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(project), "render", *options])


def test_between_the_markers_and_nowhere_else() -> None:
    filled = "# x\n<!-- ortimg:fit -->\n| a |\n<!-- /ortimg:fit -->\nmore\n"
    assert with_tables(EMPTY, TABLES) == filled
    assert with_tables(filled, TABLES) == filled
    assert with_tables(filled.replace("| a |", "old\n\nolder"), TABLES) == filled
    assert with_tables("no marker: `<!-- ortimg:fit -->`\n", TABLES) == "no marker: `<!-- ortimg:fit -->`\n"
    assert not has_markers("no marker: `<!-- ortimg:fit -->`\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n<!-- ortimg:fit -->\n", 'README.md:2: the table "fit" has no end'),
        ("<!-- /ortimg:fit -->\n", 'README.md:1: the table "fit" ends here without a beginning'),
        (
            "<!-- ortimg:fit -->\n<!-- ortimg:tags -->\n<!-- /ortimg:tags -->\n",
            'README.md:1: the table "fit" has no end before line 2',
        ),
        ("<!-- ortimg:tag -->\n", 'README.md:1: there is no table "tag"; did you mean "tags"?'),
    ],
)
def test_markers_without_a_partner(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_tables(text, TABLES)
    assert caught.value.problems == (expected,)


def test_tables() -> None:
    cells = planned(CONFIG).cells
    assert tags_table(cells) == (
        "| image | also called |\n"
        "| --- | --- |\n"
        "| `1.16.2-cuda11.8-cudnn8-debian12` | `1.16` |\n"
        "| `1.17.1-cuda11.8-cudnn8-debian12` | `latest`, `1.17` |\n"
    )
    rows = "| a |\n|---|\n| 1.16.2 |\n| 1.17.1 |\n"
    assert with_bases(rows, cells) == (
        "| a | bases |\n|---|---|\n| 1.16.2 | debian12, rocky9 |\n| 1.17.1 | debian12, rocky9 |\n"
    )


def test_a_readme_follows_images_yaml(project: Path) -> None:
    readme = project / "README.md"
    readme.write_text(EMPTY.replace("fit", "tags"))
    assert render(project).exit_code == 0
    assert "`1.16.2-cuda11.8-cudnn8-debian12` | `1.16` |" in readme.read_text()
    assert readme.read_text().startswith("# x\n") and readme.read_text().endswith("more\n")
    assert render(project, "--check").exit_code == 0
    (project / "images.yaml").write_text(CONFIG.replace("latest", "newest"))
    stale = render(project, "--check")
    assert stale.exit_code == 1
    assert "+| `1.17.1-cuda11.8-cudnn8-debian12` | `newest`, `1.17` |" in stale.stdout
    assert "+++ b/README.md" in stale.stdout


def test_the_fit_table(project: Path) -> None:
    readme = project / "README.md"
    readme.write_text(EMPTY)
    assert render(project).exit_code == 0
    head, line, *rows = readme.read_text().splitlines()[2:-2]
    assert head.endswith("| not known | bases |")
    assert line.count("|") == head.count("|")
    assert [row.split(" | ")[0] for row in rows] == ["| 1.16.2", "| 1.17.1"]
    assert all("450.80.02" in row and row.endswith(" | debian12, rocky9 |") for row in rows)


def test_a_readme_without_markers_is_left_alone(project: Path) -> None:
    for raw in (b"# x\n", b"\xff <!-- not UTF-8, not ours\n"):
        (project / "README.md").write_bytes(raw)
        assert render(project).exit_code == 0
        assert render(project, "--check").exit_code == 0
        assert (project / "README.md").read_bytes() == raw


def test_a_translation_follows_too(project: Path) -> None:
    twin = project / "README.zh-CN.md"
    twin.write_text(EMPTY.replace("more", "更多"), "utf-8")
    assert render(project).exit_code == 0
    assert "| 1.16.2 |" in twin.read_text("utf-8") and twin.read_text("utf-8").endswith("更多\n")
    assert not (project / "README.md").exists()
    twin.write_text("<!-- ortimg:fit -->\n")
    assert render(project).stderr == 'README.zh-CN.md:1: the table "fit" has no end\n'


def test_the_schema_for_editors_is_the_one_that_checks(project: Path) -> None:
    assert render(project).exit_code == 0
    path = project / "images.schema.json"
    assert json.loads(path.read_text()) == images_schema()
    path.write_text("{}")
    assert render(project, "--check").exit_code == 1
    path.unlink()
    stale = render(project, "--check")
    assert "1 missing" in stale.stderr
