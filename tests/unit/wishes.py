"""What the tests of planning share: the real catalogue, and images.yaml written in one line."""

from __future__ import annotations

import json
from typing import Any

from ortimg.core.catalogue import Index
from ortimg.core.cells import Plan, plan
from ortimg.core.config import parse_config
from ortimg.core.rules import Rules
from ortimg.data import read_catalogue

CATALOGUE = read_catalogue()
INDEX = Index(CATALOGUE)
RULES = Rules(INDEX)


def images(**parts: Any) -> str:
    """Text of an images.yaml (JSON is YAML) with the repository `r` and `parts`."""
    return json.dumps({"repository": "r", **parts}, ensure_ascii=False)


def matrix(ort: list[str], cuda: list[str], cudnn: list[str], base: list[str], **more: Any) -> dict[str, Any]:
    return {"ort": ort, "cuda": cuda, "cudnn": cudnn, "base": base, **more}


def cell(ort: str, cuda: str, cudnn: str = "8", base: str = "debian12", **more: str) -> dict[str, str]:
    return {"ort": ort, "cuda": cuda, "cudnn": cudnn, "base": base, **more}


def planned(text: str) -> Plan:
    return plan(parse_config(text, "images.yaml"), CATALOGUE)
