"""Can the builder push where it must? Asked with an image of no bytes, before hours of building.

The image is pushed by its digest alone: it has no tag, and a registry's garbage collection takes it.
"""

from __future__ import annotations

import re
import tempfile
import threading
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
import yaml

from ortimg.core.mirrors import Reference
from ortimg.engine.buildx import run_build
from ortimg.errors import EnvironmentFault

_DOCKERFILE = 'FROM scratch\nLABEL ortimg.preflight="may be removed"\n'


class BuilderFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way in which a builder fails to reach a registry."""

    says: str  # regular expression over the builder's words
    cause: str
    cure: str


def require_push(builder: str, repository: str) -> None:
    """Raises EnvironmentFault, with the cure where it is known, unless `builder` can push to `repository`."""
    with tempfile.TemporaryDirectory(prefix="ortimg-preflight-") as name:
        folder = Path(name)
        (folder / "Dockerfile").write_text(_DOCKERFILE, encoding="utf-8")
        output = f"type=image,name={repository},push=true,push-by-digest=true,oci-mediatypes=true"
        outcome = run_build(
            ["build", f"--builder={builder}", f"--output={output}", str(folder)],
            on_event=lambda _event: None,
            log=folder / "log",
            cancel=threading.Event(),
        )
    if not outcome.ok:
        raise explain(str(outcome.failure or "interrupted"), builder, repository)


def explain(said: str, builder: str, repository: str) -> EnvironmentFault:
    """What the builder said about a registry, as a message with the next step."""
    registry = Reference.parse(repository).registry
    names = {"registry": registry, "builder": builder, "repository": repository}
    for row in read_builder_faults():
        if re.search(row.says, said):
            return EnvironmentFault(row.cause.format(**names), row.cure.format(**names))
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "no reason given")
    return EnvironmentFault(f"builder {builder} cannot push to {repository}: {last.strip()}")


@cache
def read_builder_faults() -> tuple[BuilderFault, ...]:
    """The rows of builder-faults.yaml."""
    text = (files("ortimg.data") / "builder-faults.yaml").read_bytes()
    return msgspec.convert(yaml.safe_load(text), tuple[BuilderFault, ...])
