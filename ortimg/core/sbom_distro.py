"""A distribution's packages, as syft tells of them. Pure.

https://github.com/anchore/syft: `syft scan dir:… -o syft-json`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ortimg.core.sbom import Component, Licence
from ortimg.errors import EnvironmentFault

_PACKAGES = {"deb", "rpm"}


def read_syft(data: bytes) -> tuple[Component, ...]:
    """The packages of a syft document, by name. Raises EnvironmentFault where it is none."""
    try:
        rows: list[dict[str, Any]] = msgspec.json.decode(data)["artifacts"]
        found = [_package(row) for row in rows if row["type"] in _PACKAGES]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise EnvironmentFault(f"syft's answer is not understood: {error!r}", "see `syft version`") from error
    # A package of two architectures is there twice; their purls differ.
    return tuple(sorted({row.ref: row for row in found}.values(), key=lambda row: (row.name, row.ref)))


def _package(row: dict[str, Any]) -> Component:
    cpes = row.get("cpes") or ()
    return Component(
        name=row["name"],
        version=row.get("version") or None,
        purl=row.get("purl") or None,
        cpe=next((str(cpe["cpe"]) for cpe in cpes), None),
        licences=tuple(
            sorted({_licence(licence) for licence in row.get("licenses") or ()}, key=lambda found: found.name)
        ),
    )


def _licence(row: dict[str, Any]) -> Licence:
    expression = row.get("spdxExpression") or ""
    return Licence(name=expression or row["value"], spdx=bool(expression))
