"""Bills of materials as OCI referrers of the images that were pushed: they travel with the digest.

https://github.com/opencontainers/image-spec/blob/main/manifest.md#guidelines-for-artifact-usage
"""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.core.mirrors import Reference
from ortimg.core.model import Cell
from ortimg.engine.client import Engine
from ortimg.errors import EnvironmentFault
from ortimg.inputs.cache import Cache
from ortimg.inputs.lockfile import read_lock
from ortimg.project import Project
from ortimg.publishing.result import GOOD, PushReport
from ortimg.registry.client import Registries
from ortimg.registry.referrers import put_referrer
from ortimg.registry.transport import Patience
from ortimg.sbom.documents import Format, make_bom, writer


def attach_sboms(
    project: Project,
    cells: Sequence[Cell],
    report: PushReport,
    formats: Sequence[Format],
    *,
    plain_http: bool = False,
    retries: int = 5,
) -> list[str]:
    """Attach a document to each image of `report` that is in its registry; digests of the referrers.

    The same image gives the same referrer, however often. Raises as `make_bom` and the registry do.
    """
    engine, lock, cache = Engine(), read_lock(project.root), Cache.default()
    writers = {wanted: writer(wanted) for wanted in formats}
    by_name = {cell.identifier: cell for cell in cells}
    plain = [Reference.parse(row.repository).registry for row in report.results] if plain_http else []
    registries = Registries(Patience(retries=retries), plain)
    attached = []
    for row in report.results:
        if row.result not in GOOD or row.digest is None:
            continue
        reference = f"{project.plan.repository}:{row.identifier}"
        if (image := engine.inspect(reference)) is None:
            raise EnvironmentFault(f"{reference} is gone from the engine", "build it, then push again")
        bom = make_bom(
            engine,
            image,
            reference,
            by_name[row.identifier],
            lock,
            cache,
            pushed=(row.repository, row.digest),
        )
        repository = registries.repository(row.repository)
        attached += [
            put_referrer(
                repository,
                row.digest,
                wanted.media_type,
                write(bom).encode(),
                media_type=wanted.media_type,
            )
            for wanted, write in writers.items()
        ]
    return attached
