"""Where a build takes place: the builder, the store of its heavy images, and where the images go.

Without a wish that is the engine's own builder, which holds all of it. For any other builder it must be said
where images go: they would stay in a store where nothing can run them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from ortimg.core.mirrors import Reference
from ortimg.core.model import Tier
from ortimg.core.problems import quote
from ortimg.core.tags import repository_problem
from ortimg.engine.builders import BuilderInfo, ask_builder, judge_builder
from ortimg.engine.check import EngineInfo, check_client, check_engine
from ortimg.engine.client import Engine
from ortimg.errors import ConfigError, EnvironmentFault
from ortimg.factory.delivery import Delivery, ToEngine, ToFolder, ToNowhere, ToRegistry
from ortimg.factory.disk import builder_name
from ortimg.factory.preflight import require_push
from ortimg.factory.stores import (
    HANDED,
    EngineStore,
    LayoutStore,
    RegistryStore,
    Store,
    layout_digest,
    layouts_of,
)
from ortimg.inputs.cache import Cache
from ortimg.publishing.targets import reaches, repositories
from ortimg.registry.trust import LOOPBACK


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says of the place."""

    builder: str | None = None
    units: str | None = None  # registry and path below which units are kept
    load: bool = False
    output: Path | None = None
    push: bool = False
    verify_only: bool = False
    tier: Tier | None = None  # the least that an image must be verified to before it is pushed
    provenance: bool = False  # attach one to the images
    registry_prefix: str | None = None  # pushes go below it instead of to images.yaml's own registry

    def repository(self, own: str) -> str:
        """Where images are called by: images.yaml's own name, or with --push where they are pushed to."""
        if not self.push:
            return own
        return repositories(own, [self.registry_prefix] if self.registry_prefix else [])[0]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A place that is known to work."""

    builder: str
    store: Store
    delivery: Delivery
    own: Engine | None  # the engine whose own builder this is
    info: EngineInfo | None  # of that engine
    has_image: Callable[[str], bool]  # whether a base that no registry has is here
    handed: Callable[[str], str | None]  # image → context that replaces it; None: the builder has its own way


def open_site(wish: Wish, repository: str, cache: Cache) -> Site:
    """Check what `wish` asks for, before anything is built. `repository`: where images are called by.

    Raises ConfigError for options that contradict each other, EnvironmentFault for what does not work here.
    """
    info: BuilderInfo | None = None
    if wish.builder is not None:
        check_client()
        info = judge_builder(ask_builder(wish.builder))
    if info is None or info.own:
        _refuse_foreign_options(wish)
        engine = Engine()
        return Site(
            builder=wish.builder or builder_name(),
            store=EngineStore(engine),
            delivery=ToEngine(engine),
            own=engine,
            info=check_engine(),
            has_image=lambda name: engine.inspect(name) is not None,
            handed=lambda _image: None,
        )
    if wish.provenance and not (wish.push or wish.output is not None):
        raise ConfigError(
            "--provenance goes with --push or --output: an engine drops it from what is loaded",
            hint="Leave it out, or choose another place for the images.",
        )
    if sum((wish.load, wish.push, wish.verify_only, wish.output is not None)) != 1:
        raise ConfigError(
            f"builder {info.name} ({info.driver}) keeps images to itself: say where they go",
            hint="Add one of --load (into the engine), --output DIR (OCI layouts), --push (to the registry),"
            " --verify-only.",
        )
    if wish.push and (wish.tier is None or not reaches(Tier.LOAD, wish.tier)):
        raise ConfigError(
            "--push would push images that no GPU has run: a build verifies up to tier load",
            hint="Say --tier load if that is what you mean.",
        )
    units = _prefix(wish.units) if wish.units else None
    if units:
        require_push(info.name, f"{units}/preflight")
    if wish.push:
        require_push(info.name, repository)
    return _foreign(info, wish, units, cache)


def _foreign(info: BuilderInfo, wish: Wish, units: str | None, cache: Cache) -> Site:
    engine = Engine()
    if wish.load:
        check_engine()
    layouts = LayoutStore(layouts_of(cache))
    local = LocalImages(engine if wish.load or _engine_answers() else None, layouts.folder / HANDED, info)
    delivery: Delivery
    if wish.output is not None:
        delivery = ToFolder(wish.output)
    elif wish.verify_only:
        delivery = ToNowhere()
    else:
        delivery = ToEngine(engine, load=True) if wish.load else ToRegistry()
    return Site(
        builder=info.name,
        store=RegistryStore(units) if units else layouts,
        delivery=delivery,
        own=None,
        info=None,
        has_image=local.has,
        handed=local.source,
    )


class LocalImages:
    """Images of this machine's engine for a builder that does not see them: sent as OCI layouts."""

    def __init__(self, engine: Engine | None, folder: Path, builder: BuilderInfo) -> None:
        self._engine = engine
        self._folder = folder
        self._builder = builder

    def has(self, name: str) -> bool:
        return self._engine is not None and self._engine.inspect(name) is not None

    def source(self, name: str) -> str | None:
        """The image as a context, if the engine has it; None: the builder pulls it."""
        image = self._engine.inspect(name) if self._engine is not None else None
        if image is None:
            _refuse_loopback(name, self._builder)
            return None
        target = self._folder / image.id.removeprefix("sha256:")
        if not (target / "index.json").is_file():
            self._save(name, target)
        return f"oci-layout://{target}@{layout_digest(target)}"

    def _save(self, name: str, target: Path) -> None:
        """Since Engine 25, `docker save` writes an OCI layout: https://docs.docker.com/reference/cli/docker/image/save/"""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=target.parent) as work:
            tar, folder = Path(work) / "image.tar", Path(work) / "layout"
            folder.mkdir()
            for command in (
                ["docker", "image", "save", "--output", str(tar), name],
                ["tar", "-xf", str(tar), "-C", str(folder), "--no-same-owner"],
            ):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                    raise EnvironmentFault(f"{name} cannot be handed to the builder: {said}")
            if not target.exists():
                folder.rename(target)


