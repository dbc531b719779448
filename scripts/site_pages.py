"""The pages of the docs site, and where their links go. Pure: text in, text out.

The repository's Markdown is the source, as it stands. README.md is the first page; a page of docs/guide has a
Chinese twin. Links that leave the pages, to a record or a program, go to a copy of that file on the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

GUIDE = (
    *("archive", "which-version", "using-an-image", "by-hand", "cpp", "python", "options"),
    *("on-the-gpu", "warm-up", "faults", "measuring", "upgrading", "security"),
)
FILES = "files"  # folder of the site with copies of the repository's files


class Language(StrEnum):
    """What a page is written in; the value is the one of HTML."""

    ENGLISH = "en"
    CHINESE = "zh-CN"

    @property
    def folder(self) -> str:
        """Where its pages lie on the site, with a slash at the end where there is a name."""
        return "" if self is Language.ENGLISH else "zh/"


@dataclass(frozen=True)
class Page:
    """A Markdown file of the repository as a page."""

    source: str  # path in the repository: "docs/guide/cpp.zh.md"
    language: Language
    name: str  # path on the site, of its language, without suffix: "guide/cpp"

    @property
    def place(self) -> str:
        """Path of the HTML file on the site."""
        return f"{self.language.folder}{self.name}.html"


class BrokenLinkError(Exception):
    """A link that leads nowhere: the text is one line, `page: link`."""


def pages_of(paths: Iterable[str]) -> tuple[Page, ...]:
    """The pages among the `paths` of a repository's files."""
    return tuple(page for path in sorted(paths) if (page := _page(path)) is not None)


def _page(path: str) -> Page | None:
    if path in ("README.md", "README.zh-CN.md"):
        return Page(path, Language.ENGLISH if path == "README.md" else Language.CHINESE, "index")
    if path in ("CONTRIBUTING.md", "CHANGELOG.md"):
        return Page(path, Language.ENGLISH, path.removesuffix(".md").lower())
    if match := re.fullmatch(r"examples/([\w-]+)/README\.md", path):
        return Page(path, Language.ENGLISH, f"examples/{match[1]}")
    if not (match := re.fullmatch(r"docs/((?:[\w-]+/)*)([\w-]+)(\.zh)?\.md", path)):
        return None
    name = match[1] + ("index" if match[2] == "README" else match[2])
    return Page(path, Language.CHINESE if match[3] else Language.ENGLISH, name)


@dataclass(frozen=True)
class Site:
    """All pages; `exists` says what a path of the repository is: "file", "folder", or None."""

    pages: tuple[Page, ...]
    exists: Callable[[str], str | None]

    def twin(self, page: Page) -> Page | None:
        """The same page in the other language."""
        return next(
            (one for one in self.pages if one.name == page.name and one.language is not page.language), None
        )

    def staged(self, page: Page, text: str) -> tuple[str, frozenset[str]]:
        """The page's text for the generator, and the files of the repository that its links need on the site.

        Comments (the markers of the tests) are gone. Raises BrokenLinkError.
        """
        files: set[str] = set()

        def link(match: re.Match[str]) -> str:
            words, target = match["words"], match["target"]
            found = self._target(page, target, files)
            if found is None:
                return match[0]
            # A link to another tree is none that the generator knows: it stays HTML.
            return f"[{words}]({found.address})" if found.known else f'<a href="{found.address}">{words}</a>'

        def picture(match: re.Match[str]) -> str:
            found = self._target(page, match["target"], files)
            address = match["target"] if found is None else found.address
            if "words" in match.groupdict():
                return f'<img src="{address}" alt="{match["words"]}">'
            return f"{match['before']}{address}{match['after']}"

        def prose(part: str) -> str:
            part = _IMAGE.sub(picture, _SOURCE.sub(picture, _COMMENT.sub("", part)))
            return _LINK.sub(link, part)

        return _outside_code(text, prose), frozenset(files)

    def _target(self, page: Page, target: str, files: set[str]) -> _Target | None:
        """None: the link stays as it is, out of the repository or on the page itself."""
        if re.match(r"[a-z][a-z+.-]*:|#", target):
            return None
        path, hash_, anchor = target.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path))
        here = posixpath.dirname(page.place)
        for candidate in (full, f"{full}/README.md"):
            other = next((one for one in self.pages if one.source == candidate), None)
            if other is not None and other.language is page.language:
                name = posixpath.relpath(other.name, posixpath.dirname(page.name))
                return _Target(f"{name}.md{hash_}{anchor}", known=True)
            if other is not None:
                return _Target(f"{posixpath.relpath(other.place, here)}{hash_}{anchor}", known=False)
        kind = self.exists(full)
        if kind is None or full.startswith(".."):
            raise BrokenLinkError(f"{page.source}: {target}")
        files.add(full)
        end = "/index.html" if kind == "folder" else ""
        return _Target(f"{posixpath.relpath(f'{FILES}/{full}', here)}{end}", known=False)


@dataclass(frozen=True)
class _Target:
    address: str
    known: bool  # to the generator


_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=indent)(?P=fence)[ ]*$", re.M | re.S
)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
_COMMENT = re.compile(r"^ *<!--.*?-->[ ]*\n?", re.M | re.S)
_LINK = re.compile(r"(?<!!)\[(?P<words>(?:[^\[\]]|!?\[[^\]]*\](?:\([^)]*\))?)*)\]\((?P<target>[^)\s]+)\)")
_IMAGE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_SOURCE = re.compile(r'(?P<before>(?:src|srcset|href)=")(?P<target>[^"]+)(?P<after>")')


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text` with `change` made in its prose; code stays byte for byte."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    hidden = _CODE.sub(keep, _FENCE.sub(keep, text))
    changed = change(hidden)
    while "\0" in changed:  # code in the words of a link, a fence in a list
        changed = re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], changed)
    return changed


def title_of(text: str) -> str:
    """The first heading. Raises ValueError for a page without one."""
    match = re.search(r"^# (.+)$", text, re.M)
    if match is None:
        raise ValueError("no heading")
    return match[1].strip()


def contents(names: Iterable[str]) -> str:
    """The generator's hidden list of the pages below one."""
    return "\n```{toctree}\n:hidden:\n\n" + "".join(f"{name}\n" for name in names) + "```\n"


def overview(title: str, lead: str, rows: Mapping[str, str]) -> str:
    """A page that lists others: address → title."""
    text = f"# {title}\n\n{lead}\n\n"
    return text + "".join(f"- [{words}]({address})\n" for address, words in rows.items())
