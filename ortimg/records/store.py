"""Records in the project's folder `verdicts`: one file an image's digest and GPU."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault
from ortimg.generated import write_atomically
from ortimg.records.record import Record, dump_record, parse_record

FOLDER = "verdicts"
_LARGEST = 50_000_000  # bytes; a record has about ten thousand


class Records(msgspec.Struct, frozen=True):
    """What the folder holds."""

    records: tuple[Record, ...] = ()
    problems: tuple[str, ...] = ()  # files that are no records, each with its fault


def write_record(root: Path, record: Record) -> Path:
    """Put the record where `read_records` finds it; an older one of the same digest and GPU goes.

    Raises CheckFailed for a record without a digest, EnvironmentFault where it cannot be written.
    """
    if record.digest is None:
        raise CheckFailed(
            "the record is bound to no image: there is no digest to keep it under",
            "say --digest sha256:… of the image that the root was exported from",
        )
    path = root / FOLDER / record.digest.removeprefix("sha256:") / f"{_slug(record)}.json"
    write_file(path, record)
    return path


def write_file(path: Path, record: Record) -> None:
    """Write the record to a file. Raises EnvironmentFault."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, dump_record(record))
    except OSError as error:
        raise EnvironmentFault(
            f"{path} cannot be written: {error.strerror}", "name another place, or make room"
        ) from error


def read_records(root: Path) -> Records:
    """All records of a project. A file that is cut or contradicts itself counts for nothing."""
    found, problems = [], []
    for path in sorted((root / FOLDER).glob("*/*.json")):
        name = str(path.relative_to(root))
        try:
            record = read_file(path, name)
        except (CheckFailed, ConfigError) as error:
            problems.append(f"ignored: {error.message}")
            continue
        if record.digest == f"sha256:{path.parent.name}":
            found.append(record)
        else:
            problems.append(f"ignored: {name} speaks of {record.digest}, not of the digest of its folder")
    return Records(tuple(found), tuple(problems))


def read_file(path: Path, name: str | None = None) -> Record:
    """The record in a file. Raises ConfigError where it cannot be read, CheckFailed where it is no record."""
    name = name or str(path)
    try:
        if path.stat().st_size > _LARGEST:
            raise CheckFailed(f"{name} is too large for a record", "name a file of `--record-file`")
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{name} cannot be read: {error.strerror}", hint="Name a file of `--record-file`."
        ) from None
    return parse_record(raw, name)


def _slug(record: Record) -> str:
    """`nvidia-h200`; the newest verdict on a kind of GPU is the one that counts."""
    name = (record.gpu.name if record.gpu else None) or "no-gpu"
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "gpu"
