"""Records as OCI referrers: attached to the digest in a registry, so that they travel with the image.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md#listing-referrers
"""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.errors import CheckFailed
from ortimg.records.record import ARTIFACT_TYPE, Record, dump_record, parse_record
from ortimg.registry.client import Repository
from ortimg.registry.referrers import list_referrers, put_referrer, read_referrer


def attach(repository: Repository, digest: str, records: Sequence[Record]) -> list[str]:
    """Attach those of `records` that speak of the image `digest`; digests of the referrers.

    The same record gives the same referrer, however often. Raises NoImage where the repository has no such
    image, `Unreachable` and `Denied`.
    """
    return [
        put_referrer(
            repository,
            digest,
            ARTIFACT_TYPE,
            dump_record(record).encode(),
            annotations={
                "org.opencontainers.image.created": record.date,
                "ortimg.verdict": record.verdict.value,
                "ortimg.gpu": (record.gpu.name if record.gpu else None) or "none",
            },
        )
        for record in records
        if record.digest == digest
    ]


def attached(repository: Repository, digest: str) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Records that a registry has of the image `digest`, and what there is no record. Raises as `attach`."""
    records, problems = [], []
    for row in list_referrers(repository, digest, ARTIFACT_TYPE):
        try:
            record = parse_record(read_referrer(repository, row) or b"", f"{repository.name}@{row.digest}")
        except CheckFailed as error:
            problems.append(f"ignored: {error.message}")
            continue
        if record.digest == digest:
            records.append(record)
        else:
            problems.append(f"ignored: {repository.name}@{row.digest} speaks of {record.digest}")
    return tuple(records), tuple(problems)
