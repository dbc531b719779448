"""What speaks about an image by its digest: attached records, listed again.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md#listing-referrers. A registry without
the referrers API has a tag in its place, `sha256-<hex>`, which every client keeps up to date itself:
https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import requests

from ortimg.inputs.download import Unreachable
from ortimg.registry.client import Repository
from ortimg.registry.errors import NoImage, refusal
from ortimg.registry.model import (
    EMPTY,
    EMPTY_TYPE,
    INDEX,
    MANIFEST,
    Descriptor,
    canonical,
    digest_of,
)

_SUBJECT = "OCI-Subject"  # header by which a registry says that it lists the referrer itself


def put_referrer(
    repository: Repository,
    subject_digest: str,
    artifact_type: str,
    payload: bytes,
    *,
    media_type: str = "application/json",
    annotations: Mapping[str, str] | None = None,
) -> str:
    """Attaches `payload` to the image `subject_digest` of the repository; gives the referrer's digest.

    The same payload, type and annotations give the same digest, however often. Raises `NoImage` where the
    repository has no such image, `Unreachable` and `Denied`.
    """
    subject = repository.manifest(subject_digest)
    if subject is None:
        raise NoImage(f"{repository.name} has no image {subject_digest}", "push it first")
    layer = Descriptor(media_type=media_type, digest=repository.upload_bytes(payload), size=len(payload))
    config = Descriptor(media_type=EMPTY_TYPE, digest=repository.upload_bytes(EMPTY), size=len(EMPTY))
    target = Descriptor(media_type=subject.media_type, digest=subject.digest, size=len(subject.data))
    content: dict[str, object] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": artifact_type,
        "config": config.as_data(),
        "layers": [layer.as_data()],
        "subject": target.as_data(),
    }
    if annotations:
        content["annotations"] = dict(annotations)
    data = canonical(content)
    digest, answer = repository.put_manifest_answer(data, MANIFEST)
    if answer.headers.get(_SUBJECT) != subject_digest:
        own = Descriptor(
            media_type=MANIFEST,
            digest=digest,
            size=len(data),
            artifact_type=artifact_type,
            annotations=dict(annotations or {}),
        )
        _into_tag(repository, subject_digest, own)
    return digest


def list_referrers(
    repository: Repository, subject_digest: str, artifact_type: str | None = None
) -> tuple[Descriptor, ...]:
    """What is attached to an image; `artifact_type`: of this type only. Raises `Unreachable` and `Denied`."""
    # Both: a registry that learned the API later lists nothing of before, and go-containerregistry's (0.22)
    # lists with the wrong type. A registry that does it well has no such tag.
    rows = {row.digest: row for row in _from_api(repository, subject_digest) or ()}
    rows |= {row.digest: row for row in _from_tag(repository, subject_digest)}
    return tuple(row for row in rows.values() if artifact_type in (None, row.artifact_type))


def read_referrer(repository: Repository, referrer: Descriptor) -> bytes | None:
    """The payload of a referrer that `put_referrer` attached; None where it has none. Checked by digest."""
    manifest = repository.manifest(referrer.digest)
    layers = manifest.content.get("layers") if manifest else None
    if not layers:
        return None
    return repository.blob(str(layers[0].get("digest")))


def _from_api(repository: Repository, subject: str) -> list[Descriptor] | None:
    """None: the registry has no such API."""
    url: str | None = f"{repository.transport.base}{repository.path}/referrers/{subject}"
    rows: list[Descriptor] = []
    while url:
        answer = repository.transport.send(
            "GET", url, (f"repository:{repository.path}:pull",), headers={"Accept": INDEX}
        )
        # Registries that do not know the path say 404, or what they say to every unknown path.
        if answer.status_code in (400, 404, 405):
            return None
        if not answer.ok:
            raise refusal(repository.registry, f"list referrers of {subject}", answer)
        rows += _rows(repository, answer.content)
        url = _next(answer)
    return rows


def _next(answer: requests.Response) -> str | None:
    link = answer.links.get("next", {}).get("url")
    return requests.compat.urljoin(answer.url, link) if link else None


def _from_tag(repository: Repository, subject: str) -> list[Descriptor]:
    manifest = repository.manifest(_tag(subject))
    return [] if manifest is None else _rows(repository, manifest.data)


def _into_tag(repository: Repository, subject: str, referrer: Descriptor) -> None:
    # Two clients at once can lose a row here: the specification has no lock for this tag.
    rows = [row for row in _from_tag(repository, subject) if row.digest != referrer.digest]
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [row.as_data() for row in (*rows, referrer)],
    }
    repository.put_manifest(canonical(index), INDEX, _tag(subject))


def _tag(subject: str) -> str:
    return subject.replace(":", "-", 1)


def _rows(repository: Repository, data: bytes) -> list[Descriptor]:
    try:
        content: Any = json.loads(data)
        return [Descriptor.parse(row) for row in content.get("manifests") or ()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = digest_of(data)
        raise Unreachable(f"{repository.registry}: the list of referrers {what} is none") from error
