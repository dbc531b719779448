"""The catalogue: facts about releases, CUDA libraries and distributions, read and looked up."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import yaml
from packaging.version import Version

from ortimg.core.cudnn import NO_CUDNN
from ortimg.core.model import (
    Base,
    Catalogue,
    CudaSet,
    Layout,
    NoAsset,
    OrtRelease,
    PythonRelease,
    PythonSet,
)
from ortimg.errors import ConfigError

_RowT = TypeVar("_RowT")


def parse_catalogue(ort: bytes, cuda: bytes, bases: bytes, python: bytes = b"{}") -> Catalogue:
    """Rows of `ort.yaml`, `cuda.yaml`, `bases.yaml` and `python.yaml`.

    Raises ConfigError, with the file and the row, where a row is not what `core/model.py` describes.
    """
    ort_data = _load(ort, "ort.yaml")
    url = ort_data.get("url", "")
    releases = ort_data.get("releases") or []
    for row in releases:
        if isinstance(row, dict) and "url" not in row:
            row["url"] = url.format(version=row.get("version"), asset=row.get("asset"))
    python_data = _load(python, "python.yaml")
    return Catalogue(
        releases=_rows(releases, OrtRelease, "ort.yaml: releases"),
        layouts=_rows(ort_data.get("layouts") or [], Layout, "ort.yaml: layouts"),
        no_assets=_rows(ort_data.get("no_assets") or [], NoAsset, "ort.yaml: no_assets"),
        cuda_sets=_rows(_load(cuda, "cuda.yaml").get("cuda_sets") or [], CudaSet, "cuda.yaml: cuda_sets"),
        bases=_rows(_load(bases, "bases.yaml").get("bases") or [], Base, "bases.yaml: bases"),
        python_releases=_rows(
            python_data.get("python_releases") or [], PythonRelease, "python.yaml: python_releases"
        ),
        python_sets=_rows(python_data.get("python_sets") or [], PythonSet, "python.yaml: python_sets"),
    )


def _load(raw: bytes, name: str) -> dict[str, Any]:
    try:
        data = yaml.load(raw, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"catalogue {name}: {' '.join(str(error).split())}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"catalogue {name}: not a mapping")
    return data


def _rows(rows: Any, kind: type[_RowT], where: str) -> tuple[_RowT, ...]:
    try:
        return msgspec.convert(rows, tuple[kind, ...])  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise ConfigError(f"catalogue {where}: {error}") from None


class Index:
    """Look-ups in a catalogue, made once for a whole plan."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.releases: dict[str, tuple[OrtRelease, ...]] = {}
        for release in catalogue.releases:
            self.releases[release.version] = (*self.releases.get(release.version, ()), release)
        self.no_assets = {row.version: row.reason for row in catalogue.no_assets}
        by_cudnn = sorted(catalogue.cuda_sets, key=lambda row: row.cudnn_major)
        self.sets = {(row.cuda, NO_CUDNN): row.without_cudnn() for row in by_cudnn}  # of the newest cuDNN
        self.sets |= {(row.cuda, row.cudnn): row for row in catalogue.cuda_sets}
        self.bases = {row.name: row for row in catalogue.bases}
        self.layouts = {row.name: row for row in catalogue.layouts}

    def release(self, version: str, cuda_major: int) -> OrtRelease | None:
        """The release archive of one version for one CUDA major, if there is one."""
        return next((row for row in self.releases.get(version, ()) if row.cuda_major == cuda_major), None)

    def versions(self) -> list[str]:
        """Versions with a release archive, in their own order (1.9 before 1.16)."""
        return sorted(self.releases, key=Version)
