"""The README's lines about the last run, between markers. A test holds that they are the newest result's."""

from __future__ import annotations

from pathlib import Path

from bench import ROOT
from bench.result import Result
from bench.words import amount, factor, goal
from ortimg.errors import ConfigError

READMES = (ROOT / "README.md", ROOT / "README.zh-CN.md")  # the table is English in both
START, END = "<!-- bench:numbers -->", "<!-- /bench:numbers -->"


def block(result: Result, name: str) -> str:
    """The lines; `name`: of the result's file, below bench/results."""
    machine = result.machine
    others = (
        " Others used the machine in parts marked \\*." if any(row.noisy for row in result.ratios) else ""
    )
    rows = [
        f"`make bench` on {result.date[:10]}: {len(result.cells)} cells, {machine.cores} cores of"
        f" {machine.cpu}, {machine.disk_write / 1e6:,.0f} MB/s to the disk.{others}",
        f"[The whole run](bench/results/{name}.json), [as a picture](bench/results/{name}.svg),"
        " [how it is measured](docs/numbers.md).",
        "",
        "| what | ortimg | against | ratio | goal |",
        "|---|---|---|---|---|",
    ]
    for row in result.ratios:
        star = "\\*" if row.noisy else ""
        both = f"{amount(row.ours, row.unit)} | {amount(row.against, row.unit)}"
        rows.append(f"| {row.title} | {both} | {factor(row)}{star} | {goal(row)} |")
    return "\n".join(rows)


def replaced(text: str, lines: str) -> str:
    """`text` with `lines` between the markers. Raises ConfigError where a marker is missing."""
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        hint = "Put the two lines where the numbers go."
        raise ConfigError(f"the README has no {START} … {END}", hint=hint)
    return f"{head}{START}\n{lines}\n{END}{tail}"


def update(result: Result, path: Path) -> None:
    """Write the lines into each README; one without markers is left alone."""
    for readme in READMES:
        text = readme.read_text("utf-8")
        if START in text:
            readme.write_text(replaced(text, block(result, path.stem)), "utf-8")
