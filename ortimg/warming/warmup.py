"""A whole warm-up: of a root, of an image where the GPU is, of an image from a record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec

from ortimg.core.catalogue import Index
from ortimg.core.tags import repository_problem, tag_problem
from ortimg.core.warm import IDENTIFIER_LABEL, read_size
from ortimg.core.warm_host import Expectation, Finding, check_host, check_labels, expect
from ortimg.core.warm_record import judge
from ortimg.core.warm_words import Outcome
from ortimg.data import read_catalogue, read_host_facts
from ortimg.engine.client import Engine
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.inputs.cache import Cache
from ortimg.verify.binary import get_verifier
from ortimg.warming.folder import CACHE, read_record
from ortimg.warming.image import bake, default_out, find
from ortimg.warming.measure import Course, prove_image, warm_image, warm_root

_MANIFEST = "usr/share/ortimg/manifest.json"


class ImageWish(msgspec.Struct, frozen=True, kw_only=True):
    """How the warmed image is to be."""

    tag: str | None = None
    max_size: str | None = None  # "2G"
    seed: bool | None = None  # with the entrypoint; None: where the driver needs it


def of_root(root: Path, out: Path, course: Course) -> Outcome:
    """Warms an unpacked root on this machine; `out` gets the record and the cache.

    Raises CheckFailed where a start fails, EnvironmentFault where there is no GPU.
    """
    if (expected := _expectation(_identifier(root))) and expected.native and not course.force:
        return Outcome(target=str(root), expected=expected)
    warm_root(root, _new(out), get_verifier(Cache.default().root), course)
    return Outcome(target=str(root), warmth=judge(read_record(out)), record=str(out))


def of_image(reference: str, out: Path | None, course: Course, wish: ImageWish) -> Outcome:
    """Warms an image in a container with this machine's GPU, and makes the warmed one, which is then run.

    Raises as `of_root`, and CheckFailed where the warmed image does not do what the record says.
    """
    size = _size(wish)
    engine = Engine()
    image = find(engine, reference)
    identifier = image.labels[IDENTIFIER_LABEL]
    expected = _expectation(identifier)
    if expected is not None and expected.native and not course.force:
        return Outcome(target=reference, expected=expected)
    cache = Cache.default().root
    verifier = get_verifier(cache)
    folder = _new(out) if out else default_out(cache, identifier)
    try:
        warm_image(engine, reference, folder, verifier, course)
    except (EnvironmentFault, KeyboardInterrupt):
        shutil.rmtree(folder)  # no record
        raise
    warmth = judge(read_record(folder))
    if not (folder / CACHE).is_dir():
        return Outcome(target=reference, warmth=warmth, record=str(folder))
    made = bake(
        engine,
        image,
        reference,
        warmth,
        folder,
        folder,
        tag=wish.tag,
        max_size=size,
        seed=wish.seed,
    )
    prove_image(engine, made.reference, verifier, course.seconds, seeded=made.seeded)
    made = msgspec.structs.replace(made, proven=True)
    return Outcome(target=reference, warmth=warmth, record=str(folder), made=made)


def from_record(reference: str, folder: Path, out: Path | None, wish: ImageWish) -> Outcome:
    """Makes the warmed image from a record that another machine made.

    Raises ConfigError where there is none, CheckFailed where it proves nothing or does not fit the image.
    """
    size = _size(wish)
    warmth = judge(read_record(folder))
    if warmth.native and not (folder / CACHE).exists():
        return Outcome(target=reference, warmth=warmth, record=str(folder))
    engine = Engine()
    image = find(engine, reference)
    made = bake(
        engine,
        image,
        reference,
        warmth,
        folder,
        out or folder,
        tag=wish.tag,
        max_size=size,
        seed=wish.seed,
    )
    return Outcome(target=reference, warmth=warmth, record=str(folder), made=made)


def check(reference: str) -> tuple[Finding, ...]:
    """Whether the cache in a warmed image fits this host. Raises EnvironmentFault where it has no GPU."""
    from ortimg.core.gpu_names import GpuNames
    from ortimg.host import read_host

    engine = Engine()
    image = engine.inspect(reference)
    if image is None:
        raise EnvironmentFault(
            f"the engine has no image {reference}", f"Run `docker pull {reference}`, or `ortimg warm`."
        )
    check_labels(reference, image.labels)
    try:
        host = read_host(GpuNames(read_host_facts()))
    except EnvironmentFault as fault:
        raise EnvironmentFault(fault.message, "Run it on the machine that is to run the image.") from None
    return check_host(image.labels, host)


def _expectation(identifier: str | None) -> Expectation | None:
    """The catalogue's word on this machine's GPUs; None: no driver answers here, or the cell is not known."""
    from ortimg.core.gpu_names import GpuNames
    from ortimg.host import read_host

    if identifier is None:
        return None
    try:
        host = read_host(GpuNames(read_host_facts()))
    except EnvironmentFault:
        return None  # the engine may be on another machine; where the GPU is missing, the start says so
    return expect(Index(read_catalogue()), identifier, [gpu.capability for gpu in host.gpus])


def _identifier(root: Path) -> str | None:
    file = (root / _MANIFEST).resolve()
    if not file.is_relative_to(root.resolve()) or not file.is_file():
        return None
    try:
        return str(json.loads(file.read_bytes())["identifier"])
    except (ValueError, KeyError, TypeError):
        return None


def _size(wish: ImageWish) -> int | None:
    """Also looks at the rest of the wish, before anything takes time."""
    if wish.tag is not None:
        repository, colon, tag = wish.tag.rpartition(":")
        problem = (repository_problem(repository) or tag_problem(tag)) if colon else "it has no tag"
        if problem:
            raise ConfigError(f"--tag {wish.tag}: {problem}", hint="Write NAME:TAG.")
    return read_size(wish.max_size) if wish.max_size is not None else None


def _new(out: Path) -> Path:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out} is there, and not an empty folder", hint="Name a new one.")
    out.mkdir(parents=True, exist_ok=True)
    return out
