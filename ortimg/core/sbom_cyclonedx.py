"""A bill of materials as CycloneDX 1.6 JSON: https://cyclonedx.org/docs/1.6/json/. Pure.

Equal content gives equal text: the serial number is made of the image's digest, the date is the document's.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom as Document
from cyclonedx.model.bom import BomMetaData
from cyclonedx.model.component import Component as Row
from cyclonedx.model.component import ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL

from ortimg.core.sbom import Bom, Component, LibraryFile, Licence


def to_cyclonedx(bom: Bom, tool: str) -> str:
    """The document's text. `tool`: name and version of the program that makes it."""
    image = bom.image
    root = Row(
        name=image.name,
        version=image.version,
        type=ComponentType.CONTAINER,
        purl=PackageURL.from_string(str(image.purl)),
        bom_ref=image.ref,
        hashes=[_sha256(bom.digest.removeprefix("sha256:"))],
    )
    document = Document(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"cyclonedx {image.purl}"),
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(bom.epoch, UTC),
            component=root,
            tools=ToolRepository(
                components=[Row(name=tool.partition(" ")[0], version=tool.partition(" ")[2])]
            ),
            properties=[Property(name="ortimg:note", value=note) for note in bom.notes],
        ),
        components=[_row(component) for component in bom.components],
    )
    document.register_dependency(root, document.components)
    return JsonV1Dot6(document).output_as_string(indent=2) + "\n"


def _row(component: Component) -> Row:
    origin = [component.origin] if component.origin else []
    paths = [licence.path for licence in component.licences if licence.path]
    return Row(
        name=component.name,
        version=component.version,
        type=ComponentType.LIBRARY,
        bom_ref=component.ref,
        purl=PackageURL.from_string(component.purl) if component.purl else None,
        cpe=component.cpe,
        supplier=OrganizationalEntity(name=component.supplier) if component.supplier else None,
        licenses=_licences(component.licences),
        hashes=[_sha256(component.sha256)] if component.sha256 else [],
        external_references=[_reference(component.download)] if component.download else [],
        properties=[
            *(Property(name="ortimg:origin", value=value) for value in origin),
            *(Property(name="ortimg:licence-file", value=path) for path in paths),
        ],
        components=[*(_row(part) for part in component.parts), *(_file(file) for file in component.files)],
    )


def _file(file: LibraryFile) -> Row:
    return Row(
        name=file.path, type=ComponentType.FILE, bom_ref=f"file:{file.path}", hashes=[_sha256(file.sha256)]
    )


def _licences(licences: Iterable[Licence]) -> list[DisjunctiveLicense]:
    return [
        DisjunctiveLicense(id=row.name)
        if row.spdx and is_supported_id(row.name)
        else DisjunctiveLicense(name=row.name)
        for row in licences
    ]


def _sha256(value: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=value)


def _reference(url: str) -> ExternalReference:
    return ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(url))
