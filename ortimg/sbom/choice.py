"""Which images a command line means."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ortimg.core.model import Cell
from ortimg.core.problems import quote
from ortimg.core.selectors import select
from ortimg.engine.client import Engine, Image
from ortimg.errors import ConfigError
from ortimg.project import Project


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the engine, and the cell that it was built from."""

    cell: Cell
    reference: str
    image: Image


def choose(project: Project, names: Sequence[str], engine: Engine) -> tuple[list[Chosen], list[str]]:
    """The images of selectors and references (`name:tag`), and identifiers that are not built.

    Raises ConfigError for an image of another project, EnvironmentFault for one that the engine has not.
    """
    references = [name for name in names if ":" in name or "/" in name]
    selectors = [name for name in names if name not in references]
    chosen = [_of_reference(project, name, engine) for name in references]
    absent = []
    if selectors or not references:
        for cell in select(project.plan.cells, selectors, (), project.plan.excluded):
            reference = f"{project.plan.repository}:{cell.identifier}"
            if (image := engine.inspect(reference)) is None:
                absent.append(cell.identifier)
            else:
                chosen.append(Chosen(cell=cell, reference=reference, image=image))
    return chosen, absent


def _of_reference(project: Project, reference: str, engine: Engine) -> Chosen:
    image = engine.require(reference)
    identifier = image.labels.get("ortimg.identifier")
    cell = next((cell for cell in project.plan.cells if cell.identifier == identifier), None)
    if cell is None:
        told = f"it is {quote(identifier)}" if identifier else "it has no label ortimg.identifier"
        raise ConfigError(
            f"{quote(reference)} is no image of this images.yaml: {told}",
            hint="Name one of `ortimg list`, or use another --project.",
        )
    return Chosen(cell=cell, reference=reference, image=image)
