"""Errors that a person can act on, each with its exit code.

Whatever is not one of these is a bug, and shows its traceback.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status says. Stable: scripts depend on it."""

    DONE = 0
    FAILED = 1  # an image or a check failed
    USAGE = 2  # wrong usage or configuration
    ENVIRONMENT = 3  # engine, network, disk, registry, no GPU
    INTERRUPTED = 130


class OrtimgError(Exception):
    """One or two clear lines: what is wrong, then the next step."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class CheckFailed(OrtimgError):
    """An image, or a check of the project's own files, did not pass."""

    exit_code = ExitCode.FAILED


class ConfigError(OrtimgError):
    """The configuration or the command line is wrong.

    `problems` holds every fault that was found, each one line `file:line: path: what`.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, *problems: str, hint: str | None = None) -> None:
        super().__init__("\n".join(problems), hint)
        self.problems = problems


class EnvironmentFault(OrtimgError):
    """The machine is at fault, not the image: engine, network, disk, registry, GPU."""

    exit_code = ExitCode.ENVIRONMENT
