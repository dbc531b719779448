"""Sphinx's settings for the docs site; `scripts/make_site.py` calls it once for each language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

project = "ortimg"
author = "the authors of ortimg"
copyright = "the authors of ortimg, MIT licence"
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
# A fence's word is its language; what stands behind it ("sh run") is for the tests.
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # a console block with a placeholder in it
templates_path = [str(HERE / "templates")]
exclude_patterns = ["twins.json"]

html_theme = "pydata_sphinx_theme"
html_title = "ortimg"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_sphinx = html_use_index = False
html_favicon = str(HERE / "static" / "icon.svg")
html_context = {"default_mode": "auto"}
html_sidebars = {"**": ["sidebar-nav-bs"], "index": [], "topics": [], "examples": []}
html_theme_options = {
    "logo": {"text": "ortimg"},
    "disable_search": True,  # Pagefind's instead, which knows Chinese words
    "navbar_align": "left",
    "navbar_end": ["language.html", "theme-switcher.html"],
    "navbar_persistent": ["search.html"],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
}


def _page(app: Any, name: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """The page's own way to the other language, and to the root of the site, where the search index lies."""
    chinese = app.config.language == "zh_CN"
    up = "../" * (name.count("/") + chinese)
    twins = json.loads((Path(app.srcdir) / "twins.json").read_text("utf-8"))
    home = "index.html" if chinese else "zh/index.html"
    context["chinese"] = chinese
    context["site_root"] = up or "./"
    context["other_language"] = up + twins.get(name, home)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", _page)
    app.connect("builder-inited", lambda app: setattr(app.builder, "search", False))
