"""Which GPUs the two sides run on, and how: with machine code, compiled by the driver, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from ortimg.core.compare_model import Finding, Side, fail, ok, skipped, told, warning
from ortimg.core.drivers import Drivers
from ortimg.core.gpu import Capability, Match, match
from ortimg.core.gpu_names import Gpu
from ortimg.core.model import Confidence, GpuArchitectures


class Reach(StrEnum):
    """How one side comes to run on a GPU, best first."""

    NATIVE = "native"
    JIT = "jit"  # the driver compiles ONNX Runtime's kernels at the first start
    UNKNOWN = "unknown"
    NONE = "none"


def gpu_findings(
    old: Side, new: Side, capabilities: Sequence[Capability], asked: Sequence[Gpu], drivers: Drivers
) -> Iterator[Finding]:
    """`capabilities`: all that GPUs have; `asked`: those of the user, which alone count where given."""
    if not new.has_cuda or not old.has_cuda:
        return
    if not _known(old) or not _known(new):
        which = "OLD" if not _known(old) else "NEW"
        yield skipped("gpu", f"which GPUs {which} has code for is not known")
        return
    yield _lists(old, new)
    if asked:
        for gpu in asked:
            yield _asked(gpu, reach(old, gpu.capability), reach(new, gpu.capability))
        return
    pairs = [(one, reach(old, one), reach(new, one)) for one in capabilities]

    def some(was: tuple[Reach, ...], now: tuple[Reach, ...]) -> str:
        found = [one for one, a, b in pairs if a in was and b in now]
        return ", ".join(_named(one, drivers) for one in found)

    runs = (Reach.NATIVE, Reach.JIT)
    if lost := some(runs, (Reach.NONE,)):
        yield fail("gpu.lost", f"NEW has no code for {lost}", f"keep OLD for these GPUs: {lost}")
    if slower := some((Reach.NATIVE,), (Reach.JIT,)):
        cure = "`ortimg warm` keeps what was compiled"
        yield warning(
            "gpu.compiled", f"compiled by the driver at the first start, native before: {slower}", cure
        )
    if unsure := some(runs, (Reach.UNKNOWN,)):
        yield skipped("gpu.unknown", f"OLD runs on these, of NEW it is not known: {unsure}", "try it there")
    if gained := some((Reach.NONE, Reach.UNKNOWN), runs):
        yield ok("gpu.gained", f"NEW runs on these too: {gained}")
    if faster := some((Reach.JIT,), (Reach.NATIVE,)):
        yield ok("gpu.native", f"native now, compiled at the first start before: {faster}")


def reach(side: Side, gpu: Capability) -> Reach:
    """How `side` comes to run on a GPU of this capability: its slowest part decides."""
    if side.gpu is None or side.gpu.confidence is Confidence.UNKNOWN:
        return Reach.UNKNOWN
    found = {Match.NATIVE: Reach.NATIVE, Match.JIT: Reach.JIT, Match.NONE: Reach.NONE}[match(side.gpu, gpu)]
    if found is Reach.NONE:
        return found
    for code in side.set_gpu or ():
        how = match(code, gpu)
        if how is Match.NONE or (how is Match.JIT and side.set_jit is False):
            return Reach.NONE
        if how is Match.JIT and side.set_jit is None:
            found = Reach.UNKNOWN
    return found


def _asked(gpu: Gpu, was: Reach, now: Reach) -> Finding:
    words = {
        Reach.NATIVE: "runs natively",
        Reach.JIT: "runs, after the driver has compiled kernels at the first start",
        Reach.UNKNOWN: "is not known to run",
        Reach.NONE: "does not run",
    }
    text = f"on {gpu} OLD {words[was]}, NEW {words[now]}"
    if now is Reach.NONE:
        if was is Reach.NONE:
            return fail("gpu", text, "take another ONNX Runtime: `ortimg fit --gpu` names those that run")
        return fail("gpu", text, "keep OLD for this GPU; `ortimg fit --gpu` names others that run")
    if now is Reach.UNKNOWN:
        return skipped("gpu", text, "try it there")
    if now is Reach.JIT and was is Reach.NATIVE:
        return warning("gpu", text, "`ortimg warm` keeps what was compiled")
    return ok("gpu", text)


def _known(side: Side) -> bool:
    return side.gpu is not None and side.gpu.confidence is not Confidence.UNKNOWN


def _lists(old: Side, new: Side) -> Finding:
    a, b = old.gpu or GpuArchitectures(), new.gpu or GpuArchitectures()
    inferred = [label for label, side in (("OLD", old), ("NEW", new)) if "gpu" in side.inferred]
    unread = f" (inferred, not read, for {' and '.join(inferred)})" if inferred else ""
    if (a.sass, a.ptx) == (b.sass, b.ptx):
        return ok(
            "gpu.code",
            f"ONNX Runtime's kernels on both sides: SASS {told(b.sass)}; PTX {told(b.ptx)}{unread}",
        )
    text = (
        f"ONNX Runtime's kernels: SASS {told(a.sass)} → {told(b.sass)}; "
        f"PTX {told(a.ptx)} → {told(b.ptx)}{unread}"
    )
    dropped = [f"SASS {name}" for name in a.sass if name not in b.sass]
    dropped += [f"PTX {name}" for name in a.ptx if name not in b.ptx]
    if dropped:
        return warning("gpu.code", f"{text}; dropped: {', '.join(dropped)}")
    return ok("gpu.code", text)


def _named(capability: Capability, drivers: Drivers) -> str:
    row = drivers.architecture(capability)
    return f"{row.name} {capability}" if row else str(capability)
