"""The NVIDIA driver: there, whole, the host's own, new enough."""

from __future__ import annotations

from collections.abc import Iterator

from ortimg.core.doctor.facts import LibraryFile, Place, Snapshot, file_version, stem
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.loader import Loader
from ortimg.core.doctor.names import Check
from ortimg.core.drivers import Drivers, Runs

LIBCUDA, LIBNVML = "libcuda.so.1", "libnvidia-ml.so.1"
_FOREIGN = ("/stubs", "/compat")  # folders with a libcuda that is not the running driver's


def check_driver(snapshot: Snapshot, loader: Loader, drivers: Drivers) -> Iterator[Found]:
    """The driver, as this system sees it."""
    yield from _foreign(snapshot, loader)
    yield from check_maps(snapshot)
    yield from _present(snapshot, loader)
    yield from _age(snapshot, drivers)


def driver_is_there(loader: Loader) -> bool:
    """Whether the loader finds a libcuda that is no stub."""
    hit = loader.first(LIBCUDA)
    return hit is not None and not _is_foreign(hit.library.path)


def _is_foreign(path: str) -> bool:
    return any(f"{part}/" in path for part in _FOREIGN)


def _foreign(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    hit = loader.first(LIBCUDA)
    taken = hit.library.path if hit else None
    if hit and (_is_foreign(hit.library.path) or _is_foreign(hit.library.real)):
        yield fail(
            Check.DRIVER_STUB,
            f"the loader takes {LIBCUDA} from {taken} (by {hit.by}), not the driver's: CUDA answers with "
            "error 803 or "
            "804, or sees no device",
            f"take {hit.library.folder} out of LD_LIBRARY_PATH and /etc/ld.so.conf.d",
            taken or LIBCUDA,
        )
    searched = [folder.path for folder in snapshot.library_path if folder.path] + [*snapshot.conf]
    for path in dict.fromkeys(searched):
        if _is_foreign(f"{path}/") and not (taken and taken.startswith(path.rstrip("/"))):
            inside = any(
                one.folder == path.rstrip("/") and stem(one.name) == "libcuda.so"
                for one in snapshot.libraries
            )
            if inside:
                yield warn(
                    Check.DRIVER_STUB,
                    f"{path} is on the loader's path and has a libcuda that is not the driver's",
                    f"take {path} out of LD_LIBRARY_PATH and /etc/ld.so.conf.d",
                )


def check_maps(snapshot: Snapshot) -> Iterator[Found]:
    """What a running process has mapped."""
    who = snapshot.process or "the process"
    for path in dict.fromkeys(snapshot.maps):
        name = path.rpartition("/")[2]
        if name.startswith("libcuda.so") and _is_foreign(path):
            yield fail(
                Check.DRIVER_STUB,
                f"{who} has mapped {path}, not the driver's libcuda",
                f"take {path.rpartition('/')[0]} out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, start it "
                "again",
            )
    cores = [
        path for path in dict.fromkeys(snapshot.maps) if stem(path.rpartition("/")[2]) == "libonnxruntime.so"
    ]
    if len(cores) > 1:
        yield fail(Check.ORT_TWO, f"{who} has mapped several ONNX Runtimes: {', '.join(cores)}")
    cudart = [path for path in dict.fromkeys(snapshot.maps) if "/libcudart.so" in path]
    if len(cudart) > 1:
        yield warn(Check.CUDART_STALE, f"{who} has mapped several libcudart: {', '.join(cudart)}")


def _present(snapshot: Snapshot, loader: Loader) -> Iterator[Found]:
    hit = loader.first(LIBCUDA)
    machine, runs = snapshot.machine, snapshot.place.runs
    on_disk = [one for one in loader.elsewhere(LIBCUDA) if not _is_foreign(one.path)]
    if hit is not None:
        if not _is_foreign(hit.library.path) and runs:
            yield from _answers(snapshot, hit.library)
    elif on_disk:
        cached = "" if snapshot.cache is not None else " (there is none)"
        yield fail(
            Check.DRIVER_UNCACHED,
            f"{LIBCUDA} is in {on_disk[0].folder}, and neither /etc/ld.so.cache{cached} nor "
            "LD_LIBRARY_PATH leads there",
            f"run ldconfig, or write {on_disk[0].folder} into a file of /etc/ld.so.conf.d first",
        )
    elif loader.first(LIBNVML) is not None or loader.elsewhere(LIBNVML) or (runs and machine.answers):
        seen = "nvidia-smi works" if runs and machine.answers else f"{LIBNVML} is there"
        evidence = f"{seen}, {LIBCUDA} is nowhere: the driver was handed in without compute"
        if runs:
            yield fail(Check.DRIVER_PARTLY, evidence, machine=True)
        else:
            yield warn(Check.DRIVER_PARTLY, evidence, None, LIBNVML)
    elif runs:
        where = "in the container" if snapshot.place is Place.CONTAINER else "on this machine"
        cure = None
        if snapshot.place is Place.CONTAINER:
            cure = "start the container with --gpus all (NVIDIA's container toolkit must be on the host)"
        evidence = f"no driver {where}: {LIBCUDA} is nowhere, {machine.smi or 'no GPU is listed'}"
        yield fail(Check.DRIVER_ABSENT, evidence, cure, machine=True)


def _answers(snapshot: Snapshot, libcuda: LibraryFile) -> Iterator[Found]:
    machine = snapshot.machine
    version = file_version(libcuda)
    if machine.module and version and version.count(".") >= 1 and machine.module != version:
        yield fail(
            Check.DRIVER_MODULE,
            f"the kernel module is {machine.module}, {libcuda.real} is {version}: CUDA answers with error "
            "803 or 804",
            machine=True,
        )
    if not machine.answers and machine.module is None:
        yield fail(
            Check.DRIVER_ABSENT,
            f"{libcuda.path} is there, the driver does not answer: {machine.smi}",
            "see that the kernel module is loaded (lsmod shows nvidia), and /dev/nvidia* in the container",
            machine=True,
        )
    elif machine.gpus == ():
        yield fail(Check.DRIVER_ABSENT, "the driver is there and lists no GPU", machine=True)
    else:
        gpus = ", ".join(gpu.name for gpu in machine.gpus or ()) or "GPUs not listed"
        told = f"{machine.driver}" if machine.driver.told else "driver of a version that is not told"
        yield ok(Check.DRIVER_ABSENT, f"{told}; {gpus}")


def _age(snapshot: Snapshot, drivers: Drivers) -> Iterator[Found]:
    """Driver against the CUDA run times that are there; images: this machine's driver, where it has one."""
    driver = snapshot.machine.driver
    if not driver.told:
        return
    told: set[str] = set()
    for library in snapshot.libraries:
        if stem(library.name) != "libcudart.so":
            continue
        version = file_version(library) or library.name.partition(".so.")[2]
        cuda = ".".join(version.split(".")[:2]) if version else ""
        if not cuda or cuda in told:
            continue
        told.add(cuda)
        whole = cuda if "." in cuda else f"{cuda}.0"
        match drivers.runs(driver, whole):
            case Runs.NOT:
                need = drivers.lowest(whole)
                yield fail(
                    Check.DRIVER_OLD,
                    f"{driver} does not run CUDA {cuda} "
                    f"({library.path}){f', which needs {need}' if need else ''}",
                    machine=True,
                )
            case Runs.BY_MINOR_VERSION:
                yield ok(
                    Check.DRIVER_OLD,
                    f"{driver} runs CUDA {cuda} by minor-version compatibility: all but compiling its PTX",
                )
            case Runs.FULLY:
                yield ok(Check.DRIVER_OLD, f"{driver} runs CUDA {cuda}")
            case Runs.UNKNOWN:
                pass
