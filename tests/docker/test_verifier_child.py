"""The verifier's child process, with time stretched where two things race."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "ortimg" / "verify" / "src"

# The child writes and ends while its parent is between a poll that saw nothing and what it does next.
HARNESS = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "child.h"
int __real_poll(struct pollfd *files, nfds_t count, int wait);
int __wrap_poll(struct pollfd *files, nfds_t count, int wait) {
    int ready = __real_poll(files, count, wait);
    if (ready == 0)
        usleep(200000);
    return ready;
}
static void work(int report, void *argument) {
    usleep(100000);
    dprintf(report, "whole\n");
    dprintf(STDERR_FILENO, "words\n");
}
int main(void) {
    struct outcome outcome = child_run(work, NULL, 10);
    printf("%d %s%s", outcome.complete, outcome.report, outcome.errors);
    return 0;
}
"""


def test_what_a_child_wrote_before_its_end_is_read(tmp_path: Path) -> None:
    (tmp_path / "harness.c").write_text(HARNESS)
    files = [str(tmp_path / "harness.c"), *(str(SOURCES / name) for name in ("child.c", "text.c"))]
    program = tmp_path / "harness"
    command = ["cc", "-std=c11", "-w", f"-I{SOURCES}", "-Wl,--wrap=poll", "-o", str(program), *files]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1 whole\nwords\n"
