"""ORT release archives from the release host or a mirror of it."""

from __future__ import annotations

from pathlib import Path

from ortimg.core.mirrors import RELEASES
from ortimg.core.model import Origin, OrtRelease
from ortimg.inputs.archive import check_archive
from ortimg.inputs.cache import Cache, Entry
from ortimg.inputs.download import Downloader, Progress
from ortimg.inputs.probe import release_prefix

EXTRACTED = 1_000_000_000  # bytes, more than any CUDA provider measured (694 MB) takes while it is looked at


def release_url(release: OrtRelease, mirror: str | None = None) -> str:
    """The archive's address; `ORTIMG_RELEASE_MIRROR` stands in for the release host and for `mirror`."""
    for prefix in (RELEASES, mirror and mirror.rstrip("/")):
        if prefix and release.url.startswith(f"{prefix}/"):
            return release_prefix(mirror) + release.url.removeprefix(prefix)
    return release.url


def name(release: OrtRelease) -> str:
    """Name in the cache."""
    return f"ort/{release.key}/upstream"


def cached_release(cache: Cache, release: OrtRelease, sha256: str | None) -> Entry | None:
    """The archive from the cache, unless the pin is of another file."""
    entry = cache.get(name(release))
    return entry if entry is not None and sha256 in (None, entry.sha256) else None


def fetch_release(
    cache: Cache,
    release: OrtRelease,
    sha256: str | None,
    downloader: Downloader,
    progress: Progress | None = None,
    mirror: str | None = None,
) -> Entry:
    """Download the archive and check what is inside.

    `sha256`: the pin of catalogue or lock; None: nobody published one, the checks of the contents stand in.
    Raises `Unreachable`, `HashMismatch`, `WrongFile`.
    """
    url = release_url(release, mirror)
    with cache.workdir(EXTRACTED) as work:
        file: Path = work / "archive.tgz"
        found = downloader.fetch(url, file, sha256=sha256, progress=progress)
        contents = check_archive(file, release, work, url)
        return cache.adopt(
            name(release),
            file,
            sha256=found,
            origin=Origin.UPSTREAM,
            details={"url": url, "top_folder": contents.top_folder, "needed": " ".join(contents.needed)},
        )
