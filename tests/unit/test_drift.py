"""What differs between what is generated and what is there."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ortimg.core.drift import find_drift, unified_diff

WANTED = {"d/a": "1\n2\n", "d/b": "new\n", "d/same": "x\n"}
PRESENT = {"d/a": "1\n3\n", "d/gone": "old\n", "d/same": "x\n"}


def test_stale_missing_orphan() -> None:
    drift = find_drift(WANTED, PRESENT)
    assert (drift.stale, drift.missing, drift.orphan) == (("d/a",), ("d/b",), ("d/gone",))
    assert drift


def test_no_drift_is_false() -> None:
    assert not find_drift(WANTED, WANTED)
    assert unified_diff(find_drift(WANTED, WANTED), WANTED, WANTED) == ""


def test_the_diff() -> None:
    assert unified_diff(find_drift(WANTED, PRESENT), WANTED, PRESENT) == (
        "--- a/d/a\n+++ b/d/a\n@@ -1,2 +1,2 @@\n 1\n-3\n+2\n"
        "--- /dev/null\n+++ b/d/b\n@@ -0,0 +1 @@\n+new\n"
        "--- a/d/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    )


def test_git_can_apply_it(tmp_path: Path) -> None:
    for path, text in PRESENT.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    patch = unified_diff(find_drift(WANTED, PRESENT), WANTED, PRESENT)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, text=True, check=True)
    assert {f"d/{p.name}": p.read_text() for p in (tmp_path / "d").iterdir()} == WANTED


paths = st.sampled_from(["a", "b", "c", "d"])
trees = st.dictionaries(paths, st.sampled_from(["x\n", "y\n"]))


@given(trees, trees)
def test_every_path_is_told_once_or_is_the_same(wanted: dict[str, str], present: dict[str, str]) -> None:
    drift = find_drift(wanted, present)
    told = [*drift.stale, *drift.missing, *drift.orphan]
    same = [path for path in wanted if present.get(path) == wanted[path]]
    assert sorted([*told, *same]) == sorted(wanted.keys() | present.keys())
