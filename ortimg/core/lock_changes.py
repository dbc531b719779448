"""What differs between a lock and what is so now, and why it matters. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum

import msgspec

from ortimg.core.lock import Asset, BaseLock, Lock, OrtLock, Repacked


class Weight(StrEnum):
    """How much a change matters."""

    LOUD = "loud"  # a file that must never change has changed
    CALM = "calm"  # the world moves on


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference."""

    what: str
    before: str | None  # None: not in the lock
    after: str | None  # None: gone
    weight: Weight
    why: str


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a lock by their keys."""

    ort: frozenset[str]
    cuda: frozenset[str]
    bases: frozenset[str]


NOTHING = Scope(ort=frozenset(), cuda=frozenset(), bases=frozenset())
_REPLACED = (
    "one file name, two contents: it was uploaded anew, or somebody stands between. Read the release page"
    " before you take it"
)
_FIRST = "not in the lock yet"


def changes(lock: Lock, now: Lock) -> tuple[Change, ...]:
    """What differs, archives first."""
    found = [*_ort(lock, now), *_cuda(lock, now), *_bases(lock, now), *_tags(lock, now)]
    return tuple(found)


def accept(lock: Lock, now: Lock, scope: Scope) -> Lock:
    """`lock` brought to `now`: what was unknown everywhere, what has changed within `scope` only.

    Rows that nothing needs any more go. Tags follow images.yaml. The date stays: see `dated`.
    """
    return Lock(
        epoch=lock.epoch,
        ort={
            key: row if key in scope.ort else _filled(lock.ort.get(key, OrtLock()), row)
            for key, row in now.ort.items()
        },
        cuda={key: row if key in scope.cuda else lock.cuda.get(key, row) for key, row in now.cuda.items()},
        bases={
            name: row if name in scope.bases else _pinned(lock.bases.get(name), row)
            for name, row in now.bases.items()
        },
        headers={key: lock.headers.get(key, row) for key, row in now.headers.items()},
        python=now.python,  # the catalogue pins them, nobody else does
        tags=now.tags,
    )


def dated(lock: Lock, new: Lock, now: int, take: bool) -> Lock:
    """`new`, which came of `lock`, with the date that its images get: `now`, in seconds, where there is none.

    `take`: also where pins have changed, as `lock --update` does. Otherwise the date stays, so that a lock
    that only learns more gives the same images.
    """
    if lock.epoch is None or (take and new != lock):
        return msgspec.structs.replace(new, epoch=now)
    return new


def _filled(old: OrtLock, new: OrtLock) -> OrtLock:
    def repacked(before: Repacked | None, after: Repacked | None) -> Repacked | None:
        if before is None or after is None:
            return before or after
        return Repacked(source=before.source or after.source, tar=before.tar or after.tar)

    return OrtLock(
        upstream=old.upstream or new.upstream,
        asset=old.asset or new.asset,
        maven=repacked(old.maven, new.maven),
        wheel=repacked(old.wheel, new.wheel),
    )


def _pinned(old: BaseLock | None, new: BaseLock) -> BaseLock:
    if old is None or old.image != new.image or old.digest is None:
        return new
    return old


def _ort(lock: Lock, now: Lock) -> Iterator[Change]:
    yield from _rows("archives of ", lock.ort.keys(), now.ort.keys())
    for key, new in now.ort.items():
        old = lock.ort.get(key, OrtLock())
        what = f"{key}: release archive"
        yield from _change(f"{what}, sha256", old.upstream, new.upstream, Weight.LOUD, _REPLACED)
        if old.upstream is None or new.upstream is None or old.upstream == new.upstream:
            yield from _change(
                f"{what}, as the release host has it",
                _words(old.asset),
                _words(new.asset),
                Weight.LOUD,
                _REPLACED,
            )
        for name, before, after in (("Maven jar", old.maven, new.maven), ("wheel", old.wheel, new.wheel)):
            one, two = before or Repacked(), after or Repacked()
            yield from _change(f"{key}: {name}, sha256", one.source, two.source, Weight.LOUD, _REPLACED)
            why = "it is repacked in another way, or from another file; its images are built again"
            yield from _change(f"{key}: {name}, repacked", one.tar, two.tar, Weight.CALM, why)


def _cuda(lock: Lock, now: Lock) -> Iterator[Change]:
    yield from _rows("CUDA libraries of ", lock.cuda.keys(), now.cuda.keys())
    for key, new in now.cuda.items():
        old = lock.cuda.get(key)
        if old is None:
            continue
        for name in sorted(old.keys() | new.keys()):
            before, after = old.get(name), new.get(name)
            if before and after:
                yield from _change(f"{key}: {name}, sha256", before, after, Weight.LOUD, _REPLACED)
            else:
                why = f"the catalogue has other libraries for it now; every image with {key} is built again"
                text = f"{key}: {name}"
                yield Change(what=text, before=before, after=after, weight=Weight.CALM, why=why)


def _bases(lock: Lock, now: Lock) -> Iterator[Change]:
    yield from _rows("base ", lock.bases.keys(), now.bases.keys())
    for name, new in now.bases.items():
        old = lock.bases.get(name, BaseLock(image=new.image))
        if old.image != new.image:
            why = "the catalogue or images.yaml names another image; what was resolved before does not count"
            yield from _change(f"{name}: image", old.image, new.image, Weight.CALM, why)
        else:
            why = f"{new.image} means a newer image now, as a rule with security updates: build again"
            yield from _change(f"{name}: {new.image}", old.digest, new.digest, Weight.CALM, why)


def _tags(lock: Lock, now: Lock) -> Iterator[Change]:
    for tag in sorted(lock.tags.keys() | now.tags.keys()):
        before, after = lock.tags.get(tag), now.tags.get(tag)
        if before == after:
            continue
        if before and after:
            why = "whoever pulls by this name gets another image with the next push"
        elif after:
            why = "a new name"
        else:
            why = "the name is not given any more; where it was pushed, it stays and grows old"
        yield Change(what=f"tag {tag}", before=before, after=after, weight=Weight.CALM, why=why)


def _rows(what: str, before: Collection[str], after: Collection[str]) -> Iterator[Change]:
    old, new = set(before), set(after)
    for key in sorted(new - old):
        yield Change(what=f"{what}{key}", before=None, after="needed now", weight=Weight.CALM, why=_FIRST)
    for key in sorted(old - new):
        why = "no cell of images.yaml needs it any more"
        yield Change(what=f"{what}{key}", before="locked", after=None, weight=Weight.CALM, why=why)


def _change(what: str, before: str | None, after: str | None, weight: Weight, why: str) -> Iterator[Change]:
    if after is None or before == after:
        return  # what cannot be known now stays as it was
    if before is None:
        yield Change(what=what, before=None, after=after, weight=Weight.CALM, why=_FIRST)
    else:
        yield Change(what=what, before=before, after=after, weight=weight, why=why)


def _words(asset: Asset | None) -> str | None:
    return None if asset is None else f"{asset.size:,} bytes of {asset.updated}"
