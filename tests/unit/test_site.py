"""The pages of the docs site: which there are, where links go, and that none leads nowhere.

The site itself is built and looked at in tests/browser/test_site.py.
"""

from __future__ import annotations

import pytest
from make_site import ROOT, read_site
from site_pages import GUIDE, BrokenLinkError, Language, Page, Site, pages_of, title_of

SITE = read_site()
FILES = {
    "README.md": "file",
    "README.zh-CN.md": "file",
    "docs/doctor.md": "file",
    "docs/guide/cpp.md": "file",
    "docs/guide/cpp.zh.md": "file",
    "docs/guide/faults.zh.md": "file",
    "docs/gpu-runs/README.md": "file",
    "docs/gpu-runs/a/run.json": "file",
    "examples/service/README.md": "file",
    "examples/service/main.cpp": "file",
    "examples": "folder",
    "examples/service": "folder",
}
SMALL = Site(pages_of(FILES), FILES.get)


def page(source: str) -> Page:
    (found,) = [one for one in SMALL.pages if one.source == source]
    return found


def staged(source: str, text: str) -> str:
    return SMALL.staged(page(source), text)[0]


def test_pages_and_their_places() -> None:
    assert {one.source: one.place for one in SMALL.pages} == {
        "README.md": "index.html",
        "README.zh-CN.md": "zh/index.html",
        "docs/doctor.md": "doctor.html",
        "docs/guide/cpp.md": "guide/cpp.html",
        "docs/guide/cpp.zh.md": "zh/guide/cpp.html",
        "docs/guide/faults.zh.md": "zh/guide/faults.html",
        "docs/gpu-runs/README.md": "gpu-runs/index.html",
        "examples/service/README.md": "examples/service.html",
    }
    assert SMALL.twin(page("docs/guide/cpp.md")) == page("docs/guide/cpp.zh.md")
    assert SMALL.twin(page("docs/doctor.md")) is None


@pytest.mark.parametrize(
    ("source", "link", "becomes"),
    [
        ("README.md", "[a](docs/doctor.md#checks)", "[a](doctor.md#checks)"),
        ("README.md", "[a](docs/gpu-runs/README.md)", "[a](gpu-runs/index.md)"),
        ("docs/guide/cpp.md", "[a](../doctor.md)", "[a](../doctor.md)"),
        ("docs/guide/cpp.md", "[中文](cpp.zh.md)", '<a href="../zh/guide/cpp.html">中文</a>'),
        ("docs/guide/cpp.zh.md", "[a](faults.zh.md#x)", "[a](faults.md#x)"),
        ("docs/guide/cpp.zh.md", "[`a`](../doctor.md#x)", '<a href="../../doctor.html#x">`a`</a>'),
        ("docs/guide/cpp.md", "[a](../../examples/service/)", "[a](../examples/service.md)"),
        (
            "docs/guide/cpp.md",
            "[a](../../examples/service/main.cpp)",
            '<a href="../files/examples/service/main.cpp">a</a>',
        ),
        ("README.md", "[a](examples)", '<a href="files/examples/index.html">a</a>'),
        (
            "docs/gpu-runs/README.md",
            "![A b](a/run.json)",
            '<img src="../files/docs/gpu-runs/a/run.json" alt="A b">',
        ),
        ("README.zh-CN.md", '<img src="docs/doctor.md">', '<img src="../doctor.html">'),
        ("README.md", "[a](https://example.com/x.md) [b](#b)", "[a](https://example.com/x.md) [b](#b)"),
        ("README.md", "`[a](nothing.md)`", "`[a](nothing.md)`"),
        (
            "README.md",
            "```sh run\n[a](nothing.md) <!-- x -->\n```\n",
            "```sh run\n[a](nothing.md) <!-- x -->\n```\n",
        ),
        ("README.md", "<!-- run: host -->\na\n<!--\ntwo lines -->\nb", "a\nb"),
    ],
)
def test_where_links_go(source: str, link: str, becomes: str) -> None:
    assert staged(source, link) == becomes


def test_the_files_that_links_need_are_told() -> None:
    text = "[a](docs/gpu-runs/a/run.json) [b](examples) [c](docs/doctor.md)"
    assert SMALL.staged(page("README.md"), text)[1] == {"docs/gpu-runs/a/run.json", "examples"}


@pytest.mark.parametrize("target", ["nothing.md", "docs/guide/nothing", "../../outside.md"])
def test_a_link_that_leads_nowhere_is_told(target: str) -> None:
    with pytest.raises(BrokenLinkError, match=f"README.md: {target}"):
        staged("README.md", f"See [a]({target}).")


@pytest.mark.parametrize("one", SITE.pages, ids=lambda one: str(one.source))
def test_no_link_of_a_page_leads_nowhere(one: Page) -> None:
    """To files and pages; links to headings are checked by the build."""
    text = (ROOT / one.source).read_text("utf-8")
    assert title_of(text)
    SITE.staged(one, text)


def test_the_guide_is_whole_in_both_languages() -> None:
    for language in Language:
        there = {one.name for one in SITE.pages if one.language is language}
        assert {f"guide/{name}" for name in (*GUIDE, "index")} <= there


def test_no_page_of_the_guide_is_left_out_of_its_order() -> None:
    names = {one.name.removeprefix("guide/") for one in SITE.pages if one.name.startswith("guide/")}
    assert names == {*GUIDE, "index"}
