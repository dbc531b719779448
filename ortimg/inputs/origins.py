"""The origins of each kind of input, in order, and the reason for each that was passed over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from ortimg.core.lock import Lock, OrtLock
from ortimg.core.mirrors import NO_MIRRORS, TOOLS_IMAGE, Mirrors, Reference
from ortimg.core.model import Base, CudaSet, Flavour, Origin, OrtRelease, Wheel
from ortimg.inputs import bootstrap, headers, maven, release, repack, wheels
from ortimg.inputs.cache import Cache, Entry, StoppedError
from ortimg.inputs.download import Downloader, HashMismatch, Progress, Unreachable
from ortimg.inputs.probe import Upstream, environment_registry
from ortimg.inputs.result import Fetched, Kind, Missing, OnUpdate, Result, Update
from ortimg.inputs.wheel_sets import WheelSets, file_of

_HAS_HEADERS = "the release archive (upstream) has them"


class Origins:
    """Brings one input at a time; several threads may call it at once.

    Methods return `Fetched` or `Missing`; they raise `OrtimgError` where trying another origin would be wrong
    (a file that is not the right one) or useless (the disk is full).
    """

    def __init__(
        self,
        cache: Cache,
        lock: Lock,
        upstream: Future[Upstream],
        downloader: Downloader,
        has_image: Callable[[str], bool],
        on_update: OnUpdate,
        mirrors: Mirrors = NO_MIRRORS,
    ) -> None:
        self.cache = cache
        self.stop = threading.Event()
        self._lock = lock
        self._upstream = upstream
        self.downloader = downloader
        self._has_image = has_image
        self._on_update = on_update
        self._mirrors = mirrors
        self._sets = WheelSets(cache, self.stop, self._tell)
        # one of each kind: they overlap with downloads, and each takes a core and some memory
        self._unpackers = threading.Semaphore(1)
        self._bootstraps = threading.Semaphore(1)
        self._mvn = threading.Semaphore(1)

    @property
    def upstream(self) -> Upstream:
        """Which upstream hosts answer (waits for the probe, 3 s at most)."""
        return self._upstream.result()

    def ort(self, row: OrtRelease) -> Result:
        pin = self._pin(row)
        with self.cache.locked(f"ort/{row.key}", self.stop):
            if (entry := release.cached_release(self.cache, row, pin)) is not None:
                return self._ort_result(row, entry, cached=True)
            reasons: list[str] = []
            hint: str | None = None
            if (refusal := self.upstream.releases) is not None:
                reasons.append(f"upstream: {refusal}")
            else:
                try:
                    self._tell(Kind.ORT, row.key, "upstream: downloading")
                    progress = self._progress(Kind.ORT, row.key, "upstream")
                    entry = release.fetch_release(
                        self.cache, row, pin, self.downloader, progress, self._mirrors.releases
                    )
                    return self._ort_result(row, entry)
                except Unreachable as error:
                    reasons.append(f"upstream: {error.message}")
                    hint = error.hint
            for origin, fetch in ((Origin.MAVEN, self._maven), (Origin.WHEEL, self._wheel)):
                try:
                    found = fetch(row, reasons)
                except Unreachable as error:
                    reasons.append(f"{origin.value}: {error.message}")
                    hint = error.hint
                    continue
                if found is not None:
                    return self._ort_result(row, found[0], cached=found[1], reasons=tuple(reasons))
        if row.maven is None and row.wheel is None:
            reasons.append(f"no fallback holds ONNX Runtime {row.version} for CUDA {row.cuda_major}")
            hint = "set ORTIMG_RELEASE_MIRROR to a mirror of the release host, or build on another network"
        return Missing(kind=Kind.ORT, key=row.key, reasons=tuple(reasons), hint=hint)

    def _maven(self, row: OrtRelease, reasons: list[str]) -> tuple[Entry, bool] | None:
        if row.maven is None:
            return None
        name = maven.name(row)
        if (entry := self.cache.get(name)) is not None and _from_pinned(row, entry):
            return entry, True
        self._tell(Kind.ORT, row.key, f"maven ({reasons[-1]})")
        entry = maven.fetch_maven(
            self.cache,
            row,
            row.maven,
            stop=self.stop,
            say=lambda text: self._tell(Kind.ORT, row.key, text),
            progress=self._progress(Kind.ORT, row.key, "maven"),
            turns=maven.Turns(mvn=self._mvn, unpack=self._unpackers),
        )
        return entry, False

    def _wheel(self, row: OrtRelease, reasons: list[str]) -> tuple[Entry, bool] | None:
        if row.wheel is None:
            return None
        name, wheel = repacked_wheel_name(row), row.wheel
        if (entry := self.cache.get(name)) is not None and _from_pinned(row, entry):
            return entry, True
        self._tell(Kind.ORT, row.key, f"wheel ({reasons[-1]})")
        with self._sets.pips:
            package = wheels.fetch_wheel(
                self.cache,
                wheel.requirement,
                wheel.filename,
                wheel.sha256,
                0,
                stop=self.stop,
                progress=self._progress(Kind.ORT, row.key, "wheel"),
            )
        with self._unpackers:
            entry = repack.repack(
                self.cache, name, self.cache.path(package), package.sha256, row, Origin.WHEEL
            )
        self.cache.drop(package.name)
        return entry, False

    def cuda(self, row: CudaSet) -> Result:
        return self._sets.fetch(Kind.CUDA, row.key, row.wheels)

    def python(self, key: str, rows: Sequence[Wheel]) -> Result:
        return self._sets.fetch(Kind.PYTHON, key, rows)

    def headers(self, row: OrtRelease, archive: Result) -> Result:
        """`archive`: where the libraries came from. The release archive has the headers, a fallback not."""
        if isinstance(archive, Fetched) and archive.origin is Origin.UPSTREAM:
            return archive
        reasons = [f"upstream: {self.upstream.releases or 'the release archive could not be had'}"]
        if isinstance(archive, Fetched):
            reasons.append(f"{archive.origin.value}: that package holds no headers")
        hint = "set ORTIMG_RELEASE_MIRROR to a mirror of the release host"
        if row.headers is None:
            reasons.append(f"debian: no package with headers of {row.version} is known")
            reasons.append(_HAS_HEADERS)
            return Missing(kind=Kind.HEADERS, key=row.key, reasons=tuple(reasons), hint=hint)
        name, source = headers.name(row), row.headers
        with self.cache.locked(name, self.stop):
            entry = self.cache.get(name)
            cached = entry is not None
            if entry is None:
                self._tell(Kind.HEADERS, row.key, f"debian ({reasons[0]})")
                say = partial(self._tell, Kind.HEADERS, row.key)
                try:
                    entry = headers.fetch_debian_headers(self.cache, row, source, self.stop, say)
                except Unreachable as error:
                    reasons += [f"debian: {error.message}", _HAS_HEADERS]
                    return Missing(kind=Kind.HEADERS, key=row.key, reasons=tuple(reasons), hint=hint)
        return self._headers_result(row, entry, tuple(reasons), cached=cached)

    def base(self, row: Base, flavour: Flavour) -> Result:
        if (found := self._pullable(Kind.BASE, row.name, row.image)) is not None:
            return found
        reasons = (f"upstream: {self.upstream.hub}",)
        if row.suite is None:
            return Missing(
                kind=Kind.BASE,
                key=row.name,
                reasons=(*reasons, f"{row.title} cannot be bootstrapped"),
                hint="let the engine reach Docker Hub, or `docker load` the image there",
            )
        name, suite, packages = base_name(row, flavour), row.suite, row.packages_for(flavour)
        return self._rooted(
            Kind.BASE,
            row.key_for(flavour),
            name,
            reasons,
            lambda say: bootstrap.base_root(self.cache, name, suite, packages, self.stop, say),
        )

    def tools(self, image: str, requirements: Path) -> Result:
        if (found := self._pullable(Kind.TOOLS, "tools", image)) is not None:
            return found
        name = bootstrap.tools_name(requirements)
        return self._rooted(
            Kind.TOOLS,
            "tools",
            name,
            (f"upstream: {self.upstream.hub}",),
            lambda say: bootstrap.tools_root(self.cache, name, requirements, self.stop, say),
        )

    def _rooted(
        self,
        kind: Kind,
        key: str,
        name: str,
        reasons: tuple[str, ...],
        make: Callable[[Callable[[str], None]], Entry],
    ) -> Result:
        with self.cache.locked(name, self.stop):
            entry = self.cache.get(name)
            packages = self.cache.get(f"{name}-packages")
            cached = entry is not None and packages is not None
            if entry is None or packages is None:
                self._tell(kind, key, f"bootstrap ({reasons[-1]})")
                with self._bootstraps:
                    entry = make(lambda text: self._tell(kind, key, text))
                packages = self.cache.get(f"{name}-packages")
        return self._root_result(kind, key, entry, packages, reasons, cached=cached)

    # what the index of the cache says, nothing read

    def known_ort(self, row: OrtRelease) -> Fetched | None:
        """The archive as the cache's index knows it, not read: enough to tell what must be built."""
        entry = self.cache.peek(release.name(row))
        if entry is not None and self._pin(row) in (None, entry.sha256):
            return self._ort_result(row, entry, cached=True)
        if self.upstream.releases is None:
            return None  # the better origin can be had now
        reason = f"upstream: {self.upstream.releases}"
        for name in (maven.name(row), repacked_wheel_name(row)):
            if (entry := self.cache.peek(name)) is not None and _from_pinned(row, entry):
                return self._ort_result(row, entry, cached=True, reasons=(reason,))
        return None

    def known_cuda(self, row: CudaSet) -> Fetched | None:
        """The set as the cache's index knows it, not read."""
        return self._sets.known(Kind.CUDA, row.key, row.wheels)

    def known_python(self, key: str, rows: Sequence[Wheel]) -> Fetched | None:
        """The wheels as the cache's index knows them, not read."""
        return self._sets.known(Kind.PYTHON, key, rows)

    def known_headers(self, row: OrtRelease) -> Fetched | None:
        """The headers as the cache's index knows them, not read."""
        archive = self.known_ort(row)
        if archive is None or archive.origin is Origin.UPSTREAM:
            return archive
        entry = self.cache.peek(headers.name(row)) if row.headers is not None else None
        return None if entry is None else self._headers_result(row, entry, (), cached=True)

    def known_base(self, row: Base, flavour: Flavour) -> Fetched | None:
        """The base as the cache's index knows it, not read."""
        if (found := self._pullable(Kind.BASE, row.name, row.image)) is not None:
            return found
        return self._known_root(Kind.BASE, row.key_for(flavour), base_name(row, flavour), row.image)

    def known_tools(self, image: str, requirements: Path) -> Fetched | None:
        """The tools as the cache's index knows them, not read."""
        return self._known_root(Kind.TOOLS, "tools", bootstrap.tools_name(requirements), image)

    # inside

    def _pullable(self, kind: Kind, key: str, image: str) -> Fetched | None:
        """The image, if the engine has it, or can be expected to pull it. Its identity is its own name."""
        pulled = image
        if not self._has_image(image):
            hub = Reference.parse(self._mirrors.image(TOOLS_IMAGE)).registry
            if Reference.parse(image).registry == hub:  # of other registries nothing is known
                if self.upstream.hub is not None:
                    return None
                if (registry := environment_registry()) is not None:
                    pulled = self._mirrors.elsewhere(image, registry) + self._digest(key, image)
        return Fetched(kind=kind, key=key, origin=Origin.UPSTREAM, image=pulled, identity=image)

    def _digest(self, base: str, image: str) -> str:
        """The lock's pin of a base, as it stands behind a reference."""
        row = self._lock.bases.get(base)
        return f"@{row.digest}" if row is not None and row.image == image and row.digest else ""

    def _pin(self, row: OrtRelease) -> str | None:
        """The release archive's hash. Catalogue and lock must agree where both have one."""
        locked = self._lock.ort.get(row.key, OrtLock()).upstream
        if locked is not None and row.sha256 is not None and locked != row.sha256:
            raise HashMismatch(
                f"{row.asset}: the catalogue's pin differs from images.lock", locked, row.sha256
            )
        return locked or row.sha256

    def _tell(self, kind: Kind, key: str, text: str, done: int = 0, total: int | None = None) -> None:
        self._on_update(Update(kind=kind, key=key, text=text, done=done, total=total))

    def _progress(self, kind: Kind, key: str, text: str) -> Progress:
        def progress(done: int, total: int | None) -> None:
            if self.stop.is_set():
                raise StoppedError
            self._tell(kind, key, text, done, total)

        return progress

    def _ort_result(
        self, row: OrtRelease, entry: Entry, *, cached: bool = False, reasons: tuple[str, ...] = ()
    ) -> Fetched:
        return Fetched(
            kind=Kind.ORT,
            key=row.key,
            origin=Origin(entry.origin),
            files=(file_of(self.cache, row.asset, entry),),
            identity=entry.details.get("tar_sha256", entry.sha256),
            source_sha256=entry.details.get("source_sha256"),
            top_folder=entry.details.get("top_folder"),
            reasons=reasons,
            cached=cached,
        )

    def _known_root(self, kind: Kind, key: str, name: str, image: str) -> Fetched | None:
        if (found := self._pullable(kind, key, image)) is not None:
            return found
        refusal = self.upstream.hub
        entry, packages = self.cache.peek(name), self.cache.peek(f"{name}-packages")
        if entry is None or packages is None:
            return None
        return self._root_result(kind, key, entry, packages, (f"upstream: {refusal}",), cached=True)

    def _root_result(
        self,
        kind: Kind,
        key: str,
        entry: Entry,
        packages: Entry | None,
        reasons: tuple[str, ...],
        *,
        cached: bool,
    ) -> Fetched:
        files = [file_of(self.cache, "root.tar", entry)]
        if packages is not None:
            files.append(file_of(self.cache, "packages.json", packages))
        return Fetched(
            kind=kind,
            key=key,
            origin=Origin.BOOTSTRAP,
            files=tuple(files),
            identity=entry.sha256,
            reasons=reasons,
            cached=cached,
        )

    def _headers_result(
        self, row: OrtRelease, entry: Entry, reasons: tuple[str, ...], *, cached: bool
    ) -> Fetched:
        return Fetched(
            kind=Kind.HEADERS,
            key=row.key,
            origin=Origin(entry.origin),
            files=(file_of(self.cache, "onnxruntime.tgz", entry),),
            identity=entry.details["tar_sha256"],
            source_sha256=entry.details.get("source_sha256"),
            reasons=reasons,
            cached=cached,
        )


def base_name(row: Base, flavour: Flavour = Flavour.RUNTIME) -> str:
    """Name in the cache of a bootstrapped base: it goes by what is in it."""
    packages = row.packages_for(flavour)
    return f"base/{'-'.join((row.name, *packages))}/bootstrap"


def repacked_wheel_name(row: OrtRelease) -> str:
    """Name in the cache of an archive made of the wheel."""
    return f"ort/{row.key}/wheel"


def _from_pinned(row: OrtRelease, entry: Entry) -> bool:
    """Whether a repacked archive was made of the package that the catalogue pins."""
    source = row.maven if entry.origin == Origin.MAVEN else row.wheel
    pin = source.sha256 if source is not None else None
    return pin in (None, entry.details.get("source_sha256"))
