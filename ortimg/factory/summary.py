"""What a person reads when a build has ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.factory.result import CellResult, Outcome

_HEAD = ("cell", "result", "tier", "size", "own", "origin", "seconds")


def summary(results: Sequence[CellResult]) -> str:
    """A table of the cells, then the cause of each that is not there."""
    rows = [_HEAD, *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    for outcome in (Outcome.UNAVAILABLE, Outcome.FAILED):
        told: dict[str, list[str]] = {}
        for result in results:
            if result.result is outcome:
                told.setdefault(result.cause or "no reason given", []).append(result.identifier)
        for cause, identifiers in told.items():
            lines += ["", f"{outcome.value}: {', '.join(identifiers)}"]
            lines += [f"  {line}" for line in cause.splitlines()]
    counts = [(outcome, sum(result.result is outcome for result in results)) for outcome in Outcome]
    lines += ["", ", ".join(f"{count} {outcome.value}" for outcome, count in counts if count)]
    if any(result.tier == "load" for result in results):
        lines.append("tier load: every library loads, up to where a GPU is needed. Not verified on a GPU.")
    if any(result.tier == "run" for result in results):
        lines.append("tier run: a model ran on a GPU, by a verdict on this very digest in verdicts/.")
    return "\n".join(lines) + "\n"


def size_text(count: int | None) -> str:
    """`2.3 GB`, `180 MB`; `-` where unknown. Decimal units, as docker uses them."""
    if count is None:
        return "-"
    if count >= 1_000_000_000:
        return f"{count / 1e9:.2f} GB"
    return f"{count / 1e6:.1f} MB"


def _row(result: CellResult) -> tuple[str, ...]:
    origins = result.origins
    return (
        result.identifier,
        result.result.value,
        result.tier or "-",
        size_text(result.bytes_total),
        size_text(result.bytes_own),
        f"{origins['ort']}+{origins['cuda']}+{origins['base']}" if origins else "-",
        f"{result.seconds:.1f}" if result.result in (Outcome.BUILT, Outcome.FAILED) else "-",
    )
