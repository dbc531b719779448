"""A bill of materials as SPDX 2.3 JSON: https://spdx.github.io/spdx-spec/v2.3/. Pure.

Equal content gives equal text: the namespace is made of the image's digest, the date is the document's.
Libraries are packages with a sha256, since SPDX 2.3 asks for a SHA-1 of whatever it calls a file.
"""

from __future__ import annotations

import hashlib
import io
import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import quote

from license_expression import ExpressionError, get_spdx_licensing
from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    ExtractedLicensingInfo,
    Package,
    PackagePurpose,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)
from spdx_tools.spdx.writer.json.json_writer import write_document_to_stream

from ortimg.core.sbom import Bom, Component, LibraryFile, Licence

_DOCUMENT = "SPDXRef-DOCUMENT"
_LICENSING = get_spdx_licensing()


def to_spdx(bom: Bom, tool: str) -> str:
    """The document's text. `tool`: name and version of the program that makes it."""
    return _Writer(bom, tool).text()


class _Writer:
    def __init__(self, bom: Bom, tool: str) -> None:
        self._bom, self._tool = bom, tool
        self._packages: list[Package] = []
        self._relations: list[Relationship] = []
        self._licences: dict[str, ExtractedLicensingInfo] = {}  # by text: NVIDIA's wheels have the same one

    def text(self) -> str:
        bom, image = self._bom, self._bom.image
        name = f"{bom.repository.rpartition('/')[2]}-{bom.identifier}"
        root = self._package(image, _DOCUMENT, RelationshipType.DESCRIBES, PackagePurpose.CONTAINER)
        for component in bom.components:
            self._component(component, root)
        unique = uuid.uuid5(uuid.NAMESPACE_URL, f"spdx {image.purl}")
        info = CreationInfo(
            spdx_version="SPDX-2.3",
            spdx_id=_DOCUMENT,
            name=name,
            document_namespace=f"https://spdx.org/spdxdocs/{quote(name)}-{unique}",
            creators=[Actor(ActorType.TOOL, self._tool.replace(" ", "-"))],
            created=datetime.fromtimestamp(bom.epoch, UTC).replace(tzinfo=None),
            document_comment="\n".join(bom.notes) or None,
        )
        document = Document(
            creation_info=info,
            packages=self._packages,
            relationships=self._relations,
            extracted_licensing_info=sorted(self._licences.values(), key=lambda row: str(row.license_id)),
        )
        stream = io.StringIO()
        write_document_to_stream(document, stream, validate=False)
        return stream.getvalue().rstrip("\n") + "\n"

    def _component(self, component: Component, above: str) -> None:
        own = self._package(component, above, RelationshipType.CONTAINS, PackagePurpose.LIBRARY)
        for part in component.parts:
            self._component(part, own)
        for file in component.files:
            self._file(file, own)

    def _package(self, row: Component, above: str, how: RelationshipType, purpose: PackagePurpose) -> str:
        external = [("purl", row.purl, ExternalPackageRefCategory.PACKAGE_MANAGER)]
        external += [("cpe23Type", row.cpe, ExternalPackageRefCategory.SECURITY)]
        sha256 = (
            self._bom.digest.removeprefix("sha256:") if purpose is PackagePurpose.CONTAINER else row.sha256
        )
        return self._add(
            Package(
                spdx_id=_spdx_id(row.name, row.ref),
                name=row.name,
                version=row.version,
                download_location=row.download or SpdxNoAssertion(),
                supplier=Actor(ActorType.ORGANIZATION, row.supplier) if row.supplier else SpdxNoAssertion(),
                files_analyzed=False,
                checksums=_checksums(sha256),
                source_info=row.origin,
                license_concluded=SpdxNoAssertion(),
                license_declared=self._declared(row.licences),
                copyright_text=SpdxNoAssertion(),
                external_references=[
                    ExternalPackageRef(category, kind, value) for kind, value, category in external if value
                ],
                primary_package_purpose=purpose,
            ),
            above,
            how,
        )

    def _file(self, file: LibraryFile, above: str) -> None:
        package = Package(
            spdx_id=_spdx_id("file", file.path),
            name=file.name,
            download_location=SpdxNoAssertion(),
            file_name=file.path,
            files_analyzed=False,
            checksums=_checksums(file.sha256),
            primary_package_purpose=PackagePurpose.FILE,
        )
        self._add(package, above, RelationshipType.CONTAINS)

    def _add(self, package: Package, above: str, how: RelationshipType) -> str:
        self._packages.append(package)
        self._relations.append(Relationship(above, how, package.spdx_id))
        return str(package.spdx_id)

    def _declared(self, licences: Iterable[Licence]) -> object:
        names = sorted({self._name(licence) for licence in licences})
        return _LICENSING.parse(" AND ".join(names)) if names else SpdxNoAssertion()

    def _name(self, licence: Licence) -> str:
        if licence.spdx and _known(licence.name):
            return f"({licence.name})" if " " in licence.name else licence.name
        text = licence.text or f"called {licence.name} by the package"
        if (there := self._licences.get(text)) is not None:
            return str(there.license_id)
        key = "LicenseRef-" + _safe(licence.name)
        if licence.text is not None:
            key += f"-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        comment = f"{licence.path} in the image" if licence.path else None
        self._licences[text] = ExtractedLicensingInfo(
            license_id=key, extracted_text=text, license_name=licence.name, comment=comment
        )
        return key


def _known(expression: str) -> bool:
    try:
        return not _LICENSING.validate(expression, strict=True).errors
    except ExpressionError:
        return False


def _checksums(sha256: str | None) -> list[Checksum]:
    return [Checksum(ChecksumAlgorithm.SHA256, sha256)] if sha256 else []


def _spdx_id(name: str, ref: str) -> str:
    return f"SPDXRef-{_safe(name)}-{hashlib.sha256(ref.encode()).hexdigest()[:12]}"


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-") or "x"
