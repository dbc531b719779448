"""Who may import what: the core reaches nothing outside itself, and no verb knows another."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ortimg

PACKAGE = Path(ortimg.__file__).parent
CORE = sorted((PACKAGE / "core").rglob("*.py"))
VERBS = sorted((PACKAGE / "commands").glob("*.py"))

# Disk, network, clock, environment, other processes, the engine.
OUTSIDE = {
    *("os", "pathlib", "shutil", "tempfile", "glob", "fcntl", "mmap"),
    *("socket", "ssl", "http", "requests", "urllib3"),
    *("time", "random", "secrets", "platform", "sys"),
    *("subprocess", "threading", "asyncio", "multiprocessing", "docker", "click"),
}
# What the core knows of the rest: errors, the shape of reports, and the schema of images.yaml, which is data.
NEIGHBOURS = {
    "ortimg.errors",
    *("ortimg.verify.report", "ortimg.verify.run_report", "ortimg.verify.bench_report"),
    "ortimg.data",
}
# What takes a tenth of a second or more: imported by what uses it, not by the start of a command.
HEAVY = {
    "docker",
    "requests",
    "ssl",
    "rich",
    "zstandard",
    "elftools",
    "numpy",
    "matplotlib",
    "cyclonedx",
    "spdx_tools",
}
IMPURE_CALLS = {"now", "utcnow", "today", "open", "uuid1", "uuid4"}


def imported(tree: ast.AST) -> set[str]:
    """Names of modules, wherever in the file they are imported."""
    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


def called(tree: ast.AST) -> set[str]:
    """Last names of what is called."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        f.attr if isinstance(f, ast.Attribute) else f.id
        for f in calls
        if isinstance(f, ast.Attribute | ast.Name)
    }


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", CORE, ids=name_of)
def test_the_core_reaches_nothing_outside(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    names = imported(tree)
    assert not {name for name in names if name.partition(".")[0] in OUTSIDE}
    own = {name for name in names if name.startswith("ortimg.") and not name.startswith("ortimg.core")}
    assert own <= NEIGHBOURS
    assert not called(tree) & IMPURE_CALLS


@pytest.mark.parametrize("path", VERBS, ids=name_of)
def test_no_verb_knows_another(path: Path) -> None:
    names = imported(ast.parse(path.read_text("utf-8")))
    assert not {name for name in names if name.startswith("ortimg.commands")}


def test_no_verb_loads_heavy_libraries_before_it_needs_them() -> None:
    modules = ", ".join(f"ortimg.commands.{path.stem}" for path in VERBS if path.stem != "__init__")
    code = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY
