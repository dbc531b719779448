"""What a build is made of and what becomes of it, without an engine: names, results, the summary."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendered import SOURCES, one
from wishes import cell as wish
from wishes import images, planned

from ortimg.core.content import BELOW, Unit
from ortimg.core.model import Cell, Origin
from ortimg.engine.client import Sizes
from ortimg.errors import ExitCode
from ortimg.factory.asking import Ask, at_once
from ortimg.factory.factory import AFTER
from ortimg.factory.images import PREFIX, CellImage, Identities, cell_image, root_reference
from ortimg.factory.result import CellResult, Outcome, exit_code
from ortimg.factory.run import with_size
from ortimg.factory.summary import size_text, summary
from ortimg.inputs.result import Fetched, Kind

DEBIAN12, DEBIAN13, OTHER = planned(
    images(
        include=[
            wish("1.16.2", "11.8"),
            wish("1.16.2", "11.8", base="debian13"),
            wish("1.17.1", "12.2"),
        ]
    )
).cells
FALLBACK = Identities(
    ort="a" * 64,
    cuda="b" * 64 + " " + "c" * 64,
    base="d" * 64,
    ort_origin=Origin.MAVEN,
    cuda_origin=Origin.WHEEL,
    base_origin=Origin.BOOTSTRAP,
)


def image(cell: Cell, inputs: Identities = FALLBACK) -> CellImage:
    return cell_image(cell, inputs, one(cell), SOURCES.context)


# inputs


def test_the_cuda_libraries_of_an_image_that_may_not_be_had_come_last() -> None:
    there = Ask(Fetched(kind=Kind.BASE, key="debian12", origin=Origin.UPSTREAM), pytest.fail)
    lacking = Ask(None, pytest.fail)
    asked = {Kind.BASE: there, Kind.ORT: lacking, Kind.CUDA: lacking, Kind.HEADERS: lacking}
    assert at_once(asked, may_be_had=True) == (Kind.ORT, Kind.CUDA, Kind.HEADERS)
    assert at_once(asked, may_be_had=False) == (Kind.ORT, Kind.HEADERS)


# images


def test_names_of_units() -> None:
    names = {unit: made.reference for unit, made in image(DEBIAN12).units.items()}
    assert [*names] == [Unit.CUDA, Unit.ORT, Unit.VERIFIER, Unit.STUB]
    for unit, start in {
        Unit.CUDA: "localhost/ortimg/cuda:11.8-cudnn8",
        Unit.ORT: "localhost/ortimg/ort:1.16.2-cuda11",
        Unit.VERIFIER: "localhost/ortimg/ort-verify:verifier",
        Unit.STUB: "localhost/ortimg/cuda-stub:verifier",
    }.items():
        assert re.fullmatch(re.escape(start) + "[a-z0-9.-]*-[0-9a-f]{16}", names[unit])
        assert names[unit].endswith(image(DEBIAN12).units[unit].content[:16])


def test_what_waits_for_another_unit_comes_after_it() -> None:
    order = [*image(DEBIAN12).units]
    for later, first in {**AFTER, **{unit: below for unit, below in BELOW.items() if unit in order}}.items():
        assert order.index(first) < order.index(later)


def test_a_second_base_needs_no_unit_of_its_own() -> None:
    first, second = image(DEBIAN12), image(DEBIAN13)
    assert {u: m.reference for u, m in first.units.items()} == {
        u: m.reference for u, m in second.units.items()
    }
    assert first.content != second.content


def test_another_release_shares_the_verifier_only() -> None:
    first, second = image(DEBIAN12), image(OTHER)
    shared = {unit for unit in first.units if first.units[unit].content == second.units[unit].content}
    assert shared == {Unit.VERIFIER, Unit.STUB}


def test_names_of_roots() -> None:
    name = root_reference("base-debian12", "d" * 64)
    assert re.fullmatch(rf"{PREFIX}/base-debian12:[0-9a-f]{{16}}", name)
    assert name != root_reference("base-debian12", "e" * 64)
    assert name != root_reference("base-debian13", "d" * 64)


def test_every_name_stays_on_this_machine() -> None:
    """The engine would ask the registry of any other name."""
    names = [made.reference for made in image(DEBIAN12).units.values()] + [root_reference("tools", "x")]
    assert all(name.startswith("localhost/") for name in names)


def test_origins() -> None:
    assert FALLBACK.label == "ort=maven,cuda=wheel,base=bootstrap"
    assert FALLBACK.origins == {"ort": "maven", "cuda": "wheel", "base": "bootstrap"}


# results


def result(identifier: str, outcome: Outcome, **facts: object) -> CellResult:
    return msgspec.convert({"identifier": identifier, "result": outcome, **facts}, CellResult)


BUILT = result(
    "1.16.2-cuda11.8-cudnn8-debian12",
    Outcome.BUILT,
    image="r:1.16.2-cuda11.8-cudnn8-debian12",
    tier="load",
    seconds=12.345,
    verify_seconds=1.006,
    bytes_total=2_345_678_901,
    bytes_own=180_400_000,
    origins=FALLBACK.origins,
)
SAME = msgspec.structs.replace(BUILT, identifier="same", result=Outcome.UNCHANGED, seconds=0.0)
ABSENT = result("absent", Outcome.UNAVAILABLE, cause="base rocky9: upstream: no answer", environment=True)
ALSO = result("also", Outcome.UNAVAILABLE, cause="base rocky9: upstream: no answer", environment=True)
BROKEN = result("broken", Outcome.FAILED, cause="libcufft.so.10 is missing\n  log: x.log", seconds=3.0)
NO_NET = result("no-net", Outcome.FAILED, cause="network", environment=True)


def test_json_keys_are_stable() -> None:
    assert json.loads(json.dumps(BUILT.as_data())) == {
        "identifier": "1.16.2-cuda11.8-cudnn8-debian12",
        "result": "built",
        "tier": "load",
        "image": "r:1.16.2-cuda11.8-cudnn8-debian12",
        "digest": None,
        "seconds": 12.35,
        "verify_seconds": 1.01,
        "bytes_total": 2345678901,
        "bytes_own": 180400000,
        "origins": {"ort": "maven", "cuda": "wheel", "base": "bootstrap"},
        "cause": None,
    }


def test_a_cell_that_is_not_there_has_every_key_too() -> None:
    data = ABSENT.as_data()
    assert data.keys() == BUILT.as_data().keys()
    assert (data["image"], data["tier"], data["bytes_total"]) == (None, None, None)
    assert data["origins"] == {"ort": None, "cuda": None, "base": None}
    assert data["cause"] == "base rocky9: upstream: no answer"


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([BUILT], ExitCode.DONE),
        ([SAME], ExitCode.DONE),
        ([BUILT, ABSENT], ExitCode.DONE),
        ([ABSENT, ALSO], ExitCode.ENVIRONMENT),  # nothing is there
        ([], ExitCode.ENVIRONMENT),
        ([BUILT, BROKEN], ExitCode.FAILED),
        ([BUILT, NO_NET], ExitCode.ENVIRONMENT),
        ([BUILT, NO_NET, BROKEN], ExitCode.FAILED),
    ],
)
def test_exit_codes(results: list[CellResult], code: ExitCode) -> None:
    assert exit_code(results, interrupted=False) is code
    assert exit_code(results, interrupted=True) is ExitCode.INTERRUPTED


# the summary


def test_summary() -> None:
    named = msgspec.structs.replace(BUILT, identifier="1.16.2-debian12")
    assert summary([named, SAME, ABSENT, ALSO, BROKEN]) == (
        "cell             result       tier  size     own       origin                 seconds\n"
        "1.16.2-debian12  built        load  2.35 GB  180.4 MB  maven+wheel+bootstrap  12.3\n"
        "same             unchanged    load  2.35 GB  180.4 MB  maven+wheel+bootstrap  -\n"
        "absent           unavailable  -     -        -         -                      -\n"
        "also             unavailable  -     -        -         -                      -\n"
        "broken           failed       -     -        -         -                      3.0\n"
        "\n"
        "unavailable: absent, also\n"
        "  base rocky9: upstream: no answer\n"
        "\n"
        "failed: broken\n"
        "  libcufft.so.10 is missing\n"
        "    log: x.log\n"
        "\n"
        "1 built, 1 unchanged, 1 failed, 2 unavailable\n"
        "tier load: every library loads, up to where a GPU is needed. Not verified on a GPU.\n"
    )


def test_tier_run_is_told_with_where_it_is_from() -> None:
    run = msgspec.structs.replace(BUILT, tier="run")
    assert "verdict on this very digest in verdicts/" in summary([run])
    assert "tier load" not in summary([run])
    assert "tier run" not in summary([BUILT])


def test_no_word_on_the_tier_where_nothing_was_verified() -> None:
    assert "tier load" not in summary([ABSENT])


@given(st.lists(st.sampled_from([BUILT, SAME, ABSENT, BROKEN, NO_NET]), max_size=8))
def test_every_cell_and_every_cause_is_told(results: list[CellResult]) -> None:
    text = summary(results)
    for row in results:
        assert f"\n{row.identifier} " in text
        assert row.cause is None or row.cause.splitlines()[0] in text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0.0 MB"),
        (155_000, "0.2 MB"),
        (999_949_999, "999.9 MB"),
        (1_000_000_000, "1.00 GB"),
        (3_730_000_000, "3.73 GB"),
    ],
)
def test_sizes(count: int | None, text: str) -> None:
    assert size_text(count) == text


def test_an_image_that_is_gone_again_is_a_failure_of_the_machine() -> None:
    built = CellResult(identifier="a", result=Outcome.BUILT, image="r:a", tier="load", seconds=2.0)
    there = with_size(built, {"r:a": Sizes(total=3, own=1)})
    assert (there.result, there.bytes_total, there.bytes_own) == (Outcome.BUILT, 3, 1)
    gone = with_size(built, {"r:b": Sizes(total=3, own=1)})
    assert (gone.result, gone.image, gone.tier, gone.seconds) == (Outcome.FAILED, None, None, 2.0)
    assert "the engine has r:a no more" in str(gone.cause)
    assert exit_code([gone, there], False) is ExitCode.ENVIRONMENT
    failed = CellResult(identifier="b", result=Outcome.FAILED)
    assert with_size(failed, {}) == failed
