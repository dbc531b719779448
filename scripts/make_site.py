"""Builds the docs site into build/site: English, Chinese below zh/, and a search that works offline.

Run: `make docs`. Pages are staged into build/site-source; Sphinx makes HTML of them. A warning, such as of a
link to a heading that is not there, is an error. Pagefind writes the search index.
"""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from site_pages import (
    FILES,
    GUIDE,
    BrokenLinkError,
    Language,
    Page,
    Site,
    contents,
    overview,
    pages_of,
    title_of,
)

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "site-source"
OUTPUT = ROOT / "build" / "site"
CONFIG = ROOT / "docs-site"
# What each overview page is called and says, by language.
TOPICS = {
    Language.ENGLISH: ("Topics", "One page a subject, for those who want it whole."),
    Language.CHINESE: ("专题", "每个主题一页，内容完整；目前只有英文。"),  # noqa: RUF001
}
EXAMPLES = {
    Language.ENGLISH: ("Examples", "Programs that work from a clone of the repository."),
    Language.CHINESE: ("示例", "克隆仓库即可运行的程序；说明目前只有英文。"),  # noqa: RUF001
}


def read_site(root: Path = ROOT) -> Site:
    """The site of the files that git knows, or would know."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    paths = [path for path in done.stdout.splitlines() if (root / path).is_file()]

    def exists(path: str) -> str | None:
        full = root / path
        return "file" if full.is_file() else "folder" if full.is_dir() else None

    return Site(pages_of(paths), exists)


def stage(site: Site, root: Path = ROOT, target: Path = SOURCE) -> frozenset[str]:
    """Writes the generator's sources; returns the files that the site needs. Raises BrokenLinkError."""
    shutil.rmtree(target, ignore_errors=True)
    files: set[str] = set()
    broken: list[str] = []
    for page in site.pages:
        text = (root / page.source).read_text("utf-8")
        try:
            staged, needed = site.staged(page, text)
        except BrokenLinkError as error:
            broken.append(str(error))
            continue
        files |= needed
        _write(target / page.language.value / f"{page.name}.md", staged + _below(site, page))
    if broken:
        raise BrokenLinkError("\n".join(broken))
    for language in Language:
        _overviews(site, root, target, language)
        twins = {
            page.name: twin.place
            for page in site.pages
            if page.language is language and (twin := site.twin(page))
        }
        _write(target / language.value / "twins.json", json.dumps(twins))
    return frozenset(files)


def _below(site: Site, page: Page) -> str:
    there = {one.name for one in site.pages if one.language is page.language}
    if page.name == "index":
        word = {Language.ENGLISH: "Guide", Language.CHINESE: "指南"}[page.language]
        below = [*([f"{word} <guide/index>"] if "guide/index" in there else []), "topics", "examples"]
        return contents(
            [*below, *(name for name in ("gpu-runs/index", "contributing", "changelog") if name in there)]
        )
    if page.name == "guide/index":
        return contents(name for name in GUIDE if f"guide/{name}" in there)
    return ""


def _overviews(site: Site, root: Path, target: Path, language: Language) -> None:
    english = [page for page in site.pages if page.language is Language.ENGLISH]
    topics = [page for page in english if page.source.count("/") == 1 and page.source.startswith("docs/")]
    examples = [page for page in english if page.source.startswith("examples/")]
    for name, (title, lead), rows in (
        ("topics", TOPICS[language], topics),
        ("examples", EXAMPLES[language], examples),
    ):
        folder = target / language.value
        titles = {page: title_of((root / page.source).read_text("utf-8")) for page in rows}
        if language is Language.ENGLISH:
            text = overview(title, lead, {f"{page.name}.md": words for page, words in titles.items()})
            text += contents(page.name for page in rows)
        else:
            lines = (f'- <a href="../{page.place}" lang="en">{words}</a>\n' for page, words in titles.items())
            text = f"# {title}\n\n{lead}\n\n{''.join(lines)}"
        _write(folder / f"{name}.md", text)


def copy_files(files: Iterable[str], root: Path = ROOT, output: Path = OUTPUT) -> None:
    """Files as they are; a folder gets a page that lists what git knows of it."""
    for path in sorted(files):
        place = output / FILES / path
        if (root / path).is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / path, place)
            continue
        done = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", path],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        inside = [one for one in sorted(done.stdout.splitlines()) if (root / one).is_file()]
        copy_files(inside, root, output)
        _write(place / "index.html", _listing(path, [str(Path(one).relative_to(path)) for one in inside]))


def _listing(path: str, names: Iterable[str]) -> str:
    rows = "".join(f'<li><a href="{html.escape(name)}">{html.escape(name)}</a></li>\n' for name in names)
    title = html.escape(path)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">\n'
        f"</head><body><main><h1>{title}</h1>\n<ul>\n{rows}</ul></main></body></html>\n"
    )


def generate(language: Language, source: Path = SOURCE, output: Path = OUTPUT) -> None:
    """HTML of one language. Raises CalledProcessError: Sphinx has told on stderr what is wrong."""
    folder = output / language.folder
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-n", "-W", "--keep-going", "-q", "-E"]
    command += ["-c", str(CONFIG), "-d", str(source / f"doctrees-{language.value}")]
    command += ["-D", f"language={language.value.replace('-', '_')}"]
    subprocess.run([*command, str(source / language.value), str(folder)], check=True)
    for left in ("objects.inv", ".buildinfo", "_sources", "_static/webpack-macros.html"):
        path = folder / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def index(output: Path = OUTPUT) -> None:
    """The search: an index of each language, in the folder pagefind/ of the site."""
    command = [sys.executable, "-m", "pagefind", "--site", str(output), "--silent"]
    command += ["--root-selector", "article.bd-article", "--exclude-selectors", ".headerlink"]
    subprocess.run(command, check=True)


def main() -> None:
    """What `make docs` runs."""
    site = read_site()
    try:
        files = stage(site)
    except BrokenLinkError as error:
        sys.exit(f"error: links that lead nowhere:\n{error}")
    shutil.rmtree(OUTPUT, ignore_errors=True)
    for language in Language:
        generate(language)
    copy_files(files)
    index()
    print(
        f"{OUTPUT.relative_to(ROOT)}: {len(site.pages)} pages; `make docs-serve` shows them", file=sys.stderr
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
