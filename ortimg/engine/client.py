"""What the engine is asked besides building: inspect, list, remove, run, import, by the docker SDK.

The SDK is imported on first use, so that commands without an engine stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ortimg.core.problems import quote
from ortimg.engine.answers import require_success
from ortimg.engine.info import unanswered
from ortimg.errors import CheckFailed, ConfigError, EnvironmentFault

if TYPE_CHECKING:
    import tarfile

    from docker import DockerClient

T = TypeVar("T")

_ANSWER_LIMIT = 300  # seconds for one call; importing or removing a big image takes some
_CHUNK = 1 << 20  # bytes


@dataclass(frozen=True)
class Layer:
    """One layer of an image."""

    diff_id: str  # sha256 of the unpacked layer: the same however it is compressed
    size: int  # bytes, unpacked


@dataclass(frozen=True)
class Image:
    """An image that the engine holds."""

    id: str
    references: tuple[str, ...]
    labels: Mapping[str, str]
    layers: tuple[str, ...]  # diff ids, lowest first
    packed_size: int  # bytes as stored and pushed; the classic store counts unpacked bytes here
    env: tuple[str, ...] = ()
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()  # of manifests, "sha256:…"; the classic store learns one by push or pull
    created: str = ""  # as the image says: "2026-12-01T12:36:23.382265386Z"

    @property
    def digest(self) -> str | None:
        """Digest of its manifest. None: the engine's store does not know it, or knows several."""
        if self.id in self.digests:  # the containerd store: that is what an id is there
            return self.id
        return self.digests[0] if len(self.digests) == 1 else None


@dataclass(frozen=True)
class Sizes:
    """Bytes of an image's layers, unpacked."""

    total: int
    own: int  # in layers that none of the other images has


@dataclass(frozen=True)
class RunResult:
    """How a container ended."""

    exit_code: int | None  # None: it was ended at the time limit
    stdout: str
    stderr: str
    timed_out: bool = field(default=False)


