"""The doctor on drivers and devices."""

from __future__ import annotations

import pytest
from doctor_facts import CUDA, DRIVERS, library, loader, one, said, system
from hosts import FACTS

from ortimg.core.doctor.devices import check_devices, read_visible
from ortimg.core.doctor.driver import check_driver
from ortimg.core.doctor.error35 import explain_35
from ortimg.core.doctor.facts import GpuSeen, Machine, Place, Snapshot
from ortimg.core.doctor.findings import Found
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.require import check_require, newest_cuda
from ortimg.core.drivers import Driver
from ortimg.verify.report import FindingVerdict

LIB = "/usr/lib/x86_64-linux-gnu"
SMI = Machine(driver=Driver("535.104.05"), gpus=(GpuSeen("Tesla T4"),), smi="")


def driver(snapshot: Snapshot) -> list[Found]:
    return [*check_driver(snapshot, loader(snapshot), DRIVERS)]


def test_no_driver_in_a_container_is_the_machines_fault() -> None:
    finding = one(driver(system()), Check.DRIVER_ABSENT)
    assert finding.machine
    assert "no driver in the container" in finding.evidence
    assert "--gpus all" in str(finding.cure)


@pytest.mark.parametrize("place", [Place.IMAGE, Place.ROOT])
def test_an_image_needs_no_driver_of_its_own(place: Place) -> None:
    assert driver(system(place=place)) == []


def test_a_driver_that_answers_is_fine() -> None:
    there = system(library(f"{LIB}/libcuda.so.1"), cached=[LIB], machine=SMI)
    assert "driver 535.104.05; Tesla T4" in one(driver(there), Check.DRIVER_ABSENT).evidence


def test_libcuda_on_the_disk_and_not_in_the_cache() -> None:
    there = system(library(f"{LIB}/libcuda.so.1"), place=Place.ROOT)
    finding = one(driver(there), Check.DRIVER_UNCACHED)
    assert finding.verdict is FindingVerdict.FAIL
    assert LIB in finding.evidence
    assert "ldconfig" in str(finding.cure)


@pytest.mark.parametrize(
    ("machine", "place", "verdict"),
    [
        (SMI, Place.CONTAINER, "fail"),
        (Machine(), Place.CONTAINER, "fail"),
        (Machine(), Place.ROOT, "warning"),
    ],
)
def test_a_driver_without_compute(machine: Machine, place: Place, verdict: str) -> None:
    there = system(library(f"{LIB}/libnvidia-ml.so.1"), cached=[LIB], machine=machine, place=place)
    finding = one(driver(there), Check.DRIVER_PARTLY)
    assert finding.verdict.value == verdict
    assert "NVIDIA_DRIVER_CAPABILITIES" not in finding.evidence
    assert "without compute" in finding.evidence


@pytest.mark.parametrize("folder", ["/usr/local/cuda-12.4/compat", "/usr/local/cuda/lib64/stubs"])
def test_a_stub_or_compat_libcuda_first_is_told(folder: str) -> None:
    there = system(library(f"{folder}/libcuda.so.1"), path=folder, place=Place.IMAGE)
    finding = one(driver(there), Check.DRIVER_STUB)
    assert finding.verdict is FindingVerdict.FAIL
    assert "803" in finding.evidence


def test_a_process_that_has_mapped_a_compat_libcuda() -> None:
    maps = ("/usr/local/cuda/compat/libcuda.so.550.54.14", "/usr/lib/libc.so.6")
    there = system(place=Place.ROOT, maps=maps, process="process 7")
    assert (
        "process 7 has mapped /usr/local/cuda/compat/libcuda"
        in one(driver(there), Check.DRIVER_STUB).evidence
    )


@pytest.mark.parametrize(
    ("version", "cuda", "verdict"),
    [
        ("470.57.02", "12.4", "fail"),
        ("525.60.13", "12.8", "ok"),
        ("550.54.14", "13.0", "fail"),
        ("580.65.06", "13.0", "ok"),
    ],
)
def test_drivers_against_the_cuda_that_is_there(version: str, cuda: str, verdict: str) -> None:
    folder = f"/usr/local/cuda-{cuda}/lib64"
    there = system(
        library(f"{folder}/libcudart.so.{cuda[:2]}"),
        place=Place.IMAGE,
        machine=Machine(driver=Driver(version)),
    )
    finding = one(driver(there), Check.DRIVER_OLD)
    assert finding.verdict.value == verdict
    assert finding.machine is (verdict == "fail")


