"""Is CUDA worth it, and if not, why: from the numbers of one measurement alone."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ortimg.verify.bench_report import BenchPoint, BenchReport

WORTH = 0.30  # CUDA's P95 should be this share below the CPU's, or a GPU is not worth its price
_COPIES_COUNT = 0.30  # without copies P95 falls by this share: the copies are what takes the time
_IDLE = 0.50  # more than this share of the time nothing runs on the GPU


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One shape, called by one thread, TF32 off where both were measured."""

    shape: str
    cpu_p95_ms: float
    cuda_p95_ms: float  # with copies from and to host memory
    gain: float  # share by which CUDA's P95 is below the CPU's; negative: above
    worth_it: bool
    reasons: tuple[str, ...] = ()  # where it is not: the likely ones, the surest first


def judge(report: BenchReport) -> tuple[Judgement, ...]:
    """A judgement for each shape that was measured on both, in their order."""
    plain = [point for point in report.points if point.concurrency == 1 and not point.binding]
    cuda = _one_kind([point for point in plain if point.provider == "cuda"])
    found = []
    for cpu in (point for point in plain if point.provider == "cpu"):
        if cpu.shape not in cuda:
            continue
        there = cuda[cpu.shape]
        gain = 1 - there.p95_ms / cpu.p95_ms if cpu.p95_ms > 0 else 0.0
        worth = gain >= WORTH
        found.append(
            Judgement(
                shape=cpu.shape,
                cpu_p95_ms=cpu.p95_ms,
                cuda_p95_ms=there.p95_ms,
                gain=round(gain, 4),
                worth_it=worth,
                reasons=() if worth else tuple(_reasons(report, there)),
            )
        )
    return tuple(found)


def words(judgement: Judgement) -> list[str]:
    """The judgement in lines."""
    share = f"{round(100 * abs(judgement.gain))} %"
    side = "below" if judgement.gain >= 0 else "above"
    line = (
        f"{judgement.shape}: CUDA's P95 is {share} {side} the CPU's "
        f"({judgement.cuda_p95_ms:.3f} against {judgement.cpu_p95_ms:.3f} ms)"
    )
    if judgement.worth_it:
        return [line]
    return [f"{line}, less than {round(100 * WORTH)} % gained", *(f"  {one}" for one in judgement.reasons)]


def _one_kind(points: list[BenchPoint]) -> dict[str, BenchPoint]:
    """By shape; with TF32 only where nothing else was measured."""
    by_shape: dict[str, BenchPoint] = {}
    for point in points:
        if point.shape not in by_shape or (by_shape[point.shape].tf32 and not point.tf32):
            by_shape[point.shape] = point
    return by_shape


def _reasons(report: BenchReport, copied: BenchPoint) -> Iterator[str]:
    told = False
    nodes = report.nodes
    if nodes is not None and nodes.cpu > 0:
        told = True
        copies = f", with {nodes.copies} copies between both" if nodes.copies else ""
        yield (
            f"{nodes.cpu} of {nodes.total} nodes run on the CPU ({', '.join(nodes.cpu_operators)}){copies}: "
            "take operators that CUDA has"
        )
    bound = next(
        (
            point
            for point in report.points
            if point.binding
            and point.concurrency == 1
            and (point.shape, point.tf32) == (copied.shape, copied.tf32)
        ),
        None,
    )
    if bound is not None and bound.p95_ms < (1 - _COPIES_COUNT) * copied.p95_ms:
        told = True
        yield (
            f"copies between host and GPU: without them P95 is {bound.p95_ms:.3f} instead of "
            f"{copied.p95_ms:.3f} ms; keep the tensors on the GPU (IO binding)"
        )
    if copied.idle_share is not None and copied.idle_share > _IDLE:
        told = True
        yield (
            f"the GPU is idle {round(100 * copied.idle_share)} % of the time: too little work for it in one "
            "run; larger batches, or several threads"
        )
    elif copied.idle_share is None and report.idle is not None:
        yield f"how busy the GPU was is not known ({report.idle})"
    if not told:
        yield "nothing in these numbers says why: `ortimg verify --tier run` profiles the nodes"
