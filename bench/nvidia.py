"""What an image of NVIDIA's carries, from nvidia-packages.yaml: measured packages, each with its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

from bench import ROOT
from ortimg.errors import ConfigError

FILE = ROOT / "bench" / "nvidia-packages.yaml"


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package of the image: its shared libraries, in bytes."""

    name: str  # NVIDIA's package for Debian and Ubuntu
    version: str
    source: str  # the wheel that holds the same files
    sha256: str  # of the wheel
    libraries: dict[str, int]  # bytes of each, unpacked
    gzip: int  # bytes, as one layer: tar, gzip level 6
    zstd: int  # bytes, as one layer: tar, zstd level 3


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package of the image that does not count here."""

    name: str
    why: str


class NvidiaSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    image: str
    cuda: str
    list_from: str  # where it is written which packages the image has
    packages: tuple[Package, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def raw(self) -> int:
        return sum(sum(package.libraries.values()) for package in self.packages)

    @property
    def gzip(self) -> int:
        return sum(package.gzip for package in self.packages)

    @property
    def zstd(self) -> int:
        return sum(package.zstd for package in self.packages)

    def cell_of(self, cells: Sequence[str]) -> str | None:
        """The first of `cells` with this CUDA version."""
        return next((cell for cell in cells if f"-cuda{self.cuda}-" in cell), None)


def read(path: Path = FILE) -> NvidiaSet:
    """Raises ConfigError for a file of another shape."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text()), NvidiaSet)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path.name}: {error}", hint="python -m bench.measure_nvidia writes it.") from None
