"""Makes the warmed image: the image, and the cache as one more layer."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from ortimg.core.warm import (
    IDENTIFIER_LABEL,
    LIBRARIES,
    Original,
    Warmed,
    cache_limit,
    check_build,
    check_cell,
    check_original,
    dockerfile,
    summary,
    wants_seed,
    warmed_name,
)
from ortimg.core.warm_record import PROVIDER, Warmth
from ortimg.engine.buildx import run_build
from ortimg.engine.client import Engine, Image
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault
from ortimg.factory.disk import builder_name
from ortimg.warming.folder import lay_out, look

_CONTEXT = "image"  # beside the record: a folder that `docker build` takes as it is
# As the cells' own layers: docs of `ortimg.factory.steps`.
_OUTPUT = "--output=type=image,compression=zstd,compression-level=3,oci-mediatypes=true"


def find(engine: Engine, reference: str) -> Image:
    """An image that may be warmed. Raises EnvironmentFault where it is absent, ConfigError if it may not."""
    image = engine.inspect(reference)
    if image is None:
        raise EnvironmentFault(
            f"the engine has no image {reference}", f"Run `docker pull {reference}`, or `ortimg build`."
        )
    check_original(reference, image.labels)
    return image


def bake(
    engine: Engine,
    image: Image,
    reference: str,
    warmth: Warmth,
    folder: Path,
    out: Path,
    *,
    tag: str | None,
    max_size: int | None,
    seed: bool | None,
) -> Warmed:
    """Builds the warmed image from the record and cache in `folder`; its Dockerfile and files go to `out`.

    It gets the entrypoint as `wants_seed` says.

    Raises CheckFailed as that does, and where the record does not fit the image, the cache holds what it must
    not, or the build fails; ConfigError for a size that would throw kernels out.
    """
    caution = check_cell(warmth, reference, image.labels[IDENTIFIER_LABEL])
    seed = wants_seed(warmth, seed)
    baked = look(folder)
    limit = cache_limit(baked, max_size)
    named = _name(reference, image)
    made = tag or warmed_name(named, warmth)
    check_build(warmth, reference, _provider(engine, image))
    original = Original(reference=named, id=image.id, entrypoint=image.entrypoint, command=image.command)
    with _context(out) as context:
        lay_out(folder, context / "rootfs", summary(warmth, baked, limit), seed=seed)
        text = dockerfile(warmth, original, baked, limit, seed=seed)
        (context / "Dockerfile").write_text(text, encoding="utf-8")
        args = ["build", f"--builder={builder_name()}", f"--tag={made}", _OUTPUT, str(context)]
        outcome = run_build(
            args,
            on_event=lambda _event: None,
            log=out / "build.log",
            cancel=threading.Event(),
            env={"SOURCE_DATE_EPOCH": str(_seconds(warmth.date))},  # the same image from the same record
        )
    if not outcome.ok:
        failure = outcome.failure
        kind = EnvironmentFault if failure is not None and failure.environment else CheckFailed
        raise kind(f"the warmed image cannot be built: {failure}", f"The whole log: {outcome.log}")
    _check_layers(engine, image, made)
    return Warmed(
        reference=made,
        dockerfile=str(out / _CONTEXT / "Dockerfile"),
        baked=baked,
        limit=limit,
        caution=caution,
        seeded=seed,
    )


def _provider(engine: Engine, image: Image) -> str | None:
    """sha256 of the image's CUDA provider, which takes seconds; None where it has none at its place."""
    path = f"{LIBRARIES}/{PROVIDER}"
    return engine.file_hashes(image.id, [path]).get(path)


def _name(reference: str, image: Image) -> str:
    """The image as a Dockerfile names it: by its identifier if there is one; aliases such as 1.16 move on."""
    named = reference if reference in image.references else f"{reference}:latest"
    if named not in image.references:  # a digest, an id, docker.io/…
        if not image.references:
            raise ConfigError(f"{reference} has no name", hint="Give it one: docker tag ID NAME:TAG.")
        named = image.references[0]
    cell = f"{named.rpartition(':')[0]}:{image.labels[IDENTIFIER_LABEL]}"
    return cell if cell in image.references else named


@contextmanager
def _context(out: Path) -> Iterator[Path]:
    """A new folder, which takes the place of an earlier one in `out` when all went well."""
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".image-", dir=out))
    try:
        yield work
        work.chmod(0o755)
        place = out / _CONTEXT
        if place.is_symlink():
            raise ConfigError(f"{place} is a link", hint="Remove it, or name another folder with --out.")
        shutil.rmtree(place, ignore_errors=True)
        work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_layers(engine: Engine, image: Image, made: str) -> None:
    """One layer more, and those below are the image's own."""
    there = engine.inspect(made)
    if there is None or there.layers[:-1] != image.layers:
        raise CheckFailed(
            f"{made} does not consist of the layers of the image and one more",
            "Did another build give its name to something else? Run it again.",
        )


def _seconds(date: str) -> int:
    """`2026-12-01T09:35:58Z` as seconds; 0 for what is no date."""
    try:
        return max(int(datetime.fromisoformat(date).timestamp()), 0)
    except ValueError:
        return 0


def default_out(cache: Path, identifier: str) -> Path:
    """A new folder for a record that the user gave no place."""
    parent = cache / "warm"
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (identifier if number == 1 else f"{identifier}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            if number > os.getpid() + 100_000:
                raise
        else:
            return folder
