"""Makes records of what was run, keeps and attaches them, takes in those that were carried here."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ortimg import __version__
from ortimg.core.problems import quote
from ortimg.engine.client import Engine, Image
from ortimg.errors import CheckFailed, EnvironmentFault
from ortimg.records.identity import differences, image_identity, root_identity
from ortimg.records.record import Identity, Record, Subject, make_record, other_model
from ortimg.records.store import read_file, write_file, write_record
from ortimg.records.wish import RecordWish
from ortimg.registry.errors import NoImage
from ortimg.verify.report import Report, Verdict


def recordable_digest(reference: str, image: Image) -> str:
    """The digest to record a verdict under. Raises EnvironmentFault where the engine does not know it."""
    if image.digest is None:
        raise EnvironmentFault(
            f"the engine does not know the manifest digest of {reference}: its store learns it by a push",
            "push the image first, or use the containerd image store"
            " (https://docs.docker.com/engine/storage/containerd/)",
        )
    return image.digest


def require_pushed(reference: str, digest: str) -> None:
    """Before a run: a record can only be attached to what the registry has. Raises NoImage, `Unreachable`."""
    from ortimg.registry.client import Registries

    if Registries().repository(reference).digest(digest) is None:
        raise NoImage(f"the registry of {reference} has no {digest}", "push it first: `ortimg push`")


def record_image(
    engine: Engine, project: Path, reference: str, image: Image, report: Report, wish: RecordWish
) -> None:
    """Keep the verdict on `image`, which `reference` named when the run began."""
    there, digest = engine.inspect(reference), recordable_digest(reference, image)
    if there is None or there.id != image.id:
        click.echo(f"{reference} names another image since: this verdict is of {digest}", err=True)
    record = _made(report, Subject.IMAGE, digest, image_identity(image))
    if record is not None:
        _keep(project, reference, record, wish)


def record_root(project: Path, folder: Path, report: Report, wish: RecordWish) -> None:
    """Keep the verdict on an unpacked root."""
    record = _made(report, Subject.ROOT, wish.digest, root_identity(folder))
    if record is not None:
        _keep(project, str(folder), record, wish)


def import_record(engine: Engine, project: Path, reference: str, wish: RecordWish) -> tuple[Record, Path]:
    """Take in a record that was carried here, if it belongs to the image `reference`; and where it lies now.

    Raises CheckFailed where it does not, or is no record.
    """
    assert wish.bring is not None
    record = read_file(wish.bring)
    image = engine.require(reference)
    digest = recordable_digest(reference, image)
    if record.digest is None:
        raise CheckFailed(
            f"{wish.bring} is of an unpacked root and bound to no image",
            f"run `ortimg verify DIR --gpu --record-file FILE --digest {digest}` there, if DIR is that image",
        )
    if record.digest != digest:
        raise CheckFailed(
            f"{wish.bring} speaks of {record.digest}, and {reference} is {digest}",
            "name the image that was run; one that was built anew needs a run of its own",
        )
    if record.subject is Subject.ROOT and (found := differences(engine, image, record.identity)):
        raise CheckFailed(
            f"{wish.bring} names {reference}, and the root that was run is not of it: {'; '.join(found)}",
            "export the image anew, and run that",
        )
    if record.subject is Subject.IMAGE and record.identity != image_identity(image):
        raise CheckFailed(
            f"{wish.bring} names {reference}, and tells other labels of it: it was changed after the run",
            "make it anew with `ortimg verify … --gpu --record-file FILE`",
        )
    if other := other_model(record):
        raise CheckFailed(
            f"{wish.bring} is of the model {quote(other)}: only runs of ort-verify's own model are recorded",
            "run it without --model there",
        )
    path = write_record(project, record)
    if wish.push:
        _push(reference, record)
    return record, path


def _made(report: Report, subject: Subject, digest: str | None, identity: Identity) -> Record | None:
    if report.verdict is Verdict.ENVIRONMENT:
        click.echo(f"{report.target}: nothing recorded, since this machine cannot tell", err=True)
        return None
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return make_record(report, subject, digest, identity, __version__, now)


def _keep(project: Path, target: str, record: Record, wish: RecordWish) -> None:
    if wish.file is not None:
        write_file(wish.file, record)
        click.echo(f"{target}: {record.verdict.value} recorded in {wish.file}", err=True)
    if wish.keep or wish.push:
        path = write_record(project, record)
        click.echo(f"{target}: {record.verdict.value} recorded in {path}", err=True)
    if wish.push:
        _push(target, record)


def _push(reference: str, record: Record) -> None:
    from ortimg.records.attach import attach
    from ortimg.registry.client import Registries

    assert record.digest is not None
    repository = Registries().repository(reference)
    (referrer,) = attach(repository, record.digest, [record])
    click.echo(f"{repository.name}@{record.digest}: verdict attached as {referrer}", err=True)
