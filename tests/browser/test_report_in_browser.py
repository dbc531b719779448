"""The page of `ortimg report` in a real Chromium: light and dark, desktop and phone, keyboard, screen reader.

`make test-browser` installs what this needs. Pictures are left in the folder that ORTIMG_PICTURES names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pages import full_facts, page, plain_facts

HERE = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 300  # seconds; a page takes about ten on two idle cores
NEEDED = {"chromium": CHROMIUM, "node": shutil.which("node"), "its modules": (HERE / "node_modules").is_dir()}
MISSING = [name for name, there in NEEDED.items() if not there]

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"NOT CHECKED IN A BROWSER: no {', no '.join(MISSING)}; run `make test-browser`"
)
Check = Callable[..., list[str]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """What Chromium and axe-core say of pages, by the names of their files."""
    pictures = Path(os.environ.get("ORTIMG_PICTURES", tmp_path / "pictures"))
    pictures.mkdir(parents=True, exist_ok=True)

    def run(*, view: str = "", **texts: str) -> list[str]:
        files = []
        for name, text in texts.items():
            files.append(tmp_path / f"{name}.html")
            files[-1].write_text(text, "utf-8")
        done = subprocess.run(
            ["node", HERE / "check.mjs", pictures, *files],
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


def test_the_page_is_sound_in_a_browser(check: Check) -> None:
    assert check(plain=page(plain_facts()), full=page(full_facts())) == []


FAULTS = {
    "contrast": ("--soft: #50545c", "--soft: #a9adb5", "axe color-contrast"),
    "label": ("<label for=", "<label data-for=", "axe label"),
    "header": (
        '<section class="scroll" tabindex="0"',
        '<section class="scroll"',
        "axe scrollable-region-focusable",
    ),
    "wide": (".scroll { position: relative;", ".scroll { position: static;", "wider than the screen"),
    "outside": ("<footer>", '<footer><img alt="" src="https://images.example/x.png">', "asked for https://"),
    "script": ("<footer>", "<footer><script>alert(1)</script>", "console: "),
    "search": ("card.hidden = !hit(card)", "card.hidden = false", "searching debian13 shows"),
    "copied": ("code.textContent}`", "'nothing'}`", "the copy button says"),
    "ring": (
        ":focus-visible { outline: 3px",
        "a { outline: none !important; } x { outline: 3px",
        "shows no ring",
    ),
    "bare": ('<search id="search" hidden>', '<search id="search">', "is there and does nothing"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_check_sees_a_page_with_a_fault(check: Check, name: str) -> None:
    """A check that cannot fail is none."""
    right, wrong, said = FAULTS[name]
    text = page(full_facts())
    assert right in text
    changed = text.replace(right, wrong)
    # The policy names the hash of script and style, so it goes where these are changed.
    if name in {"search", "copied", "contrast", "wide", "ring"}:
        changed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", changed)
    faults = check(view="phone-light", page=changed)
    assert any(said in fault for fault in faults), faults


def test_the_page_is_valid_by_html_validate(tmp_path: Path) -> None:
    files = []
    for name, facts in (("plain", plain_facts()), ("full", full_facts())):
        files.append(tmp_path / f"{name}.html")
        files[-1].write_text(page(facts), "utf-8")
    tool = [HERE / "node_modules" / ".bin" / "html-validate", "--config", HERE / ".htmlvalidate.json"]
    done = subprocess.run([*tool, *files], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    files[0].write_text(page(plain_facts()).replace('<th scope="row">', '<th scope="line">'), "utf-8")
    assert subprocess.run([*tool, *files], capture_output=True, timeout=LIMIT, check=False).returncode == 1
