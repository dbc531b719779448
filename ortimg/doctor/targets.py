"""Snapshots of what the doctor can look at: this system, a process, an unpacked root, an image."""

from __future__ import annotations

import dataclasses
import os
import sys
import tarfile
from pathlib import Path

from ortimg.core.doctor.facts import Machine, Place, Snapshot
from ortimg.core.problems import quote
from ortimg.doctor.files import LocalFiles
from ortimg.doctor.gather import gather
from ortimg.doctor.image_files import ImageFiles
from ortimg.doctor.machine import place_of_this_process
from ortimg.doctor.peek import get_peek, look_into
from ortimg.doctor.tar_files import read_tar
from ortimg.engine.client import Engine
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault
from ortimg.inputs.cache import Cache


def this_system(machine: Machine) -> Snapshot:
    """The machine, or the container in which this runs, with this process's environment."""
    places = {path for path in sys.path if path.endswith("-packages")}
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := os.environ.get(variable):
            places.add(f"{prefix}/lib/python3*/site-packages")
    try:
        name, _, glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        name = glibc = ""
    return gather(
        LocalFiles(Path("/")),
        dict(os.environ),
        place_of_this_process(),
        machine,
        glibc=glibc if name == "glibc" else None,
        sites=sorted(places),
    )


def a_process(pid: int, machine: Machine) -> Snapshot:
    """A running process, with its own root and environment. Raises ConfigError where it cannot be seen."""
    folder = Path(f"/proc/{pid}")
    try:
        maps = (folder / "maps").read_text(errors="replace")
        raw = (folder / "environ").read_text(errors="replace")
        inside = (folder / "root").readlink() != Path("/") or _other_root(folder)
    except OSError as error:
        raise ConfigError(
            f"process {pid} cannot be seen: {error.strerror}", hint="See `ps`; root sees every process."
        ) from None
    environment = dict(pair.split("=", 1) for pair in raw.split("\0") if "=" in pair)
    place = Place.CONTAINER if inside else place_of_this_process()
    snapshot = gather(LocalFiles(folder / "root"), environment, place, machine)
    return dataclasses.replace(snapshot, maps=mapped_files(maps), process=f"process {pid}")


def _other_root(folder: Path) -> bool:
    """Whether the process lives in another mount namespace, so that its `/` is another one."""
    return (folder / "ns" / "mnt").readlink() != Path("/proc/self/ns/mnt").readlink()


def mapped_files(maps: str) -> tuple[str, ...]:
    """The files in a /proc/PID/maps, each once."""
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = (row[5].removesuffix(" (deleted)").strip() for row in fields if len(row) == 6)
    return tuple(dict.fromkeys(path for path in paths if path.startswith("/")))


def a_root(folder: Path, machine: Machine) -> Snapshot:
    """An unpacked root file system."""
    files = LocalFiles(folder)
    names = files.names("/")
    if not names:
        raise ConfigError(f"{folder} is empty or cannot be read", hint="Name a whole unpacked root.")
    if not {"etc", "lib", "lib64", "opt", "usr"} & {*names}:
        raise ConfigError(
            f"{folder} is no root file system: it has neither usr nor lib nor opt nor etc",
            hint="Name a whole unpacked root.",
        )
    return gather(files, None, Place.ROOT, machine)


def an_image(reference: str, machine: Machine) -> Snapshot:
    """An image of the engine: its environment, and its files. Nothing of it is run.

    Raises EnvironmentFault where the engine has no such image, or does not answer; ConfigError for no name.
    """
    engine = Engine()
    image = engine.inspect(reference)
    if image is None:
        raise EnvironmentFault(
            f"there is no folder and the engine has no image {quote(reference)}",
            f"run `docker pull {reference}`, or name a folder with an unpacked root",
        )
    environment = dict(pair.split("=", 1) for pair in image.env if "=" in pair)
    files = _look(engine, image.id)
    return gather(files, environment, Place.IMAGE, machine, sites=files.sites, everywhere=files.libraries)


def _look(engine: Engine, identity: str) -> ImageFiles:
    """By a program inside, else (no zig, no glibc, another processor) by reading the whole image."""
    from docker.errors import APIError, NotFound

    try:
        try:
            return look_into(engine, identity, get_peek(Cache.default().root))
        except (CheckFailed, EnvironmentFault, APIError):
            return _exported(identity)
    except NotFound as error:
        raise EnvironmentFault(
            f"the image went away while it was looked at: {error.explanation}", "run it again"
        ) from None


def _exported(identity: str) -> ImageFiles:
    import docker

    api = docker.from_env(timeout=300).api
    # Never started: the command need not be there, and an image of `FROM scratch` has none of its own.
    container = api.create_container(identity, command=["/never-started"])["Id"]
    try:
        return read_tar(api.export(container, chunk_size=1 << 20))
    except tarfile.TarError as error:
        raise EnvironmentFault(
            f"the engine did not hand out the image's files whole: {error}", "see the engine's log"
        ) from None
    finally:
        api.remove_container(container, force=True, v=True)