def test_the_soname_of_cuda_11_is_not_its_version() -> None:
    there = system(
        library("/usr/local/cuda-11.8/lib64/libcudart.so.11.0"),
        place=Place.IMAGE,
        machine=Machine(driver=Driver("470.57.02")),
    )
    finding = one(driver(there), Check.DRIVER_OLD)
    assert "CUDA 11.8 by minor-version compatibility" in finding.evidence


def test_another_kernel_module_than_the_library() -> None:
    machine = Machine(driver=Driver("535.54.03"), gpus=(GpuSeen("T4"),), smi="", module="535.104.05")
    there = system(
        library(f"{LIB}/libcuda.so.1", real=f"{LIB}/libcuda.so.535.54.03"), cached=[LIB], machine=machine
    )
    assert "803" in one(driver(there), Check.DRIVER_MODULE).evidence


def require(value: str, version: str, **more: str) -> Found:
    there = system(
        environment={"NVIDIA_REQUIRE_CUDA": value, **more},
        place=Place.IMAGE,
        machine=Machine(driver=Driver(version)),
    )
    (finding,) = check_require(there, DRIVERS, FACTS.drivers)
    return finding


def test_require_cuda_against_an_older_driver() -> None:
    finding = require("cuda>=12.8", "550.54.14")
    assert finding.verdict is FindingVerdict.FAIL
    assert finding.machine
    assert "runs CUDA up to 12.4" in finding.evidence
    assert "NVIDIA_DISABLE_REQUIRE=1" in str(finding.cure)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("cuda>=12.4", "ok"),
        ("cuda>=12.8 driver>=550,driver<551", "ok"),
        ("cuda>=12.8 brand=tesla,driver>=550,driver<551", "warning"),
        ("cuda>=12.8 brand=tesla,driver>=470,driver<471", "fail"),
        ("cuda>=13", "fail"),
        ("rubbish", "warning"),
    ],
)
def test_words_are_alternatives_and_commas_mean_and(value: str, verdict: str) -> None:
    assert require(value, "550.54.14").verdict.value == verdict


def test_a_switched_off_require_is_fine() -> None:
    assert require("cuda>=13", "550.54.14", NVIDIA_DISABLE_REQUIRE="1").verdict is FindingVerdict.OK


def test_the_newest_cuda_of_a_driver() -> None:
    assert newest_cuda(Driver("550.54.14"), FACTS.drivers) == "12.4"
    assert newest_cuda(Driver("440.33"), FACTS.drivers) is None


ONE = (GpuSeen("H200", "GPU-1111", parts=("MIG-aaaa", "MIG-bbbb")),)


