"""The command line: which verbs there are, and what becomes of errors.

A verb's module is imported when the verb is used, so that `ortimg list` does not wait for the docker SDK.
"""

from __future__ import annotations

import atexit
import errno
import importlib
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from ortimg import __version__
from ortimg.errors import EnvironmentFault, ExitCode, OrtimgError
from ortimg.helping import Guide, Verbs

# A verb is a click command of this name in `ortimg.commands.<verb>`.
VERBS = {
    "init": "Start a repository of your own: images.yaml, Makefile, CI.",
    "list": "Show the cells, or why the others are not there.",
    "fit": "Tell which cells run on a host with this driver and GPU, and why the others do not.",
    "render": "Write the Dockerfiles, or check that they are up to date.",
    "lock": "Pin archives, wheels and base images; see whether the pins hold.",
    "fetch": "Bring the inputs of a build into the cache.",
    "build": "Build images, each verified while it is built.",
    "verify": "Check an image or an unpacked root, whoever built it.",
    "warm": "Bake what a GPU's driver compiles into an image, for a quick first start.",
    "bench": "Measure a model on the CPU and on CUDA, and say what stands in the way.",
    "compare": "Tell what changes between two versions, images or roots, and what must be done.",
    "doctor": "Tell what keeps ONNX Runtime from using CUDA, on a host, in an image, in a log.",
    "push": "Publish images: each layer once, alias tags last.",
    "sbom": "Tell what images are made of, as SPDX or CycloneDX.",
    "engine": "See to a container engine; stop the one that was started.",
    "report": "Write one HTML page: where images run, what they share, where inputs came from.",
    "ci": "Print a CI pipeline for GitHub or GitLab.",
    "prune": "Give the disk back: cache, units, builder cache.",
}
GUIDE = Guide(
    examples=(
        ("ortimg init my-images", "start; then change images.yaml in that folder"),
        ("ortimg build --available", "build every image whose inputs can be had, and verify each"),
        ("ortimg doctor", "why does ONNX Runtime not use the GPU of this machine?"),
    ),
    done="done",
    failed="an image or a check failed",
    environment="engine, network, disk, registry, or no GPU",
    more=("`ortimg COMMAND --help`", "README.md", "docs/"),
    variables={
        "ORTIMG_CACHE": "Folder of inputs and other kept files. [default: ~/.cache/ortimg]",
        "ORTIMG_RELEASE_MIRROR": "Stands in for the host of ONNX Runtime's release archives.",
        "ORTIMG_REGISTRY_MIRROR": "Stands in for Docker Hub.",
        "ORTIMG_PLAIN_HTTP": "Registries that are spoken to without TLS: host:port,host:port.",
        "ORTIMG_DEBUG": "1: also show where in the program an error was found.",
    },
)
# What the disk says when it is full, closed or not as it should be: the machine's fault, not a bug.
_DISK = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE),
    *(errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE),
}
_FULL = {errno.ENOSPC, errno.EDQUOT}
_IN_A_FILE = re.compile(r"\S+\.[a-z]\w*:\d+: ")  # `images.yaml:4: …` stays clickable; 127.0.0.1:1 is no file


class Group(Verbs):
    """Verbs from the table, and one place that turns errors into lines and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(importlib.import_module(f"ortimg.commands.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            what = f"Did you mean {near[0]}?" if near else f"Commands are {', '.join(VERBS)}."
            raise click.UsageError(f"no command {args[0]!r}. {what}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([*VERBS.items()])

    def main(  # type: ignore[override]  # click's overloads say no more than this
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(Group, self).main(args, prog_name or "ortimg", standalone_mode=False, **extra)

        if not standalone_mode:
            return run()
        sys.exit(_guarded(run))


@click.group(
    name="ortimg",
    cls=Group,
    guide=GUIDE,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "-C",
    "--project",
    type=click.Path(path_type=Path),
    default=".",
    metavar="DIR",
    help="Folder of images.yaml; the current one if left out.",
)
@click.version_option(__version__, prog_name="ortimg")
@click.pass_context
def cli(ctx: click.Context, project: Path) -> None:
    """Build container images of ONNX Runtime GPU from one images.yaml, and prove that they load."""
    ctx.obj = project


_heard: list[int] = []  # signals, in the order in which they came


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """SIGTERM, which ends a CI job, ends a command as cleanly as Ctrl-C does."""
    _heard.append(number)
    raise KeyboardInterrupt


def _guarded(run: Callable[[], Any]) -> int:
    """Exit code of `run`; each error a person can act on becomes its lines on stderr."""
    try:
        code = run()
        if sys.stdout is not None:  # None: the caller closed it (`ortimg list >&-`)
            sys.stdout.flush()
        return code if isinstance(code, int) else ExitCode.DONE
    except OrtimgError as error:
        return _tell(error)
    except click.exceptions.Abort:  # click's word for Ctrl-C
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        name = context.command_path if context else "ortimg"
        click.echo(f"error: {error.format_message()}\nTry `{name} --help`.", err=True)
        return ExitCode.USAGE
    except BrokenPipeError:
        _sink_output()  # the reader went away: `ortimg list | head`
        return ExitCode.FAILED
    except OSError as error:
        if error.errno not in _DISK:
            raise
        if error.filename is None:
            _sink_output()
        place = error.filename or "the disk, or where the output goes"
        hint = "Free some space there." if error.errno in _FULL else "See what is there, and who may write."
        return _tell(EnvironmentFault(f"{place}: {error.strerror}", hint))
    except Exception as error:
        if not type(error).__module__.startswith("docker."):  # not imported for this
            raise
        words = getattr(error, "explanation", None) or error
        return _tell(EnvironmentFault(f"the container engine refused: {words}", "See the engine's log."))


def _sink_output() -> None:
    """Python flushes stdout once more when it ends; what cannot be written would make that status 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(error: OrtimgError) -> int:
    if os.environ.get("ORTIMG_DEBUG") == "1":
        traceback.print_exception(error)
    text = str(error)
    click.echo(text if _IN_A_FILE.match(text) else f"error: {text}", err=True)
    return error.exit_code


def _leave(_number: int, _frame: FrameType | None) -> None:
    """One signal more while threads of a command that is over come to their end: now."""
    os._exit(ExitCode.INTERRUPTED)


def _deafen() -> None:
    """The last of Python's own clean-up would die of a signal, and lose the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def main() -> None:
    """Entry point of the `ortimg` command."""
    atexit.register(_deafen)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a job ignores it
        signal.signal(signal.SIGINT, _interrupt)
    try:
        cli(prog_name="ortimg")
    except KeyboardInterrupt:  # a second one, while the first was answered
        sys.exit(ExitCode.INTERRUPTED)
    except Exception:
        if len(_heard) < 2:
            raise
        # The second one comes anywhere, inside a lock too: "release unlocked lock".
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
