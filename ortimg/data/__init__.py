"""Facts as data files, and the only code that reads them from disk."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ortimg.core.catalogue import parse_catalogue
from ortimg.core.model import Catalogue


def read_catalogue() -> Catalogue:
    """The catalogue that comes with ortimg."""
    folder = files(__name__)
    names = ("ort.yaml", "cuda.yaml", "bases.yaml")
    ort, cuda, bases = ((folder / name).read_bytes() for name in names)
    return parse_catalogue(ort, cuda, bases)


@cache
def images_schema() -> dict[str, Any]:
    """JSON Schema of images.yaml."""
    schema: dict[str, Any] = json.loads((files(__name__) / "images.schema.json").read_text("utf-8"))
    return schema
