"""CUDA, cuDNN and the driver: what the new side asks for that the old one did not."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ortimg.core.compare_model import Finding, Side, fail, ok, skipped, told, warning
from ortimg.core.cudnn import CAUTION, NO_CUDNN
from ortimg.core.drivers import Driver, Drivers, Runs
from ortimg.core.rules import DRIVER_LIBRARY
from ortimg.core.versions import at_least

_CUDNN = "libcudnn.so"


def library_findings(old: Side, new: Side, driver: Driver, drivers: Drivers) -> Iterator[Finding]:
    """CUDA and cuDNN, their libraries, and the lowest driver."""
    if not new.has_cuda:
        yield _no_provider(old)
        return
    yield _version("cuda", "CUDA", old.cuda, new.cuda, new)
    yield _cudnn(old, new)
    yield from _needed(old, new)
    yield from _lazy(old, new)
    yield from _absent(new)
    yield _driver(old, new, driver, drivers)


def _no_provider(old: Side) -> Finding:
    text = "NEW has no CUDA provider (libonnxruntime_providers_cuda.so): everything runs on the CPU"
    if not old.has_cuda:
        return ok("provider", "neither side has a CUDA provider: both run on the CPU")
    return fail(
        "provider", text, "take a GPU build of ONNX Runtime (onnxruntime-linux-x64-gpu, onnxruntime-gpu)"
    )


def _version(check: str, what: str, old: str | None, new: str | None, side: Side) -> Finding:
    """A CUDA or cuDNN version: within a major everything goes on, between majors nothing does."""
    if old is None or new is None:
        return skipped(check, f"{what} is not known of {'OLD' if old is None else 'NEW'}")
    if old == new:
        return ok(check, f"{what} {new} on both sides")
    text = f"{what} {old} → {new}"
    if old.partition(".")[0] == new.partition(".")[0]:
        return ok(check, f"{text}, the same major version")
    if side.brings_cuda:
        own = f"a program of yours that links to {what} itself must be built again"
        return warning(check, f"{text}: NEW brings its own libraries; {own}")
    return fail(
        check, text, f"install {what} {new} libraries beside it; those of {old} are not used any more"
    )


def _cudnn(old: Side, new: Side) -> Finding:
    if NO_CUDNN in (old.cudnn, new.cudnn):
        return _without_cudnn(old, new)
    was = old.needed is not None and any(name.startswith(_CUDNN) for name in old.needed)
    later = new.lazy is not None and any(name.startswith(_CUDNN) for name in new.lazy)
    needed = new.needed is not None and any(name.startswith(_CUDNN) for name in new.needed)
    finding = _other_cuda(old, new) or _version("cudnn", "cuDNN", old.cudnn, new.cudnn, new)
    if was and later and not needed:
        text = "now optional: NEW loads it when an operator uses it, and starts without it"
        return msgspec.structs.replace(finding, evidence=f"{finding.evidence}; {text}")
    return finding


def _other_cuda(old: Side, new: Side) -> Finding | None:
    """cuDNN 9 for CUDA 12 is another package than cuDNN 9 for CUDA 13."""
    if new.brings_cuda or None in (old.cuda, new.cuda, new.cudnn) or old.cudnn_major != new.cudnn_major:
        return None
    if old.cuda_major == new.cuda_major:
        return None
    text = f"cuDNN {new.cudnn}, built for CUDA {new.cuda_major} instead of {old.cuda_major}"
    return fail("cudnn", text, f"install the cuDNN {new.cudnn_major} that is built for CUDA {new.cuda_major}")


def _without_cudnn(old: Side, new: Side) -> Finding:
    if old.cudnn == new.cudnn:
        return ok("cudnn", f"no cuDNN on both sides: {CAUTION}")
    if new.cudnn == NO_CUDNN:
        text = f"cuDNN {old.cudnn or 'of an unknown version'} → none: {CAUTION}"
        return fail("cudnn", text, "take an image with cuDNN where a model has convolutions")
    return ok("cudnn", f"cuDNN none → {new.cudnn or 'of an unknown version'}")


def _needed(old: Side, new: Side) -> Iterator[Finding]:
    check = "libraries.needed"
    if old.needed is None or new.needed is None:
        yield skipped(
            check, f"which CUDA libraries {'OLD' if old.needed is None else 'NEW'} links to is not known"
        )
        return
    gained = [name for name in new.needed if name not in old.needed]
    lost = [name for name in old.needed if name not in new.needed]
    if not gained and not lost:
        yield ok(check, f"both link to {told(new.needed)}{_inferred('needed', old, new)}")
        return
    text = f"gained {told(gained)}; lost {told(lost)}{_inferred('needed', old, new)}"
    if DRIVER_LIBRARY in gained:
        text += f"; {DRIVER_LIBRARY} is the driver's: NEW does not load on a machine without one"
    own = [name for name in gained if name != DRIVER_LIBRARY]
    if own and not new.brings_cuda:
        yield fail(check, text, f"have these where the loader finds them: {', '.join(own)}")
    else:
        yield warning(check, text)


def _lazy(old: Side, new: Side) -> Iterator[Finding]:
    """Lazily loaded libraries: `ldd` does not show a missing one, the first operator that uses it does."""
    check = "libraries.lazy"
    if old.lazy is None or new.lazy is None:
        yield skipped(
            check, f"which libraries {'OLD' if old.lazy is None else 'NEW'} opens later is not known"
        )
        return
    gained = [name for name in new.lazy if name not in old.lazy and name != DRIVER_LIBRARY]
    lost = [name for name in old.lazy if name not in new.lazy and name != DRIVER_LIBRARY]
    if not gained and not lost:
        yield ok(
            check, f"the same on both sides: {told([name for name in new.lazy if name != DRIVER_LIBRARY])}"
        )
        return
    text = f"opened only when used: gained {told(gained)}; lost {told(lost)}{_inferred('needed', old, new)}"
    yield warning(
        check, text, "`ldd` does not show these: test with a model that uses them" if gained else None
    )


def _absent(new: Side) -> Iterator[Finding]:
    """Libraries that the new side links to and does not hold."""
    if new.libraries is None or not new.needed:
        return
    missing = [name for name in new.needed if name not in new.libraries and name != DRIVER_LIBRARY]
    if missing and new.brings_cuda:
        cure = "add them, or see `ortimg verify` for what the loader finds"
        yield fail("libraries.absent", f"NEW links to {told(missing)}, and does not hold them", cure)


def _driver(old: Side, new: Side, driver: Driver, drivers: Drivers) -> Finding:
    check = "driver"
    if new.cuda is None:
        return skipped(check, "the CUDA version of NEW is not known, so its lowest driver is not either")
    need = drivers.lowest(new.cuda)
    before = drivers.lowest(old.cuda) if old.cuda else None
    if need is None:
        return skipped(check, f"which driver CUDA {new.cuda} needs is not known")
    text = f"CUDA {new.cuda} runs with driver {need} or newer"
    if driver.told:
        runs = drivers.runs(driver, new.cuda)
        if runs is Runs.NOT:
            return fail(check, f"{text}; the host has {driver}", f"install driver {need} or newer, or stay")
        return ok(check, f"{text}; {driver} is new enough")
    if before is not None and at_least(before, need):
        return ok(check, f"{text}, OLD with {before}")
    asked = f", OLD with {before}" if before else ""
    cure = f"have driver {need} or newer on every host (`nvidia-smi` tells it; --driver settles this)"
    return fail(check, f"{text}{asked}", cure)


def _inferred(fact: str, *sides: Side) -> str:
    names = [label for label, side in zip(("OLD", "NEW"), sides, strict=True) if fact in side.inferred]
    return f" (inferred, not read, for {' and '.join(names)})" if names else ""
