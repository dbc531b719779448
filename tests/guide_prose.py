"""What pages of the guide are held to besides their blocks: links that lead somewhere, twins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from guide import Page, lines_of
from readme import blocks

_HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$")


def headings(text: str) -> list[tuple[int, str]]:
    """Level and words of each heading, in order."""
    inside = {line for block in blocks(text) for line in lines_of(block)}
    numbered = enumerate(text.splitlines(), 1)
    found = [_HEADING.match(line) for number, line in numbered if number not in inside]
    return [(len(match[1]), match[2]) for match in found if match]


def anchors(text: str) -> set[str]:
    """What a link may say behind the "#", as GitHub makes it of the headings."""
    found: dict[str, int] = {}
    result = set()
    for _, words in headings(text):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", words).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        result.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return result


def dead_links(path: Path, text: str) -> Iterator[str]:
    """Relative links of the page that lead nowhere, as "LINE: link"."""
    inside = {line for block in blocks(text) for line in lines_of(block)}
    for number, line in enumerate(text.splitlines(), 1):
        if number in inside:
            continue
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file) if file else path
            if target != path and not target.exists():
                yield f"{number}: {link}: there is no such file"
            elif anchor and target.suffix == ".md":
                there = anchors(text if target == path else target.read_text("utf-8"))
                if anchor not in there:
                    yield f"{number}: {link}: there is no such heading"


def differences(page: Page, twin: Page) -> Iterator[str]:
    """Where the Chinese page has not the sections, blocks and markers of the English one."""
    ours = [level for level, _ in headings(page.text)]
    theirs = [level for level, _ in headings(twin.text)]
    if ours != theirs:
        yield f"headings of levels {ours}, and {theirs} there"
    mine, other = [*blocks(page.text)], [*blocks(twin.text)]
    if len(mine) != len(other):
        yield f"{len(mine)} blocks, and {len(other)} there"
    for one, two in zip(mine, other, strict=False):
        if (one.marker, one.info, one.text) != (two.marker, two.info, two.text):
            yield f"{one.line}: the block differs from line {two.line} there"


def in_order(text: str, names: Sequence[str]) -> bool:
    """Whether a page links to these pages, each, in this order."""
    places = [text.find(f"]({name})") for name in names]
    return -1 not in places and all(one < two for one, two in pairwise(places))
