"""Why a build failed, in words: the step, its exit code, the last lines it wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ortimg.engine.rawjson import RawJsonParser

LAST_LINES = 15
_DOCKER_ITSELF = 125  # docker's own status where it could not run what was asked, as without its plugin

# 128 + signal: how a shell and runc report a process that a signal ended (signal(7)).
_CODES = {
    126: "not executable",
    127: "command not found",
    132: "SIGILL, illegal instruction",
    134: "SIGABRT, the program aborted",
    135: "SIGBUS, bus error",
    136: "SIGFPE, arithmetic error",
    137: "SIGKILL, killed or out of memory",
    139: "SIGSEGV, segmentation fault",
    143: "SIGTERM, terminated",
}

# BuildKit tries three ways to pack a layer and tells what the last one said, which knows no zstd. That the
# others met a full disk stands in the engine's log alone.
# https://github.com/moby/buildkit/blob/v0.13.1/cache/blobs.go (computeBlobChain)
_NOT_PACKED = "unsupported diff media type"
_PACKING = "no layer could be stored, most likely for a full disk of the engine: see its log"

# What the engine says when the machine, the network or a registry is at fault, not the build.
_ENVIRONMENT = (
    "Cannot connect to the Docker daemon",
    "no space left on device",
    "disk quota exceeded",
    "failed to do request",
    "failed to resolve source metadata",
    "dial tcp",
    "i/o timeout",
    "TLS handshake",
    "toomanyrequests",
    "closing transport",
    "error reading from server: EOF",
    "no builder",
    "read-only file system",  # a home folder that buildx cannot write
    _NOT_PACKED,
    "is not a docker command",  # the plugin went away, or `docker` is another program
)
# Of those, what no other build can get past either: words of the engine → what is at fault.
_NO_MORE = {
    "no space left on device": "the engine's disk is full",
    "disk quota exceeded": "the engine's disk is full",
    "Cannot connect to the Docker daemon": "the engine is gone",
    "closing transport": "the engine is gone",
    "error reading from server: EOF": "the engine is gone",
    _NOT_PACKED: "the engine cannot store layers",
}


@dataclass(frozen=True)
class BuildFailure:
    """Why a build failed."""

    step: str | None  # None: no step failed; the Dockerfile, the command line or the engine is at fault
    exit_code: int | None  # of the step's process
    cause: str  # one line
    last_lines: tuple[str, ...]  # of the step's output, or of buildx's own words
    environment: bool  # the machine is at fault: exit code 3, not 1

    @property
    def ends_all(self) -> str | None:
        """Why no other build on this engine can pass either; None: another one may."""
        said = str(self).lower() if self.environment else ""
        return next((why for sign, why in _NO_MORE.items() if sign.lower() in said), None)

    def __str__(self) -> str:
        head = f"{self.step}: {self.cause}" if self.step else self.cause
        return "\n".join([head, *(f"  {line}" for line in self.last_lines)])


def explain_exit_code(code: int) -> str:
    """`exit code 139 (SIGSEGV, segmentation fault)`."""
    return f"exit code {code} ({_CODES[code]})" if code in _CODES else f"exit code {code}"


def failure_of(parser: RawJsonParser, returncode: int) -> BuildFailure:
    """What a stream that ended with `returncode` says about the failure."""
    step = parser.failed_step
    said = _closing_words(parser)
    if step is None:
        cause, lines = said[-1] if said else _no_words(parser, returncode), tuple(parser.plain_lines)
        killed = returncode < 0 or returncode == _DOCKER_ITSELF
        return BuildFailure(None, None, cause, lines[-LAST_LINES:], killed or _is_environment(cause))
    error = step.error or ""
    match = re.search(r"did not complete successfully: exit code: (\d+)", error)
    if match is None:
        lines = tuple(step.last_lines)[-LAST_LINES:]
        words = said[-1] if said else error
        if _NOT_PACKED in error:
            error = f"{_PACKING} ({error})"
        return BuildFailure(step.name, None, error, lines, _is_environment(f"{error} {words}"))
    code = int(match[1])
    lines = tuple(line for line in step.last_lines if line)[-LAST_LINES:]
    full = any("no space left on device" in line.lower() for line in lines)
    return BuildFailure(step.name, code, explain_exit_code(code), lines, full)


def _no_words(parser: RawJsonParser, returncode: int) -> str:
    """A cause where buildx told no error of its own: it was killed, it crashed, or docker never ran it."""
    first = next((line for line in parser.plain_lines if line.strip()), "it said nothing")
    if returncode < 0:
        return f"docker buildx was ended by signal {-returncode}: {first}"
    return f"docker buildx ended with status {returncode}: {first}"


def _closing_words(parser: RawJsonParser) -> list[str]:
    return [line.removeprefix("ERROR: ") for line in parser.plain_lines if line.startswith("ERROR: ")]


def _is_environment(text: str) -> bool:
    return any(sign.lower() in text.lower() for sign in _ENVIRONMENT)
