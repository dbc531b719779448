"""A folder with an images.yaml: the only part of planning that reads files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click
import msgspec

from ortimg.core.cautions import cautions
from ortimg.core.cells import Plan, try_plan
from ortimg.core.config import Config, read_config
from ortimg.core.model import Catalogue, Cell
from ortimg.core.problems import Problem, config_error
from ortimg.data import read_catalogue, read_host_facts
from ortimg.errors import ConfigError
from ortimg.reading import read_text

if TYPE_CHECKING:
    from ortimg.core.gpu_names import Gpu

CONFIG_NAME = "images.yaml"
OWN_CATALOGUE = "catalogue"  # folder of a user's own rows
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project, planned."""

    root: Path
    plan: Plan
    catalogue: Catalogue
    gpus: tuple[Gpu, ...] = ()  # that images.yaml names


def load_project(folder: Path) -> Project:
    """Read and plan the project in `folder`. Raises ConfigError with every fault of its images.yaml."""
    try:
        root = folder.resolve()
    except FileNotFoundError:  # asks for the current folder
        raise ConfigError("the current folder is not there any more", hint="Go to another one.") from None
    text = _read(root)
    catalogue = own_catalogue(root)
    config, problems = read_config(text, CONFIG_NAME)
    if config is None:
        raise config_error(CONFIG_NAME, problems)
    plan, more = try_plan(config, catalogue)
    told = {problem.path for problem in problems}  # one fault a value is enough
    problems += [problem for problem in more if problem.path not in told]
    gpus, more = _gpus(config)
    problems += more
    if problems:
        raise config_error(CONFIG_NAME, problems)
    return Project(root=root, plan=plan, catalogue=catalogue, gpus=gpus)


def project_warnings(project: Project, cells: Sequence[Cell]) -> dict[str, tuple[str, ...]]:
    """What is worth a warning about cells, each text with the identifiers that it is about."""
    found = cautions(cells)
    if project.gpus:
        from ortimg.core.drivers import Drivers  # most projects name no GPU
        from ortimg.core.gpu_wishes import gpu_warnings

        found |= gpu_warnings(cells, project.gpus, Drivers(read_host_facts().drivers))
    return found


def _gpus(config: Config) -> tuple[tuple[Gpu, ...], list[Problem]]:
    if not config.gpus:
        return (), []
    from ortimg.core.gpu_names import GpuNames
    from ortimg.core.gpu_wishes import read_gpus

    return read_gpus(config.gpus, GpuNames(read_host_facts()))


def own_catalogue(root: Path) -> Catalogue:
    """ortimg's catalogue with the rows of the folder `catalogue/`. Raises ConfigError with every fault."""
    catalogue, folder = read_catalogue(), root / OWN_CATALOGUE
    files = sorted(path for path in folder.glob("*") if path.suffix in (".yaml", ".yml"))
    if not files:
        return catalogue
    from ortimg.core.own_rows import with_own_rows  # most projects have none

    texts = {path.name: read_text(path, f"{OWN_CATALOGUE}/{path.name}") for path in files}
    return with_own_rows(catalogue, texts)


def _read(root: Path) -> str:
    path = root / CONFIG_NAME
    if root.is_dir() and (path.exists() or path.is_symlink()):
        return read_text(path, CONFIG_NAME)
    hint = "Run `ortimg init` there to start one, or name another folder with --project."
    raise ConfigError(f"there is no {CONFIG_NAME} in {root}", hint=hint)


def pass_project(function: Callable[Concatenate[Project, _P], _R]) -> Callable[_P, _R]:
    """Decorator of a click command: its first argument is the planned project of `--project`."""

    @click.pass_context
    @wraps(function)
    def wrapper(context: click.Context, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return function(load_project(context.find_object(Path) or Path()), *args, **kwargs)

    return wrapper
