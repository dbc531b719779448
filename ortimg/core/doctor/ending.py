"""How a program ended that the doctor ran: by itself, by a signal, or not at all."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from ortimg.core.doctor.findings import Found, fail, ok
from ortimg.core.doctor.names import Check

_ENGINES = ("docker", "podman", "nerdctl")


@dataclass(frozen=True)
class Ending:
    """What was seen of a program."""

    command: str
    status: int | None  # as a shell reports it: 134 is SIGABRT; None: it was stopped at the time limit
    last_line: str  # of its stderr, else of its stdout
    seconds: float  # the limit
    threads: tuple[str, ...] = ()  # where its threads were when it was stopped, as "futex_wait_queue"
    mapped: tuple[str, ...] = ()  # libraries of FAMILY in it at that time


def check_ending(ending: Ending, mixed: bool) -> Iterator[Found]:
    """`mixed`: its output says that nodes are both on the CPU and on CUDA."""
    last = f"last line: {ending.last_line}" if ending.last_line else "it said nothing"
    if ending.status is None:
        yield _hang(ending, last, mixed)
    elif ending.status == 0:
        yield ok(Check.RUN_EXIT, f"{ending.command}: exit 0")
    else:
        yield fail(Check.RUN_EXIT, f"{ending.command}: exit {ending.status}{_signal(ending.status)}; {last}")


def _signal(status: int) -> str:
    if status <= 128:
        return {126: " (cannot be executed)", 127: " (not found)"}.get(status, "")
    try:
        name = signal.Signals(status - 128)
    except ValueError:
        return ""
    return f" ({name.name}, {signal.strsignal(name)})"


def _in_a_container(command: str) -> bool:
    """Whether it is `docker run` or its like: what hangs is then no child of it."""
    program, *rest = command.split()
    return program.rpartition("/")[2] in _ENGINES and not {"run", "exec"}.isdisjoint(rest)


def _hang(ending: Ending, last: str, mixed: bool) -> Found:
    words = f"{ending.command}: hang: it did not end within {ending.seconds:g} s and was stopped; {last}"
    if _in_a_container(ending.command):
        words += "; only this command was stopped, its container may still run (see `docker ps`)"
    elif ending.threads:
        words += f"; its threads: {', '.join(ending.threads)}"
    if not any("libcuda.so" in path for path in ending.mapped) and ending.mapped:
        words += "; the driver's libcuda was not loaded yet"
    if mixed:
        words += "; its nodes are on both CPU and CUDA, so a run waits for copies between them"
    cure = (
        "find the nodes on the CPU (session.disable_cpu_ep_fallback=1 names them) and leave "
        "do_copy_in_default_stream "
        "at 1; one thread for each session at a time; a first start that compiles kernels needs up to minutes"
        if mixed
        else None
    )
    return fail(Check.RUN_HANG, words, cure)
