"""Where a push goes, and what may go there: repositories, tiers, the word on licences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files

import msgspec
import yaml

from ortimg.core.mirrors import Reference
from ortimg.core.model import Cell, Tier
from ortimg.core.problems import quote
from ortimg.core.tags import repository_problem
from ortimg.errors import ConfigError

_ORDER = (Tier.STATIC, Tier.LOAD, Tier.RUN)
_RULES = "a prefix is a registry with a path or without: registry.example.com/team, 127.0.0.1:5000"


class PublicRegistry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A registry that anybody can read from, as a rule."""

    host: str
    name: str


def repositories(repository: str, prefixes: Sequence[str]) -> tuple[str, ...]:
    """Full names of the repositories to push to, each once. Raises ConfigError (exit 2).

    Without prefixes it is images.yaml's own, which must name its registry then: "docker.io" is never guessed.
    """
    if prefixes:
        found = [_below(prefix.rstrip("/"), repository) for prefix in prefixes]
        return tuple(dict.fromkeys(found))
    if Reference.parse(repository).registry != repository.partition("/")[0]:
        raise ConfigError(
            f"images.yaml: repository: {quote(repository)} names no registry to push to",
            hint="Write it whole, such as registry.example.com/team/"
            f"{repository.rpartition('/')[2]}, or say --registry-prefix.",
        )
    return (repository,)


def _below(prefix: str, repository: str) -> str:
    registry = Reference.parse(repository).registry
    path = repository.removeprefix(f"{registry}/")
    found = f"{prefix}/{path}"
    first = prefix.partition("/")[0]
    if "@" in prefix:  # what stands before it may be a password
        raise ConfigError(
            "--registry-prefix: a log-in cannot stand in the name of a registry",
            hint="`docker login` keeps it; the prefix is HOST[/PATH] alone.",
        )
    if "://" in prefix:
        raise ConfigError(f"--registry-prefix {quote(prefix)}: leave out the scheme", hint=f"{_RULES}.")
    if not ("." in first or ":" in first or first == "localhost"):
        raise ConfigError(f"--registry-prefix {quote(prefix)} names no registry", hint=f"{_RULES}.")
    if (fault := repository_problem(found)) is not None:
        raise ConfigError(f"--registry-prefix {quote(prefix)}: {fault}", hint=f"{_RULES}.")
    return found


def reaches(tier: str | None, wanted: Tier) -> bool:
    """Whether an image of `tier` may go where `wanted` is asked for."""
    return tier in list(Tier) and _ORDER.index(Tier(tier)) >= _ORDER.index(wanted)


def tier_fault(tier: str | None, wanted: Tier, record: str = "--record") -> str:
    """Why an image is refused, and what to do. `record`: the option that puts a verdict where it counts."""
    if tier is None:
        return "it was verified by nobody: it has no label ortimg.tier; build it with `ortimg build`"
    if wanted is Tier.RUN:
        return (
            f"its tier is {tier}: no record of a run on a GPU speaks of this digest. Run `ortimg verify IMAGE"
            f" --gpu {record}` where a GPU is, or say --tier {tier} if that is what you mean"
        )
    return f"its tier is {tier}, {wanted.value} was asked for"


def cudnn_notices(cells: Iterable[Cell], repositories: Sequence[str]) -> dict[str, str]:
    """Registry → what must be said once before cuDNN goes to where everybody can take it from."""
    if not any(cell.cuda_set.libraries and _has_cudnn(cell) for cell in cells):
        return {}
    public = {row.host: row.name for row in read_public_registries()}
    hosts = dict.fromkeys(Reference.parse(name).registry for name in repositories)
    return {
        host: (
            f"note: these images hold NVIDIA's cuDNN, and {public[host]} is public as a rule. cuDNN may be"
            " handed on only as its licence allows (in the image: /usr/share/licenses): publishing is your"
            " decision. This is said once."
        )
        for host in hosts
        if host in public
    }


def _has_cudnn(cell: Cell) -> bool:
    return any(library.startswith("libcudnn") for library in cell.cuda_set.libraries)


def read_public_registries() -> tuple[PublicRegistry, ...]:
    """The rows of public-registries.yaml."""
    text = (files("ortimg.data") / "public-registries.yaml").read_bytes()
    return msgspec.convert(yaml.safe_load(text), tuple[PublicRegistry, ...])
