"""A ratio as people read it. Pure."""

from __future__ import annotations

from bench.result import Ratio


def amount(value: float, unit: str) -> str:
    """
    >>> amount(2_414_837_760, "bytes"), amount(0.0123, "s"), amount(1234.5, "s")
    ('2.41 GB', '0.012 s', '1,234 s')
    """
    if unit == "bytes":
        return f"{value / 1e9:,.2f} GB" if value >= 1e9 else f"{value / 1e6:,.1f} MB"
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.1f} s" if value >= 2 else f"{value:.3f} s"


def factor(ratio: Ratio) -> str:
    """ "6.1 times", or "0.23", with as many digits as say something."""
    if ratio.of == "against / ours":
        return f"{ratio.value:.1f} times"
    return f"{ratio.value:.2f}" if ratio.value >= 1 else f"{ratio.value:.3f}"


def goal(ratio: Ratio) -> str:
    """ "≥ 4 times, met", or "-" where there is none."""
    if ratio.goal is None:
        return "-"
    sign, times = ("≥", " times") if ratio.of == "against / ours" else ("≤", "")
    return f"{sign} {ratio.goal:g}{times}, {'met' if ratio.met else 'not met'}"


def line(ratio: Ratio) -> str:
    """One line for a terminal."""
    noise = "  (others used the machine)" if ratio.noisy else ""
    both = f"{amount(ratio.ours, ratio.unit)} against {amount(ratio.against, ratio.unit)}"
    return f"{ratio.title}: {both}: {factor(ratio)}; goal {goal(ratio)}{noise}"
