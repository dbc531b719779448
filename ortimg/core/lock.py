"""`images.lock`: what the wishes resolved to. Pure: text in, text out, no disk, no clock.

Origins hold different archives of one release, so each has its own hash. `null` means "not seen yet" for
an archive and "unresolved" for a base; nothing is invented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from ortimg.core.model import Cell, Flavour
from ortimg.errors import ConfigError, EnvironmentFault

SCHEMA = 1
# Date of units, 9999-01-01: a builder takes what is younger than an image's own date back to that, and lets
# stand what is older. So a unit of any age gives the same image.
# https://docs.docker.com/build/ci/github-actions/reproducible-builds/
UNIT_EPOCH = 253_370_764_800
DEFAULT_EPOCH = 1_735_689_600  # 2025-01-01: date of images where no `ortimg lock` has run
# Both end up in Dockerfiles, whose text must not be what somebody put into the lock.
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Digest = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=UNIT_EPOCH)]


class Repacked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fallback: the package it came from, and the tar stream made of it."""

    source: Sha256 | None = None  # sha256 of the jar or wheel
    tar: Sha256 | None = None  # sha256 of the uncompressed archive: the same with every zlib


class Asset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the release host says of a file: tells a file that was replaced where no hash is known."""

    size: int  # bytes
    updated: str  # as the host writes it, "2023-11-08T21:37:41Z"


class OrtLock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ORT archive, by origin."""

    upstream: Sha256 | None = None  # sha256 of the release archive
    asset: Asset | None = None
    maven: Repacked | None = None
    wheel: Repacked | None = None


class BaseLock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One base image."""

    image: str
    digest: Digest | None = None  # null: unresolved


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. Equal content gives equal text."""

    schema: int = SCHEMA
    epoch: Epoch | None = None  # date of the images, seconds since 1970; only `ortimg lock` writes it
    ort: dict[str, OrtLock] = {}  # by release key, "1.16.2-cuda11"
    cuda: dict[str, dict[str, Sha256]] = {}  # by set key, "11.8-cudnn8": wheel file name to sha256
    bases: dict[str, BaseLock] = {}
    headers: dict[str, Repacked] = {}  # by release key: headers that came from elsewhere than the archive
    python: dict[str, dict[str, Sha256]] = {}  # "1.17.1-cuda11-python3.11": wheel file name to sha256
    tags: dict[str, str] = {}  # more names of cells: name to identifier; only `ortimg lock` writes them


def parse(text: str, filename: str = "images.lock") -> Lock:
    """Read a lock. Raises `ConfigError`."""
    try:
        lock = msgspec.json.decode(text, type=Lock)
    except msgspec.DecodeError as error:  # ValidationError is one
        raise ConfigError(
            f"{filename}: {_plain(str(error))}", hint="restore the file from git, or remove it"
        ) from error
    if lock.schema != SCHEMA:
        raise ConfigError(
            f"{filename}: schema {lock.schema} is not known (this ortimg writes {SCHEMA})",
            hint="update ortimg, or restore the file from git",
        )
    return lock


def _plain(message: str) -> str:
    """msgspec's message without its patterns: what belongs there, and where."""
    message = re.sub(r"Expected `str` matching regex '.*?'", "no sha256 stands where one belongs", message)
    message = message.replace("Input data was truncated", "the file ends too early")
    return message.replace("`$.", "`").replace("[...]", ".*")


def dump(lock: Lock) -> str:
    """The file's text: sorted, with a last newline."""
    return json.dumps(msgspec.to_builtins(lock), indent=2, sort_keys=True) + "\n"


def planned(cells: Iterable[Cell]) -> Lock:
    """What the catalogue knows about the inputs of `cells`."""
    ort: dict[str, OrtLock] = {}
    cuda: dict[str, dict[str, Sha256]] = {}
    bases: dict[str, BaseLock] = {}
    headers: dict[str, Repacked] = {}
    python: dict[str, dict[str, str]] = {}
    tags: dict[str, str] = {}
    for cell in cells:
        tags |= dict.fromkeys(cell.tags, cell.identifier)
        release, cuda_set, base = cell.release, cell.cuda_set, cell.base
        if cell.wheels:
            python[cell.ort_key] = {wheel.filename: wheel.sha256 for wheel in cell.wheels}
        else:
            ort[release.key] = OrtLock(
                upstream=release.sha256,
                maven=Repacked(source=release.maven.sha256) if release.maven else None,
                wheel=Repacked(source=release.wheel.sha256) if release.wheel else None,
            )
        if cell.flavour is Flavour.DEVEL and release.headers is not None:
            headers[release.key] = Repacked()
        cuda[cuda_set.key] = {wheel.filename: wheel.sha256 for wheel in cuda_set.wheels}
        bases[base.name] = BaseLock(image=base.image)
    return Lock(ort=ort, cuda=cuda, bases=bases, headers=headers, python=python, tags=tags)


def merge(lock: Lock, news: Lock) -> Lock:
    """`lock` with what `news` adds; a hash that is there already is never changed, and no tag.

    Raises `EnvironmentFault` where both name a hash for one file and the two differ.
    """
    ort = dict(lock.ort)
    for key, new in news.ort.items():
        old = ort.get(key, OrtLock())
        ort[key] = OrtLock(
            upstream=_agreed(f"{key} (upstream)", old.upstream, new.upstream),
            asset=old.asset or new.asset,
            maven=_repacked(f"{key} (maven)", old.maven, new.maven),
            wheel=_repacked(f"{key} (wheel)", old.wheel, new.wheel),
        )
    headers = dict(lock.headers)
    for key, found in news.headers.items():
        before_it = headers.get(key, Repacked())
        # Debian builds its package anew now and then: what counts are the headers in it.
        headers[key] = Repacked(
            source=found.source or before_it.source,
            tar=_agreed(f"{key} (headers)", before_it.tar, found.tar),
        )
    bases = dict(lock.bases)
    for name, base in news.bases.items():
        before = bases.get(name)
        if before is None or before.image != base.image:
            bases[name] = base
        elif before.digest is None:
            bases[name] = BaseLock(image=base.image, digest=base.digest)
    return Lock(
        ort=ort,
        cuda=_sets(lock.cuda, news.cuda),
        bases=bases,
        headers=headers,
        python=_sets(lock.python, news.python),
        tags=lock.tags,
        epoch=lock.epoch,
    )


def _sets(old: Mapping[str, dict[str, str]], new: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Sets of wheels; each is exact: another cuDNN means other files."""
    sets = {key: dict(wheels) for key, wheels in old.items()}
    for key, wheels in new.items():
        known = sets.get(key, {})
        for filename, sha256 in wheels.items():
            _agreed(filename, known.get(filename), sha256)
        sets[key] = dict(wheels)
    return sets


def _repacked(what: str, old: Repacked | None, new: Repacked | None) -> Repacked | None:
    if old is None or new is None:
        return old or new
    return Repacked(
        source=_agreed(f"{what}, package", old.source, new.source),
        tar=_agreed(f"{what}, repacked", old.tar, new.tar),
    )


def _agreed(what: str, old: str | None, new: str | None) -> str | None:
    if old is not None and new is not None and old != new:
        raise EnvironmentFault(
            f"{what}: sha256 is {new}, images.lock says {old}: re-uploaded upstream or damaged in transit",
            "`ortimg lock --check` shows what differs, and `ortimg lock --update` takes it",
        )
    return old if old is not None else new
