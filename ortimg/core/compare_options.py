"""Options of the CUDA provider that one version knows and another does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml

from ortimg.core.compare_model import Finding, Side, fail, ok, skipped, told
from ortimg.core.problems import near, quote
from ortimg.core.versions import at_least
from ortimg.errors import ConfigError


class OptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """What matters here of a row of cuda-options.yaml."""

    name: str
    since: str | None  # first ONNX Runtime that knows it; None: 1.14 or older


def parse_options(raw: bytes) -> tuple[OptionRow, ...]:
    """Rows of cuda-options.yaml. Raises ConfigError."""
    try:
        data: Any = yaml.load(raw, yaml.CSafeLoader)
        return msgspec.convert(data["cuda_options"], tuple[OptionRow, ...])
    except (yaml.YAMLError, msgspec.ValidationError, TypeError, KeyError) as error:
        raise ConfigError(f"catalogue cuda-options.yaml: {' '.join(str(error).split())}") from None


def check_options(names: Sequence[str], rows: Sequence[OptionRow]) -> None:
    """Raises ConfigError for an option that no version has."""
    known = [row.name for row in rows]
    wrong = [
        f"no option {quote(name)} of the CUDA provider is known{near(name, known)}"
        for name in names
        if name not in known
    ]
    if wrong:
        raise ConfigError(*wrong, hint=f"Options are {', '.join(known)}.")


def option_findings(
    old: Side, new: Side, rows: Sequence[OptionRow], used: Sequence[str]
) -> Iterator[Finding]:
    """`used`: the options that the user sets, which alone count where given.

    An unknown key makes the call fail.
    """
    check = "options"
    if not new.has_cuda or not old.has_cuda:
        return
    if old.ort is None or new.ort is None:
        yield skipped(check, f"the version of {'OLD' if old.ort is None else 'NEW'} is not known")
        return
    was, now = _known(old.ort, rows), _known(new.ort, rows)
    gained = [name for name in now if name not in was]
    lost = [name for name in was if name not in now]
    text = f"options of the CUDA provider: gained {told(gained)}; lost {told(lost)}"
    missing = [name for name in used if name not in now]
    if missing:
        yield fail(
            check,
            f"{text}; NEW does not know {told(missing)}, which you set",
            f"leave out {', '.join(missing)}",
        )
    elif used:
        yield ok(check, f"{text}; NEW knows all that you set: {told([*used])}")
    elif lost:
        cure = (
            f"leave out {', '.join(lost)} where a program sets it; --option KEY names those that yours sets"
        )
        yield fail(check, text, cure)
    elif gained:
        yield ok(check, text)
    else:
        yield ok(check, f"both know the same {len(now)} options of the CUDA provider")


def _known(version: str, rows: Sequence[OptionRow]) -> list[str]:
    return [row.name for row in rows if row.since is None or at_least(version, row.since)]
