"""What a driver runs: minor-version compatibility, its exception for PTX, and the GPU's own needs."""

from __future__ import annotations

import pytest
from hosts import DRIVERS, FACTS, NAMES
from hypothesis import given
from hypothesis import strategies as st
from wishes import CATALOGUE

from ortimg.core.drivers import Driver, Runs, is_driver, minor_of
from ortimg.core.versions import at_least, is_version, number


@pytest.mark.parametrize(
    ("driver", "cuda", "expected"),
    [
        ("470.57", "12.4", Runs.NOT),
        ("470.57.02", "11.8", Runs.BY_MINOR_VERSION),
        ("470.82.01", "11.8", Runs.BY_MINOR_VERSION),
        ("470.82.01", "12.2", Runs.NOT),
        ("525.60.13", "12.8", Runs.BY_MINOR_VERSION),
        ("525.60.12", "12.8", Runs.NOT),
        ("525.60.13", "12.0", Runs.FULLY),
        ("550", "13.0", Runs.NOT),
        ("550.54.14", "12.4", Runs.FULLY),
        ("550.54.14", "11.8", Runs.FULLY),
        ("580", "13.0", Runs.BY_MINOR_VERSION),
        ("580.65.06", "13.0", Runs.FULLY),
        ("580.65.06", "13.2", Runs.BY_MINOR_VERSION),
        ("450.80.02", "11.8", Runs.BY_MINOR_VERSION),
        ("450.80.01", "11.8", Runs.NOT),
        ("450.51.05", "11.0", Runs.FULLY),
        ("520.61.05", "11.8", Runs.FULLY),
        ("535.104.05", "12.2.2", Runs.FULLY),
        ("999.1", "14.0", Runs.UNKNOWN),
        (None, "12.2", Runs.UNKNOWN),
    ],
)
def test_table(driver: str | None, cuda: str, expected: Runs) -> None:
    assert DRIVERS.runs(Driver(driver), cuda) is expected


@pytest.mark.parametrize(
    ("has", "cuda", "expected"),
    [("11.4", "11.8", Runs.BY_MINOR_VERSION), ("11.4", "12.2", Runs.NOT), ("13.0", "12.2", Runs.FULLY)],
)
def test_a_driver_known_by_its_library_only(has: str, cuda: str, expected: Runs) -> None:
    assert DRIVERS.runs(Driver(None, has), cuda) is expected


def test_ptx_is_outside_minor_version_compatibility() -> None:
    driver = Driver("470.82.01")
    assert DRIVERS.runs(driver, "11.8") is Runs.BY_MINOR_VERSION
    assert DRIVERS.compiles(driver, "11.8") is False
    assert DRIVERS.compiles(Driver("520.61.05"), "11.8") is True
    assert DRIVERS.compiles(driver, "11.4") is True
    assert DRIVERS.compiles(driver, "99.9") is None
    assert DRIVERS.compiles(Driver(None), "11.8") is None


def test_the_language_of_ptx_tells_the_toolkit() -> None:
    for row in CATALOGUE.releases:
        if row.gpu.ptx_isa:
            assert DRIVERS.ptx_cuda(row.gpu, None) == row.cuda_build, row.key


@pytest.mark.parametrize(
    ("gpu", "driver", "too_old", "too_new"),
    [
        ("T4", "450.80.02", None, None),
        ("RTX 3090", "450.80.02", "455.23", None),
        ("RTX 4090", "470.82.01", "520.61.05", None),
        ("H100", "515.105.01", "520.61.05", None),
        ("B200", "550.54.14", "570.26", None),
        ("RTX 5090", "570.124.06", None, None),
        ("B300", "570.124.06", "575.51.03", None),
        ("V100", "580.95.05", None, None),
        ("V100", "590.44.01", None, 580),
        ("GTX 1080", "595.45.04", None, 580),
        ("GTX 750 Ti", "590.44.01", None, 580),
        ("Tesla K80", "470.256.02", None, None),
        ("Tesla K80", "495.29.05", None, 470),
        ("T4", "999.99", None, None),
    ],
)
def test_a_driver_too_old_or_too_new_for_the_gpu(
    gpu: str, driver: str, too_old: str | None, too_new: int | None
) -> None:
    capability = NAMES.find(gpu).capability
    assert DRIVERS.too_old_for(Driver(driver), capability) == too_old
    assert DRIVERS.too_new_for(Driver(driver), capability) == too_new


def test_facts_hold_together() -> None:
    facts = FACTS.drivers
    toolkits = [*facts.toolkits.items()]
    assert [number(cuda) for cuda, _ in toolkits] == sorted(number(cuda) for cuda, _ in toolkits)
    assert [number(driver) for _, driver in toolkits] == sorted(number(driver) for _, driver in toolkits)
    assert all(is_driver(driver) for _, driver in toolkits)
    assert set(facts.ptx_isa.values()) <= facts.toolkits.keys()
    assert {row.first_cuda for row in facts.architectures} - {None} <= facts.toolkits.keys()
    for row in CATALOGUE.cuda_sets:
        assert DRIVERS.lowest(row.cuda) and DRIVERS.own(row.cuda), row.key
    for release in CATALOGUE.releases:
        assert release.cuda_build is None or minor_of(release.cuda_build) in facts.toolkits, release.key


@pytest.mark.parametrize("text", ["535", "535.54", "535.104.05", "470.82.01", "1000.1"])
def test_drivers(text: str) -> None:
    assert is_driver(text)


@pytest.mark.parametrize(
    "text", ["abc", "", "12.2", "535.", "535.1.2.3", "535.54.x", "v535", " 535", "\uff15\uff13\uff15"]
)
def test_what_is_no_driver(text: str) -> None:
    assert not is_driver(text)


VERSION = st.lists(st.integers(0, 9999), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@given(VERSION, VERSION)
def test_versions_are_ordered(a: str, b: str) -> None:
    assert is_version(a)
    assert at_least(a, b) or at_least(b, a)
    assert at_least(a, a) and at_least(f"{a}.0", a) and at_least(a, f"{a}.0")


@given(st.sampled_from([*FACTS.drivers.toolkits.values()]), st.sampled_from([*FACTS.drivers.toolkits]))
def test_a_newer_driver_never_runs_less(driver: str, cuda: str) -> None:
    order = [Runs.NOT, Runs.BY_MINOR_VERSION, Runs.FULLY]
    seen = [
        order.index(DRIVERS.runs(Driver(other), cuda))
        for other in FACTS.drivers.toolkits.values()
        if at_least(other, driver)
    ]
    assert seen == sorted(seen)