class Engine:
    """The engine at DOCKER_HOST or the default socket. Its own faults become EnvironmentFault."""

    @cached_property
    def _docker(self) -> DockerClient:
        import docker

        return self._ask(lambda: docker.from_env(timeout=_ANSWER_LIMIT))

    def info(self) -> Mapping[str, Any]:
        """What `docker info` shows."""
        found: Mapping[str, Any] = self._ask(self._docker.info)
        return found

    def inspect(self, reference: str) -> Image | None:
        """The image called `reference`, or None where the engine has none. Raises ConfigError for no name."""
        from docker.errors import APIError, ImageNotFound

        try:
            return _image(self._ask(lambda: self._docker.api.inspect_image(reference)))
        except ImageNotFound:
            return None
        except APIError as error:
            if error.status_code != 400:
                raise
            raise ConfigError(
                f"{quote(reference)} is no image reference: {error.explanation}",
                hint="Name an image such as debian:12-slim.",
            ) from error

    def require(self, reference: str) -> Image:
        """The image called `reference`. Raises EnvironmentFault where the engine has none."""
        image = self.inspect(reference)
        if image is None:
            raise EnvironmentFault(
                f"the engine has no image {quote(reference)}",
                f"Run `docker pull {reference}`, or `ortimg build`.",
            )
        return image

    def images(self, *, label: str | None = None, reference: str | None = None) -> tuple[Image, ...]:
        """Images that carry `label` (`key` or `key=value`) and match `reference` (`name*`, `name:tag`)."""
        filters = {key: value for key, value in (("label", label), ("reference", reference)) if value}
        rows = self._ask(lambda: self._docker.api.images(filters=filters))
        found = (self.inspect(identity) for identity in dict.fromkeys(row["Id"] for row in rows))
        return tuple(image for image in found if image is not None)

    def tag(self, reference: str, target: str) -> None:
        """Gives the image `reference` the further name `target`, which it takes from another image."""
        name, _, tag = target.rpartition(":")
        self._ask(lambda: self._docker.api.tag(reference, name, tag))

    def remove(self, reference: str) -> bool:
        """Removes a name (and, with its last name, the image); False where it is absent or in use."""
        from docker.errors import APIError, ImageNotFound

        try:
            self._ask(lambda: self._docker.api.remove_image(reference, force=False))
        except ImageNotFound:
            return False
        except APIError as error:
            if error.status_code == 409:
                return False
            raise
        return True

    def images_in_use(self) -> dict[str, tuple[str, ...]]:
        """Id of each image that containers stand on, running or not, and what they are called."""
        users: dict[str, tuple[str, ...]] = {}
        for row in self._ask(lambda: self._docker.api.containers(all=True)):
            name = next(iter(row.get("Names") or ()), row["Id"][:12]).lstrip("/")
            users[row["ImageID"]] = (*users.get(row["ImageID"], ()), name)
        return users

    def layers(self, reference: str) -> tuple[Layer, ...]:
        """The layers of `reference` with their sizes, lowest first. Raises CheckFailed where it is absent."""
        image = self.inspect(reference)
        if image is None:
            raise CheckFailed(f"the engine has no image {reference}")
        history = self._ask(lambda: self._docker.api.history(reference))
        return pair_layers(image.layers, [(row["CreatedBy"], row["Size"]) for row in reversed(history)])

    def sizes(self, references: Sequence[str]) -> dict[str, Sizes]:
        """Total and own bytes of each image that is there, among those given."""
        there = [reference for reference in references if self.inspect(reference) is not None]
        return count_sizes({reference: self.layers(reference) for reference in there})

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        limit: float,
        entrypoint: str | None = None,
        **options: Any,
    ) -> RunResult:
        """Runs `command` without network for `limit` seconds at most; the container never stays.

        `options` are docker-py's: user, read_only, environment, volumes, working_dir, tmpfs, network_mode, …
        """
        from requests.exceptions import ConnectionError, ReadTimeout

        settings: dict[str, Any] = {
            "network_mode": "none",
            "detach": True,
            "entrypoint": entrypoint,
            **options,
        }
        container = self._ask(lambda: self._docker.containers.create(image, list(command), **settings))
        exit_code: int | None = None
        try:
            self._ask(container.start)
            try:
                # The limit is here, since exec and logs of the SDK have none.
                exit_code = int(container.wait(timeout=limit)["StatusCode"])
            except (ReadTimeout, ConnectionError):  # docker-py gives either one when time is up
                container.kill()
            out = container.logs(stdout=True, stderr=False).decode("utf-8", "replace")
            err = container.logs(stdout=False, stderr=True).decode("utf-8", "replace")
        finally:
            self._ask(lambda: container.remove(force=True, v=True))
        return RunResult(exit_code, out, err, exit_code is None)

    def file_hashes(self, reference: str, paths: Sequence[str]) -> dict[str, str]:
        """sha256 of each regular file of an image that is there, among those given; nothing is run."""
        from docker.errors import NotFound

        from ortimg.engine.tar_stream import hash_in_tar

        container = self._ask(
            lambda: self._docker.containers.create(reference, ["none"], network_mode="none")
        )
        found = {}
        try:
            for path in paths:
                try:
                    chunks, _ = container.get_archive(path, chunk_size=_CHUNK)
                except NotFound:
                    continue
                if (digest := hash_in_tar(chunks)) is not None:
                    found[path] = digest
        finally:
            self._ask(lambda: container.remove(force=True, v=True))
        return found

    @contextmanager
    def folders(self, reference: str) -> Iterator[Callable[[str], Iterator[bytes] | None]]:
        """A function from a path of an image to a tar of what is there, in pieces; None where nothing is.

        Nothing is run. Raises CheckFailed where the engine has no such image.
        """
        from docker.errors import ImageNotFound, NotFound

        try:
            container = self._ask(
                lambda: self._docker.containers.create(reference, ["none"], network_mode="none")
            )
        except ImageNotFound:
            what = f"the engine has no image {quote(reference)}"
            raise CheckFailed(what, "build or pull it first") from None

        def read(path: str) -> Iterator[bytes] | None:
            try:
                chunks: Iterator[bytes] = iter(
                    self._ask(lambda: container.get_archive(path, chunk_size=_CHUNK))[0]
                )
                return chunks
            except NotFound:
                return None

        try:
            yield read
        finally:
            self._ask(lambda: container.remove(force=True, v=True))

    @contextmanager
    def exported(self, reference: str) -> Iterator[tarfile.TarFile]:
        """Every file of an image as a tar, to be read once from front to back; nothing is run."""
        from ortimg.engine.tar_stream import open_tar

        # The command is never run; an image without one of its own is refused otherwise.
        container = self._ask(
            lambda: self._docker.containers.create(reference, ["none"], network_mode="none")
        )
        try:
            with open_tar(self._ask(lambda: container.export(chunk_size=_CHUNK))) as tar:
                yield tar
        finally:
            self._ask(lambda: container.remove(force=True, v=True))

    @contextmanager
    def saved(self, references: Sequence[str]) -> Iterator[Iterator[bytes]]:
        """`docker save`: images as one OCI layout in a tar, in pieces; what they share is in it once.

        Raises EnvironmentFault where the engine breaks off, CheckFailed where it has no such image.
        """
        from docker.errors import APIError
        from requests.exceptions import RequestException

        # The SDK's own get_image() takes one name.
        api = self._docker.api
        answer = self._ask(
            lambda: api._get(api._url("/images/get"), params={"names": [*references]}, stream=True)
        )

        def chunks() -> Iterator[bytes]:
            try:
                yield from answer.iter_content(_CHUNK)
            except RequestException as error:
                raise EnvironmentFault(
                    "the engine broke off while it handed out images", "see its log, then run the same again"
                ) from error

        with answer:
            try:
                api._raise_for_status(answer)
            except APIError as error:
                raise CheckFailed(f"the engine does not hand out an image: {error.explanation}") from error
            yield chunks()

    def import_root(self, tar: Path, reference: str, changes: Sequence[str] = ()) -> Image:
        """Makes a one-layer image of a root file system's tar file, which is streamed.

        `changes` are Dockerfile lines: `CMD ["bash"]`, `LABEL a=b`, …
        """
        name, _, tag = reference.rpartition(":")
        with tar.open("rb") as stream:
            # An iterator, not the file: for a file requests sends plain bytes under docker-py's own header
            # "Transfer-Encoding: chunked", which the engine refuses ("chunked line ends with bare LF").
            chunks = iter(lambda: stream.read(_CHUNK), b"")
            answer = self._ask(
                lambda: self._docker.api.import_image_from_stream(
                    chunks, repository=name, tag=tag, changes=list(changes)
                )
            )
        require_success(str(answer or ""), f"import {tar.name}")
        image = self.inspect(reference)
        if image is None:
            raise EnvironmentFault(f"the engine took {tar.name} and has no image {reference}", "see its log")
        return image

    def build_cache(self) -> tuple[Mapping[str, Any], ...]:
        """The rows of the builder's cache, as `/system/df` gives them."""
        # The SDK's own df() has no `type`, and the engine then measures every image and volume as well.
        api = self._docker.api
        answer = self._ask(
            lambda: api._result(api._get(api._url("/system/df"), params={"type": "build-cache"}), True)
        )
        return tuple(answer.get("BuildCache") or ())

    def prune_record(self, identity: str) -> tuple[int, int]:
        """Removes a record of the builder's cache unless another needs it; gives records and bytes freed."""
        answer = self._ask(lambda: self._docker.api.prune_builds(filters={"id": [identity]}, all=True))
        return len(answer.get("CachesDeleted") or ()), int(answer.get("SpaceReclaimed") or 0)

    def _ask(self, question: Callable[[], T]) -> T:
        from docker.errors import APIError, DockerException
        from requests.exceptions import RequestException

        try:
            return question()
        except APIError:
            raise
        except (DockerException, RequestException) as error:
            endpoint = os.environ.get("DOCKER_HOST")
            raise unanswered("the container engine does not answer", str(error), endpoint) from error


