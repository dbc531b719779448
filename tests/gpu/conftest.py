"""What the tests on a real GPU share. Without a GPU each is skipped, and says why.

Targets: the unpacked roots in the folder ORTIMG_GPU_ROOTS (one folder a cell), for machines without an
engine; else the cells of images.yaml that the engine holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ortimg.core.model import Tier
from ortimg.verify.binary import Verifier, get_verifier
from ortimg.verify.report import Report
from ortimg.verify.wish import RunWish

ROOTS = "ORTIMG_GPU_ROOTS"


@dataclass(frozen=True)
class Target:
    """A cell to run: an unpacked root, or an image of the engine."""

    name: str
    root: Path | None

    @property
    def ort(self) -> tuple[int, int]:
        major, minor = self.name.rpartition(":")[2].split(".")[:2]
        return int(major), int(minor)


def _targets() -> list[Target]:
    if folder := os.environ.get(ROOTS):
        return [Target(root.name, root) for root in sorted(Path(folder).iterdir()) if root.is_dir()]
    if not _has_gpu():
        return []
    from ortimg.engine.client import Engine
    from ortimg.project import load_project

    plan = load_project(Path(__file__).parents[2]).plan
    names = [f"{plan.repository}:{cell.identifier}" for cell in plan.cells]
    return [Target(name, None) for name in names if Engine().inspect(name) is not None]


def _has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        metafunc.parametrize("target", _targets() or [None], ids=lambda target: target and target.name)


@pytest.fixture(scope="session", autouse=True)
def _needs_a_gpu() -> None:
    """Before anything is compiled."""
    if not _has_gpu():
        pytest.skip("NOT TESTED ON A GPU: this machine has none (no /dev/nvidiactl)")
    if not _targets():
        pytest.skip(f"NOT TESTED ON A GPU: no image of images.yaml is built, and {ROOTS} is not set")


@pytest.fixture(scope="session")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    cache = os.environ.get("ORTIMG_CACHE")
    return get_verifier(Path(cache) if cache else tmp_path_factory.mktemp("cache"))


Run = Callable[..., Report]


@pytest.fixture
def run(target: Target, verifier: Verifier) -> Run:
    """Tier run of the target; words are those of RunWish."""

    def call(seconds: int = 300, **wish: object) -> Report:
        words = RunWish(**wish)  # type: ignore[arg-type]
        if target.root is not None:
            from ortimg.verify.root import verify_root

            return verify_root(target.root, Tier.RUN, verifier, seconds, words)
        from ortimg.engine.client import Engine
        from ortimg.verify.image import verify_image

        return verify_image(Engine(), target.name, Tier.RUN, verifier, seconds, words)

    return call
