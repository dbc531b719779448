"""Which GPUs a program sees: CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, and device_id among them.

CUDA reads its list up to the first element that is no device, and counts what it has read from 0.
https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
Two things seen on an H200 with driver 580.159.04, and not written there: a list that names a device twice
shows none at all, and of an element that begins with a number only the number is read ("0;1" is 0).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ortimg.core.doctor.facts import GpuSeen, Place
from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.names import Check
from ortimg.verify.report import FindingVerdict

CUDA, NVIDIA = "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"
_WHOLE = re.compile(r"[0-9]+")
_NONE = {"void", "none", ""}


@dataclass(frozen=True)
class Visible:
    """What CUDA makes of its list."""

    devices: tuple[str, ...] | None  # as they stand there; None: no list, all GPUs are visible
    stopped: str | None = None  # the element at which it stops
    why: str = ""


def read_visible(value: str | None, gpus: Sequence[GpuSeen] | None) -> Visible:
    """`gpus`: those of the machine (None: not known, then every index is taken to be there)."""
    if value is None:
        return Visible(None)
    if not value.strip():
        return Visible((), value, "an empty list shows no GPU")
    seen: list[str] = []
    for element in value.split(","):
        name = element.strip()
        if number := _WHOLE.match(name):
            name = number[0].lstrip("0") or "0"
        why = _refused(name, gpus)
        if why:
            return Visible(tuple(seen), element, why)
        if name in seen:
            return Visible((), element, "named twice: a list with a device twice shows none")
        seen.append(name)
    return Visible(tuple(seen))


def _refused(name: str, gpus: Sequence[GpuSeen] | None) -> str:
    """Why an element is no device, or ""."""
    if not name:
        return "an empty element is no GPU"
    if _WHOLE.fullmatch(name):
        if gpus is not None and not _is_below(name, len(gpus)):
            return f"there {'is 1 GPU' if len(gpus) == 1 else f'are {len(gpus)} GPUs'}, counted from 0"
        return ""
    if name.startswith("-"):
        return "a negative number hides it and all that follow"
    if name.startswith("MIG-GPU-"):  # the form of drivers before 470
        return ""
    if name.startswith(("GPU-", "MIG-")):
        known = [gpu.uuid for gpu in gpus or ()] if name.startswith("GPU-") else _parts(gpus)
        if gpus is None or any(uuid.startswith(name) for uuid in known if uuid):
            return ""
        listed = ", ".join(known) or ("no MIG device" if name.startswith("MIG-") else "no GPU")
        return f"no such UUID; nvidia-smi -L lists {listed}"
    return "it is neither a number nor a UUID (GPU-…, MIG-…)"


def _is_below(digits: str, count: int) -> bool:
    """Whether a number of any length is; int() takes no more than 4300 digits."""
    digits = digits.lstrip("0")
    return len(digits) <= 9 and int(digits or "0") < count


def _parts(gpus: Sequence[GpuSeen] | None) -> list[str]:
    return [part for gpu in gpus or () for part in gpu.parts]


def check_devices(
    environment: Mapping[str, str] | None,
    gpus: Sequence[GpuSeen] | None,
    place: Place,
    device_id: int | None = None,
) -> Iterator[Found]:
    """The two variables, and `device_id` where the user named one.

    As in `ort-verify`, what a process sees is no fault of an image, unless the image sets it.
    """
    for one in _checks(environment or {}, gpus, place, device_id):
        failed = one.verdict is FindingVerdict.FAIL
        yield dataclasses.replace(one, machine=True) if failed and place.runs else one


def _checks(
    environment: Mapping[str, str], gpus: Sequence[GpuSeen] | None, place: Place, device_id: int | None
) -> Iterator[Found]:
    value = environment.get(CUDA)
    visible = read_visible(value, gpus)
    if visible.stopped is not None:
        shown = f"CUDA sees {_count(len(visible.devices or ()))}"
        yield fail(
            Check.DEVICE_VISIBLE,
            f'{CUDA}="{value}": it stops at "{visible.stopped}" ({visible.why}); {shown}',
        )
    elif value is not None:
        yield ok(Check.DEVICE_VISIBLE, f'{CUDA}="{value}" shows {_count(len(visible.devices or ()))}')
    if value is not None and re.search(r"\s", value.strip()) and visible.stopped is None:
        yield warn(
            Check.DEVICE_VISIBLE, f'{CUDA}="{value}" has blanks in it', "write the list without blanks: 0,1"
        )
    if len([name for name in visible.devices or () if name.startswith("MIG-")]) > 1:
        yield warn(
            Check.DEVICE_VISIBLE,
            f'{CUDA}="{value}" names several MIG devices: a process uses the first one only',
            "start one process for each MIG device",
        )
    if odd := [name for name in (value or "").split(",") if re.match(r"\s*[0-9]+\s*[^0-9\s]", name)]:
        yield warn(
            Check.DEVICE_VISIBLE,
            f'{CUDA}="{value}": of "{odd[0].strip()}" CUDA reads the number in front and drops the rest',
            "write numbers or UUIDs with commas between them: 0,1",
        )
    yield from _container(environment, place)
    if device_id is not None:
        yield _device(device_id, value, visible, gpus, place)


def _container(environment: Mapping[str, str], place: Place) -> Iterator[Found]:
    value = environment.get(NVIDIA)
    if value is None or place is Place.HOST:
        return
    if value.strip().lower() in _NONE:
        yield fail(
            Check.DEVICE_CONTAINER, f'{NVIDIA}="{value}": the container gets no GPU', f"set {NVIDIA}=all"
        )
        return
    cuda = environment.get(CUDA)
    names = [name.strip() for name in value.split(",")]
    if cuda is None or value.strip() == "all" or not all(map(_WHOLE.fullmatch, names)):
        return
    wrong = [
        name.strip()
        for name in cuda.split(",")
        if _WHOLE.fullmatch(name.strip()) and not _is_below(name.strip(), len(names))
    ]
    if wrong:
        yield fail(
            Check.DEVICE_CONTAINER,
            f'{NVIDIA}="{value}" hands in {_count(len(names))}, which {"is" if len(names) == 1 else "are"} '
            "counted from 0 "
            f'inside; {CUDA}="{cuda}" asks for number {wrong[0]}',
            f"unset {CUDA}, or count from 0 in it",
        )


def _device(
    device_id: int, value: str | None, visible: Visible, gpus: Sequence[GpuSeen] | None, place: Place
) -> Found:
    count = len(visible.devices) if visible.devices is not None else (None if gpus is None else len(gpus))
    said = f'{CUDA}="{value}"' if value is not None else f"{CUDA} is not set"
    if count is None:
        where = "in this image" if not place.runs else "here"
        return ok(Check.DEVICE_ID, f"device_id={device_id}; how many GPUs there are is not known {where}")
    if device_id < count:
        name = f" ({visible.devices[device_id]})" if visible.devices else ""
        return ok(Check.DEVICE_ID, f"device_id={device_id}{name}: CUDA sees {_count(count)}; {said}")
    last = f"0 to {count - 1}" if count > 1 else "0" if count else "none"
    return fail(
        Check.DEVICE_ID,
        f"device_id={device_id}, and CUDA sees {_count(count)} ({said}); it counts those from 0: {last} "
        "would be right",
        f"device_id=0 is the first GPU of {CUDA}" if count else None,
    )


def _count(number: int) -> str:
    return "no GPU" if number == 0 else "1 GPU" if number == 1 else f"{number} GPUs"