def pair_layers(diff_ids: Sequence[str], history: Sequence[tuple[str, int]]) -> tuple[Layer, ...]:
    """Gives each layer its size from the history, whose entries are steps, lowest first.

    The API does not say which steps made a layer. A step with bytes did; of those without, RUN, COPY, ADD and
    WORKDIR did (an empty layer), so the two lists are matched from the lowest one.
    """
    with_layer = [size for step, size in history if size or _makes_layer(step)]
    if len(with_layer) != len(diff_ids):
        # Some empty layers cannot be told: those with bytes keep their order, which is what sizes need.
        with_layer = [size for size in with_layer if size]
    if len(with_layer) > len(diff_ids):
        raise CheckFailed(
            f"an image of {len(diff_ids)} layers has {len(with_layer)} steps with bytes in its history"
        )
    with_layer += [0] * (len(diff_ids) - len(with_layer))
    return tuple(Layer(diff_id, size) for diff_id, size in zip(diff_ids, with_layer, strict=True))


def count_sizes(images: Mapping[str, Sequence[Layer]]) -> dict[str, Sizes]:
    """Total and own bytes of each image: a layer that two images hold is nobody's own."""
    holders: dict[str, set[str]] = {}
    for name, layers in images.items():
        for layer in layers:
            holders.setdefault(layer.diff_id, set()).add(name)
    return {
        name: Sizes(
            total=sum(layer.size for layer in layers),
            own=sum(layer.size for layer in layers if holders[layer.diff_id] == {name}),
        )
        for name, layers in images.items()
    }


def _makes_layer(step: str) -> bool:
    # Classic steps read `/bin/sh -c #(nop) COPY …`, BuildKit's `COPY … # buildkit`.
    words = step.replace("/bin/sh -c #(nop)", "").split(maxsplit=1)
    if step.startswith("/bin/sh -c") and "#(nop)" not in step:
        return True
    return bool(words) and words[0] in ("RUN", "COPY", "ADD", "WORKDIR")


def _image(row: Mapping[str, Any]) -> Image:
    config = row.get("Config") or {}
    return Image(
        id=row["Id"],
        references=tuple(row.get("RepoTags") or ()),
        labels=config.get("Labels") or {},
        layers=tuple((row.get("RootFS") or {}).get("Layers") or ()),
        packed_size=int(row.get("Size") or 0),
        env=tuple(config.get("Env") or ()),
        user=config.get("User") or "",
        entrypoint=tuple(config.get("Entrypoint") or ()),
        command=tuple(config.get("Cmd") or ()),
        digests=tuple(dict.fromkeys(name.partition("@")[2] for name in row.get("RepoDigests") or ())),
        created=row.get("Created") or "",
    )
