"""What a build's end means: which of the engine's own faults are none of the image's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ortimg.engine.buildx import BuildOutcome
from ortimg.engine.failure import BuildFailure
from ortimg.engine.rawjson import BuildEvent, EventKind
from ortimg.factory.steps import _lost_a_snapshot, _only_the_history_failed, _Watcher


def ended(step: str | None, cause: str) -> BuildOutcome:
    failure = BuildFailure(step, None, cause, (), environment=False)
    return BuildOutcome(ok=False, cancelled=False, returncode=1, seconds=1.0, log=Path("x"), failure=failure)


HISTORY = ended(None, "failed to solve: not found")
SNAPSHOT = ended(
    "exporting to image",
    'failed to prepare extraction snapshot "extract-1 sha256:ab": '
    "parent snapshot sha256:cd does not exist: not found",
)
OTHERS = [
    ended("[5/5] RUN ort-verify --tier load", "exit code 1"),
    ended(None, "failed to solve: localhost/x: not found"),
    ended("exporting to image", "no space left on device"),
]


def test_a_fault_of_the_history_is_told_from_all_others() -> None:
    assert _only_the_history_failed(HISTORY)
    assert not any(_only_the_history_failed(outcome) for outcome in (SNAPSHOT, *OTHERS))


def test_a_lost_snapshot_is_told_from_all_others() -> None:
    assert _lost_a_snapshot(SNAPSHOT)
    assert not any(_lost_a_snapshot(outcome) for outcome in (HISTORY, *OTHERS))


@pytest.mark.parametrize(
    ("kind", "stored"), [(EventKind.STARTED, False), (EventKind.FAILED, False), (EventKind.DONE, True)]
)
def test_an_image_counts_as_stored_only_when_storing_is_done(kind: EventKind, stored: bool) -> None:
    watcher = _Watcher(lambda _words: None)
    watcher.event(BuildEvent(kind, step="exporting to image"))
    assert watcher.stored is stored
