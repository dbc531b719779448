"""The tables of docs/doctor.md: what each check and each fault of a log means, and what helps."""

from __future__ import annotations

from collections.abc import Iterable

from ortimg.core.doctor.findings import Advice
from ortimg.core.doctor.log import LogFault


def check_table(rows: Iterable[Advice]) -> str:
    """One line a check, in the order of doctor-checks.yaml."""
    lines = [("check", "what it means", "cure")]
    lines += [(f"`{row.check.value}`", _linked(row.means, row.source), row.cure) for row in rows]
    return _table(lines)


def fault_table(rows: Iterable[LogFault]) -> str:
    """One line a fault, in the order of log-faults.yaml."""
    lines = [("fault", "what it means", "cure")]
    lines += [(f"`log.{row.name}`", _linked(row.says, row.source), row.cure) for row in rows]
    return _table(lines)


def _linked(text: str, source: str | None) -> str:
    return f"{text} ([source]({source}))" if source and source.startswith("https://") else text


def _table(lines: list[tuple[str, str, str]]) -> str:
    rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
    return "\n".join([rows[0], "|---|---|---|", *rows[1:]])
