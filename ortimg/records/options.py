"""Options of the command line about GPUs and records, gathered into what they mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from ortimg.core.gpu_access import Device
from ortimg.records.wish import RecordWish

F = TypeVar("F", bound=Callable[..., Any])

device_option = click.option(
    "--gpu-device",
    metavar="GPU",
    help="With --gpu: all, a number, or a UUID of `nvidia-smi -L`. [default: all]",
)


def record_options(function: F) -> Callable[..., Any]:
    """`--record` and its kin; `function` gets them as `record`, a RecordWish."""

    @click.option("--record", "keep", is_flag=True, help="With --gpu: keep the verdict in verdicts/.")
    @click.option(
        "--record-file",
        "file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --gpu: write the verdict to FILE.",
    )
    @click.option(
        "--digest",
        metavar="sha256:…",
        help="With --record-file, of a root: the image that it was exported from.",
    )
    @click.option(
        "--push-record",
        "push",
        is_flag=True,
        help="With --gpu or --import-record: attach the verdict to the image in its registry.",
    )
    @click.option(
        "--import-record",
        "bring",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Take in a record of TARGET that was made elsewhere; nothing is run.",
    )
    @wraps(function)
    def wrapper(
        *args: Any,
        keep: bool,
        file: Path | None,
        digest: str | None,
        push: bool,
        bring: Path | None,
        **rest: Any,
    ) -> Any:
        wish = RecordWish(keep=keep, file=file, digest=digest, push=push, bring=bring)
        return function(*args, record=wish, **rest)

    return wrapper


def device_of(text: str | None) -> Device:
    """Raises ConfigError for what is no GPU."""
    return Device() if text is None else Device.parse(text)