def _refuse_loopback(name: str, builder: BuilderInfo) -> None:
    """A registry on localhost is another one wherever the builder runs, unless it shares this network."""
    registry = Reference.parse(name).registry
    if builder.driver != "remote" and LOOPBACK.fullmatch(registry) and not _shares_network(builder.name):
        raise EnvironmentFault(
            f"{name}: builder {builder.name} ({builder.driver}) has a network of its own;"
            f" {registry} there is not the registry of this machine",
            f"`docker pull {name}`, so that it is handed over; or use an address that both of them reach",
        )


def _shares_network(builder: str) -> bool:
    """Whether a docker-container builder was made with `--driver-opt network=host`."""
    words = ["inspect", "--format", "{{.HostConfig.NetworkMode}}", f"buildx_buildkit_{builder}0"]
    try:
        done = subprocess.run(["docker", "container", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:  # its container is asked through docker's client, and there is none
        return False
    return done.stdout.strip() == "host"


def _prefix(units: str) -> str:
    prefix = units.rstrip("/")
    fault = repository_problem(f"{prefix}/x")
    host = prefix.partition("/")[0]
    if fault or not ("." in host or ":" in host or host == "localhost"):
        raise ConfigError(
            f"--units {quote(units)} names no registry{f': {fault}' if fault else ''}",
            hint="Write a registry and a path, such as registry.example.com/team/ortimg-units.",
        )
    return prefix


def _refuse_foreign_options(wish: Wish) -> None:
    if wish.push:
        raise ConfigError(
            "--push is for a builder of its own; the engine's builder keeps its images in the engine",
            hint="Run `ortimg push` after the build.",
        )
    for option, given in (
        ("--units", wish.units),
        ("--output", wish.output),
        ("--load", wish.load),
        ("--verify-only", wish.verify_only),
        ("--provenance", wish.provenance),
    ):
        if given:
            raise ConfigError(
                f"{option} is for a builder of its own; the engine's builder keeps its images in the engine",
                hint="Name one with --builder (`docker buildx ls` shows them), or leave the option out.",
            )


def _engine_answers() -> bool:
    from ortimg.engine.info import ask_engine

    return ask_engine().server is not None
