"""One `ortimg lock`: ask the world, hold the lock against it, write what may be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ortimg.core.lock import BaseLock, Lock, OrtLock, Repacked, planned
from ortimg.core.lock_changes import Change, Scope, Weight
from ortimg.core.mirrors import Mirrors
from ortimg.core.model import Cell, MavenSource, OrtRelease, WheelSource
from ortimg.errors import OrtimgError
from ortimg.inputs import maven, release
from ortimg.inputs.cache import Cache
from ortimg.inputs.download import Unreachable
from ortimg.inputs.origins import repacked_wheel_name
from ortimg.inputs.probe import environment_registry
from ortimg.inputs.release_api import ReleaseFile
from ortimg.registry.errors import NoImage

ASKING = 8  # questions at once
AskDigest = Callable[[str], str]  # what an image's tag means now; raises Unreachable, NoImage
AskFile = Callable[[OrtRelease], ReleaseFile | None]  # None: the host has no such file; raises Unreachable


class Unresolved(msgspec.Struct, frozen=True, kw_only=True):
    """A question that got no answer."""

    what: str
    why: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How things are now, as far as could be seen."""

    now: Lock  # what could not be seen stands here as the lock has it
    conflicts: tuple[Change, ...]  # sources that contradict each other: nothing a lock can settle
    unresolved: tuple[Unresolved, ...]


def scope_of(cells: Sequence[Cell]) -> Scope:
    """The rows of a lock that `cells` need."""
    return Scope(
        ort=frozenset(cell.release.key for cell in cells),
        cuda=frozenset(cell.cuda_set.key for cell in cells),
        bases=frozenset(cell.base.name for cell in cells),
    )


class Looker:
    """Looks at everything that a plan's lock speaks of."""

    def __init__(self, digest: AskDigest, file: AskFile, cache: Cache, mirrors: Mirrors) -> None:
        self._ask_digest, self._ask_file = digest, file
        self._cache = cache
        self._mirrors = mirrors
        self._conflicts: list[Change] = []
        self._unresolved: list[Unresolved] = []

    def look(self, cells: Sequence[Cell], lock: Lock) -> Seen:
        """Ask about each archive and base of `cells` once, several at a time."""
        now = planned(cells)
        releases = {cell.release.key: cell.release for cell in cells if cell.release.key in now.ort}
        with ThreadPoolExecutor(ASKING, thread_name_prefix="lock") as pool:
            files = {key: pool.submit(self._file, row) for key, row in sorted(releases.items())}
            digests = {name: pool.submit(self._digest, name, row) for name, row in sorted(now.bases.items())}
            ort = {
                key: self._ort(row, lock.ort.get(key, OrtLock()), files[key].result())
                for key, row in releases.items()
            }
            bases = {
                name: _base(row, lock.bases.get(name), digests[name].result())
                for name, row in now.bases.items()
            }
        return Seen(
            now=msgspec.structs.replace(now, ort=ort, bases=bases),
            conflicts=tuple(sorted(self._conflicts, key=lambda row: row.what)),
            unresolved=tuple(sorted(self._unresolved, key=lambda row: row.what)),
        )

    def _digest(self, name: str, row: BaseLock) -> str | None:
        registry = environment_registry()
        image = self._mirrors.elsewhere(row.image, registry) if registry else row.image
        try:
            return self._ask_digest(image)
        except NoImage as error:
            self._conflict(f"{name}: {row.image}", "named by the catalogue", error.message, _GONE)
        except OrtimgError as error:
            self._unresolved.append(Unresolved(what=f"{name}: digest of {row.image}", why=error.message))
        return None

    def _file(self, row: OrtRelease) -> ReleaseFile | None:
        what = f"{row.key}: {row.asset}, as the release host has it"
        try:
            found = self._ask_file(row)
        except Unreachable as error:
            self._unresolved.append(Unresolved(what=what, why=error.message))
            return None
        if found is None:
            self._conflict(
                f"{row.key}: {row.asset}", "named by the catalogue", "not listed by the host", _GONE
            )
        return found

    def _ort(self, row: OrtRelease, old: OrtLock, told: ReleaseFile | None) -> OrtLock:
        fetched = self._cache.peek(release.name(row))
        sources = {
            "the catalogue": row.sha256,
            "the release host": told.sha256 if told else None,
            "the archive that was fetched here": fetched.sha256 if fetched else None,
        }
        known = {source: sha256 for source, sha256 in sources.items() if sha256}
        upstream = next(iter(known.values()), old.upstream)
        if len(set(known.values())) > 1:
            said = "; ".join(f"{source} has {sha256}" for source, sha256 in known.items())
            self._conflict(f"{row.key}: release archive, sha256", old.upstream, said, _CONTRADICTION)
            upstream = old.upstream or row.sha256
        return OrtLock(
            upstream=upstream,
            asset=told.asset if told else old.asset,
            maven=self._repacked(maven.name(row), row.maven, old.maven),
            wheel=self._repacked(repacked_wheel_name(row), row.wheel, old.wheel),
        )

    def _repacked(
        self, name: str, source: MavenSource | WheelSource | None, old: Repacked | None
    ) -> Repacked | None:
        """A fallback by the catalogue's pin, and by what was made of it here; None: no such origin."""
        if source is None:
            return None
        before, pin = old or Repacked(), source.sha256
        entry = self._cache.peek(name)
        made_of = entry.details.get("source_sha256") if entry else None
        if entry is None or pin not in (None, made_of):
            same = pin in (None, before.source)
            return Repacked(source=pin or before.source, tar=before.tar if same else None)
        return Repacked(source=pin or made_of, tar=entry.details.get("tar_sha256"))

    def _conflict(self, what: str, before: str | None, after: str, why: str) -> None:
        self._conflicts.append(Change(what=what, before=before, after=after, weight=Weight.LOUD, why=why))


_GONE = "whoever builds this without a cache cannot; look where it went, or leave its cells out"
_CONTRADICTION = (
    "uploaded anew, or one of them is wrong. Look at the release page; if the new file is right, put its hash"
    " into catalogue/ort.yaml beside images.yaml (`replaces: true`), or remove the old one (`ortimg prune`)"
)


def _base(row: BaseLock, old: BaseLock | None, digest: str | None) -> BaseLock:
    before = old.digest if old is not None and old.image == row.image else None
    return BaseLock(image=row.image, digest=digest or before)
