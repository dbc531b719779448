"""The page as HTML: one file that asks nobody for anything.

Labels, records and reports may come from anywhere: every value is escaped, and a policy in the page lets no
script and no style run but its own, which it names by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ortimg.core.report import Page
from ortimg.core.report_words import counted

_FOLDER = "ortimg.reporting"


def as_html(page: Page) -> str:
    """The file's text. The same page gives the same text."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["counted"] = counted
    environment.filters["breakable"] = _breakable
    style, script = (_compact(_text(name)) for name in ("page.css", "page.js"))
    text = environment.from_string(_text("page.html.j2")).render(
        page=page,
        style=Markup(style),  # ours, not a value
        script=Markup(script),
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
    )
    return _compact(text)


def _compact(text: str) -> str:
    """Without blank lines and blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def _breakable(identifier: str) -> Markup:
    """A long name that may be broken after its hyphens."""
    return Markup("-<wbr>").join(identifier.split("-"))


def _text(name: str) -> str:
    return (files(_FOLDER) / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