@pytest.mark.parametrize(
    ("value", "devices", "stops"),
    [
        (None, None, False),
        ("0", ("0",), False),
        ("", (), True),
        (" ", (), True),
        ("-1", (), True),
        ("3", (), True),
        ("1", (), True),
        ("0,-1,0", ("0",), True),
        ("0,,0", ("0",), True),
        ("GPU-1111", ("GPU-1111",), False),
        ("GPU-11", ("GPU-11",), False),
        ("GPU-abc", (), True),
        ("MIG-aaaa", ("MIG-aaaa",), False),
        ("MIG-cccc", (), True),
        ("MIG-GPU-1111/1/0", ("MIG-GPU-1111/1/0",), False),
        ("cuda:0", (), True),
        ("00", ("0",), False),
        ("9" * 5000, (), True),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cuda_makes_of_its_list(value: str | None, devices: object, stops: bool) -> None:
    seen = read_visible(value, ONE)
    assert seen.devices == devices
    assert (seen.stopped is not None) is stops


def test_device_id_counts_within_the_visible_devices() -> None:
    four = tuple(GpuSeen(f"gpu {place}") for place in range(4))
    found = [*check_devices({"CUDA_VISIBLE_DEVICES": "3"}, four, Place.HOST, 3)]
    finding = one(found, Check.DEVICE_ID)
    assert finding.verdict is FindingVerdict.FAIL
    assert "CUDA sees 1 GPU" in finding.evidence
    assert "counts those from 0: 0 would be right" in finding.evidence
    assert one(
        check_devices({"CUDA_VISIBLE_DEVICES": "3"}, four, Place.HOST, 0), Check.DEVICE_ID
    ).verdict is (FindingVerdict.OK)


def test_minus_one_hides_all_gpus() -> None:
    found = [*check_devices({"CUDA_VISIBLE_DEVICES": "-1"}, ONE, Place.HOST, 0)]
    assert "CUDA sees no GPU" in said(found, Check.DEVICE_VISIBLE)[0]
    assert "CUDA sees no GPU" in said(found, Check.DEVICE_ID)[0]


@pytest.mark.parametrize("value", ["none", "void", ""])
def test_a_container_that_gets_no_gpu(value: str) -> None:
    assert said(check_devices({"NVIDIA_VISIBLE_DEVICES": value}, None, Place.IMAGE), Check.DEVICE_CONTAINER)


def test_gpus_are_counted_anew_inside_a_container() -> None:
    variables = {"NVIDIA_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "3"}
    found = check_devices(variables, None, Place.CONTAINER)
    assert "counted from 0 inside" in said(found, Check.DEVICE_CONTAINER)[0]


@pytest.mark.parametrize("place", list(Place))
@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"])
def test_what_a_process_sees_is_the_machines_fault_and_what_an_image_sets_is_the_images(
    place: Place, name: str
) -> None:
    found = [*check_devices({name: ""}, ONE, place, 0 if name.startswith("CUDA") else None)]
    failed = [one for one in found if one.verdict is FindingVerdict.FAIL]
    assert bool(failed) is (place is not Place.HOST or name.startswith("CUDA"))
    assert all(one.machine is place.runs for one in failed)


@pytest.mark.parametrize("value", ["0,0", "0, 0", "0,1,00"])
def test_a_list_with_a_device_twice_shows_none(value: str) -> None:
    (finding,) = [
        found
        for found in check_devices({"CUDA_VISIBLE_DEVICES": value}, None, Place.HOST)
        if found.verdict is FindingVerdict.FAIL
    ]
    assert "named twice" in finding.evidence
    assert "CUDA sees no GPU" in finding.evidence


def test_a_number_with_more_behind_it_is_that_number() -> None:
    found = [*check_devices({"CUDA_VISIBLE_DEVICES": "0;1"}, ONE, Place.HOST)]
    assert [one.verdict for one in found] == [FindingVerdict.OK, FindingVerdict.WARNING]
    assert "drops the rest" in found[1].evidence


def test_blanks_and_several_mig_devices_are_told() -> None:
    text = "\n".join(
        line
        for value in ("0, 1", "MIG-aaaa,MIG-bbbb")
        for line in said(
            check_devices({"CUDA_VISIBLE_DEVICES": value}, None, Place.HOST), Check.DEVICE_VISIBLE
        )
    )
    assert "has blanks" in text
    assert "several MIG devices" in text


def explain(snapshot: Snapshot, *, named: bool = True, missing: bool = False) -> Found:
    return explain_35("line 1", snapshot, loader(snapshot), DRIVERS, named=named, missing=missing)


def test_error_35_without_a_driver_is_not_called_too_old() -> None:
    finding = explain(system())
    assert "no driver in the container, not one that is too old" in finding.evidence
    assert finding.machine
    assert "if the log is of this machine" in explain(system(), named=False).evidence


def test_error_35_with_a_stale_libcudart_names_it_and_is_no_fault_of_the_machine() -> None:
    old = "/usr/local/cuda-12.1/lib64"
    there = system(
        library(f"{old}/libcudart.so.12"),
        library(f"{CUDA}/libcudart.so.12"),
        library(f"{LIB}/libcuda.so.1"),
        path=old,
        cached=[CUDA, LIB],
        machine=SMI,
    )
    finding = explain(there)
    assert "a wrong libcudart" in finding.evidence
    assert not finding.machine


def test_error_35_with_a_driver_that_is_too_old() -> None:
    machine = Machine(driver=Driver("470.57.02"), gpus=(GpuSeen("T4"),), smi="")
    there = system(
        library(f"{CUDA}/libcudart.so.12"),
        library(f"{LIB}/libcuda.so.1"),
        cached=[CUDA, LIB],
        machine=machine,
    )
    assert "driver 470.57.02 does not run CUDA 12.2, which needs 525.60.13" in explain(there).evidence


def test_error_35_with_a_stub() -> None:
    stubs = "/usr/local/cuda/lib64/stubs"
    assert "not the driver's" in explain(system(library(f"{stubs}/libcuda.so.1"), path=stubs)).evidence


def test_error_35_where_the_log_itself_misses_libcuda() -> None:
    assert "the log misses libcuda.so.1" in explain(system(), missing=True).evidence
