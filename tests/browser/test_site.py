"""The docs site in a real Chromium: both languages, light and dark, desktop and phone, search; and its links.

`make test-browser` installs what this needs. Pictures are left in the folder that ORTIMG_PICTURES names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON = ROOT / os.environ.get("DOCS_VENV", ".venv-docs") / "bin" / "python"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 300  # seconds; the pages below take about a minute on two idle cores
NEEDED = {
    "chromium": CHROMIUM,
    "node": shutil.which("node"),
    "its modules": (HERE / "node_modules").is_dir(),
    "docs environment": PYTHON.exists(),
}
MISSING = [name for name, there in NEEDED.items() if not there]

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"NOT CHECKED IN A BROWSER: no {', no '.join(MISSING)}; run `make test-browser`"
)
Check = Callable[..., list[str]]
# Each with words to search for, and where one of the hits must lead.
PAGES = (
    {"path": "index.html", "lang": "en", "search": "compute cache", "hit": "/warm"},
    {"path": "zh/index.html", "lang": "zh-CN", "search": "驱动", "hit": "/zh/guide/"},
    {"path": "guide/on-the-gpu.html", "lang": "en", "search": "profile", "hit": "/guide/on-the-gpu"},
    {"path": "zh/guide/warm-up.html", "lang": "zh-CN", "search": "预热", "hit": "/zh/guide/warm-up"},
)
ONE = PAGES[2]


@pytest.fixture(scope="module")
def site() -> Path:
    """The site, built by what `make docs` runs."""
    done = subprocess.run(
        [PYTHON, ROOT / "scripts" / "make_site.py"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "site"


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """What Chromium and axe-core say of pages of a site."""
    pictures = Path(os.environ.get("ORTIMG_PICTURES", tmp_path / "pictures"))
    pictures.mkdir(parents=True, exist_ok=True)

    def run(folder: Path, *pages: dict[str, str], view: str = "") -> list[str]:
        done = subprocess.run(
            ["node", HERE / "site.mjs", pictures, folder, json.dumps(pages)],
            env={**os.environ, "CHROMIUM": str(CHROMIUM), "VIEW": view},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        faults: list[str] = json.loads(done.stdout)["faults"]
        return faults

    return run


def test_the_site_is_sound_in_a_browser(site: Path, check: Check) -> None:
    assert check(site, *PAGES) == []


FAULTS = {
    "outside": (
        "</h1>",
        '</h1><img alt="" src="https://images.example/x.png">',
        "asked for https://images.example",
    ),
    "missing": ("</h1>", '</h1><img alt="" src="x.png">', "404"),
    "contrast": (
        "</h1>",
        '</h1><p style="color: #a9adb5; background: #fff">words</p>',
        "axe serious color-contrast",
    ),
    "name": ("</h1>", '</h1><button type="button"></button>', "axe critical button-name"),
    "wide": ("</h1>", '</h1><div style="width: 900px">words</div>', "wider than the screen"),
    "marker": ("</h1>", "</h1><p>&lt;!-- run: host --&gt;</p>", "it shows"),
    "language": ('lang="en"', 'lang="de"', "it says to be in de"),
    "dark": ("</head>", "<style>body { background: #fff !important }</style></head>", "it is light"),
    "search": ('base-url="../"', 'base-url="/elsewhere/"', "a hit leads nowhere"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_check_sees_a_page_with_a_fault(site: Path, check: Check, tmp_path: Path, name: str) -> None:
    """A check that cannot fail is none."""
    right, wrong, said = FAULTS[name]
    copy = tmp_path / "site"
    shutil.copytree(site, copy, ignore=shutil.ignore_patterns("files"))
    text = (copy / ONE["path"]).read_text("utf-8")
    assert right in text
    (copy / ONE["path"]).write_text(text.replace(right, wrong), "utf-8")
    faults = check(copy, ONE, view="phone-dark")
    assert any(said in fault for fault in faults), faults


class Reader(HTMLParser):
    """Where a page's links go, and what can be linked to on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value is not None and tag != "base":
                self.links.append(value)


def dead_links(folder: Path) -> list[str]:
    """Links of every page to a file or a heading that is not there, as `page: link`."""
    pages = {path: Reader(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        here = path.relative_to(folder).as_posix()
        for link in page.links:
            full = urlsplit(urljoin(f"http://site/{here}", link))
            if full.netloc != "site":
                continue
            target = folder / unquote(full.path).lstrip("/")
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(full.fragment)
            heading = not anchor or target not in pages or anchor in pages[target].ids
            if not target.is_file() or not heading:
                dead.append(f"{here}: {link}")
    return dead


def test_no_link_of_the_site_is_dead(site: Path, tmp_path: Path) -> None:
    assert dead_links(site) == []
    (tmp_path / "a.html").write_text('<a href="b.html">x</a><a href="#no">y</a><a id="yes" href="#yes">z</a>')
    assert dead_links(tmp_path) == ["a.html: b.html", "a.html: #no"]


def test_each_page_leads_to_its_twin(site: Path) -> None:
    for name in ("index.html", "guide/cpp.html"):
        english, chinese = (Reader((site / place / name).read_text("utf-8")) for place in ("", "zh"))
        up = "../" * name.count("/")
        assert f"{up}zh/{name}" in english.links
        assert f"{up}../{name}" in chinese.links
