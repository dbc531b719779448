"""CUDA error 35, "driver version is insufficient for CUDA runtime version": four causes with one text.

libcudart says it where it finds no libcuda.so.1 at all (measured with ONNX Runtime 1.16 to 1.23), where it
finds a stub, where a wrong libcudart is loaded, and where the driver is too old.
"""

from __future__ import annotations

from ortimg.core.doctor.driver import LIBCUDA, driver_is_there
from ortimg.core.doctor.facts import Place, Snapshot, cuda_of_folder, stem
from ortimg.core.doctor.findings import Found
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.log import ERROR_35
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.paths import check_paths
from ortimg.core.drivers import Drivers, Runs
from ortimg.verify.report import FindingVerdict

_NO_DRIVER = "start the container with --gpus all; on a host, install the driver (nvidia-smi must work)"


def explain_35(
    where: str, snapshot: Snapshot, loader: Loader, drivers: Drivers, *, named: bool, missing: bool
) -> Found:
    """`where`: line and text. `named`: the log is said to be of this target. `missing`: the log itself says
    that libcuda.so.1 cannot be opened."""
    if missing:
        return _found(
            f"no driver in the container, not one that is too old: the log misses {LIBCUDA}",
            where,
            _NO_DRIVER,
        )
    stale = [one for one in check_paths(snapshot, loader) if one.check is Check.CUDART_STALE]
    if stale:
        return _found(f"a wrong libcudart: {stale[0].evidence}", where, stale[0].cure, machine=False)
    hit = loader.first(LIBCUDA)
    if hit is not None and not driver_is_there(loader):
        return _found(
            f"the loader takes {hit.library.path}, which is not the driver's {LIBCUDA}",
            where,
            f"take {hit.library.folder} off the loader's path",
            machine=False,
        )
    if not snapshot.place.runs:
        return _found(
            f"the container had no driver, or one that is too old; this {snapshot.place.value} brings none "
            "of its own, as "
            "it should",
            where,
            f"{_NO_DRIVER}; then see what nvidia-smi says in it",
        )
    if hit is None:
        place = "the container" if snapshot.place is Place.CONTAINER else "the container (or this machine)"
        first = "" if named else "if the log is of this machine: "
        return _found(
            f"{first}no driver in {place}, not one that is too old: {LIBCUDA} is nowhere on the loader's "
            "path here",
            where,
            _NO_DRIVER,
        )
    return _age(where, snapshot, drivers)


def _age(where: str, snapshot: Snapshot, drivers: Drivers) -> Found:
    driver = snapshot.machine.driver
    versions = {
        cuda_of_folder(one.real) or one.name.partition(".so.")[2]
        for one in snapshot.libraries
        if stem(one.name) == "libcudart.so"
    }
    old = [
        cuda
        for cuda in sorted(version for version in versions if version)
        if driver.told and drivers.runs(driver, cuda if "." in cuda else f"{cuda}.0") is Runs.NOT
    ]
    if old:
        need = drivers.lowest(old[0])
        return _found(
            f"the driver is too old: {driver} does not run CUDA "
            f"{old[0]}{f', which needs {need}' if need else ''}",
            where,
            "update the driver, or take an image with an older CUDA: see `ortimg fit --here`",
        )
    told = f"{driver} is here" if driver.told else f"{LIBCUDA} is here"
    return _found(
        f"no driver where the program ran, a driver that is too old for it, or a wrong libcudart first on "
        f"its path; {told}",
        where,
        "see inside its container: nvidia-smi, echo $LD_LIBRARY_PATH; then run `ortimg doctor` there, or "
        "name the "
        "image as TARGET",
    )


def _found(says: str, where: str, cure: str | None, *, machine: bool = True) -> Found:
    return Found(Check.LOG, FindingVerdict.FAIL, f"{says} ({where})", cure, machine=machine, fault=ERROR_35)
