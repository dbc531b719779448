"""Content-addressed cache of inputs, safe for several processes and threads at once.

Layout below the root (`~/.cache/ortimg`, or `ORTIMG_CACHE`):

- `blobs/sha256/<hex>`: contents, read-only, named by their hash
- `index/<name>.json`: a name ("ort/1.16.2-cuda11/maven"), the blob it stands for, and where that came from
- `locks/`: one lock file a name
- `tmp/<random>/`: unfinished work; its owner holds a lock on `owner`, which the kernel drops with it
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from ortimg.errors import EnvironmentFault
from ortimg.inputs.unfinished import Unfinished, unfinished

CHUNK = 1 << 20  # bytes read or written at once
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=-]*)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Say = Callable[[str], None]


def _silent(_text: str) -> None:
    return None


class StoppedError(Exception):
    """The run was interrupted."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A named blob and where it came from."""

    name: str
    sha256: str
    size: int  # bytes
    origin: str
    details: dict[str, str] = {}


class Cache:
    """The cache folder. `say` gets a line whenever something had to be repaired.

    Raises `EnvironmentFault` where the folder cannot be written or the disk is full.
    """

    def __init__(self, root: Path, say: Say = _silent) -> None:
        self.root = root
        self.say = say
        self._verified: dict[str, tuple[int, int, int]] = {}
        self._verifying: dict[str, threading.Lock] = {}
        self._mutex = threading.Lock()

    @classmethod
    def default(cls, say: Say = _silent) -> Cache:
        """The user's cache: `ORTIMG_CACHE`, else `~/.cache/ortimg`."""
        folder = os.environ.get("ORTIMG_CACHE")
        return cls(Path(folder).expanduser() if folder else Path.home() / ".cache" / "ortimg", say)

    # reading

    def peek(self, name: str) -> Entry | None:
        """What `name` stands for, without reading the blob: good for names and hashes, not for contents."""
        try:
            entry = msgspec.json.decode(self.index_path(name).read_bytes(), type=Entry)
            size = self.path(entry).stat().st_size
        except (OSError, msgspec.DecodeError):
            return None
        return entry if _SHA256.fullmatch(entry.sha256) and size == entry.size else None

    def get(self, name: str) -> Entry | None:
        """What `name` stands for, its blob read and hashed (once in a process).

        A damaged blob is removed, said, and counts as absent.
        """
        index = self.index_path(name)
        entry = self.peek(name)
        if entry is None:
            if index.exists():
                self.say(f"cache: {name} is broken (left by an earlier run?), removed")
                with self.guard():
                    index.unlink(missing_ok=True)
            return None
        path = self.path(entry)
        with self._mutex:
            lock = self._verifying.setdefault(entry.sha256, threading.Lock())
        with lock:
            try:
                stat = path.stat()
                seal = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
                if self._verified.get(entry.sha256) == seal:
                    return entry
                found = sha256_of(path)
            except FileNotFoundError:  # pruned meanwhile
                return None
            if found == entry.sha256:
                self._verified[entry.sha256] = seal
                return entry
            self.say(f"cache: {name} is damaged (sha256 {found}, expected {entry.sha256}), removed")
            with self.guard():
                path.unlink(missing_ok=True)
                index.unlink(missing_ok=True)
            return None

    def path(self, entry: Entry) -> Path:
        """File of the blob. Never write to it."""
        return self.root / "blobs" / "sha256" / entry.sha256

    def index_path(self, name: str) -> Path:
        """File that tells what `name` stands for."""
        return self.root / "index" / (self._checked(name) + ".json")

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        folder = self.root / "index"
        return tuple(
            sorted(str(path.relative_to(folder)).removesuffix(".json") for path in folder.rglob("*.json"))
        )

    def place(self, entry: Entry, target: Path) -> None:
        """Put the blob at `target`: a hard link, or a copy on another file system."""
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        try:
            target.hardlink_to(self.path(entry))
        except OSError:
            shutil.copyfile(self.path(entry), target)

    # writing

    @contextmanager
    def locked(self, name: str, stop: threading.Event | None = None) -> Iterator[None]:
        """One holder of `name` at a time, over threads and processes: the second waits, then reuses.

        Waiting ends with `StoppedError` when `stop` is set.
        """
        path = self.root / "locks" / (self._checked(name).replace("/", "--") + ".lock")
        with self.guard():
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path, thread_local=False)
            while True:
                try:
                    lock.acquire(timeout=0.25)
                    break
                except Timeout:
                    if stop is not None and stop.is_set():
                        raise StoppedError from None
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def workdir(self, need: int = 0) -> Iterator[Path]:
        """A folder for unfinished work on the cache's own file system; gone afterwards, also after a kill."""
        tmp = self.root / "tmp"
        with self.guard():
            tmp.mkdir(parents=True, exist_ok=True)
            self.require_space(need)
            with FileLock(self.root / "tmp.lock", thread_local=False):
                for dead in unfinished(tmp).dead:
                    shutil.rmtree(dead, ignore_errors=True)
                folder = Path(tempfile.mkdtemp(dir=tmp, suffix=".part"))
                owner = os.open(folder / "owner", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
                fcntl.flock(owner, fcntl.LOCK_EX)
        work = folder / "work"
        try:
            with self.guard():
                work.mkdir()
                yield work
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(owner)

    def adopt(
        self, name: str, path: Path, *, sha256: str | None, origin: str, details: dict[str, str] | None = None
    ) -> Entry:
        """Move a finished file of a `workdir` into the cache under `name`.

        `sha256` is the hash seen while the file was written; None: the file is read once more.
        """
        digest = sha256 or sha256_of(path)
        with self.guard():
            with path.open("rb") as file:
                os.fsync(file.fileno())
            entry = Entry(
                name=name, sha256=digest, size=path.stat().st_size, origin=origin, details=details or {}
            )
            blob = self.path(entry)
            blob.parent.mkdir(parents=True, exist_ok=True)
            path.chmod(0o444)
            path.replace(blob)
            stat = blob.stat()
            self._verified[digest] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            _write_atomically(
                self.index_path(name), msgspec.json.format(msgspec.json.encode(entry), indent=1)
            )
        return entry

    def drop(self, name: str) -> None:
        """Forget `name`; its blob goes too, unless another name stands for it."""
        entry = self.peek(name)
        with self.guard():
            self.index_path(name).unlink(missing_ok=True)
            if entry and not any((e := self.peek(n)) and e.sha256 == entry.sha256 for n in self.names()):
                self.path(entry).unlink(missing_ok=True)

    def unfinished(self) -> Unfinished:
        """Work that is under way, and what is left of killed runs."""
        tmp = self.root / "tmp"
        if not tmp.is_dir():
            return Unfinished((), ())
        with self.guard(), FileLock(self.root / "tmp.lock", thread_local=False):
            return unfinished(tmp)

    def require_space(self, need: int) -> None:
        """Raise `EnvironmentFault` unless `need` bytes (and 1 % of the disk) are free."""
        if need <= 0:
            return
        usage = shutil.disk_usage(self.root)
        if usage.free < need + usage.total // 100:
            raise EnvironmentFault(
                f"{self.root}: {megabytes(need)} MB are needed, {megabytes(usage.free)} MB are free",
                "free some space, or set ORTIMG_CACHE to a folder on a larger disk",
            )

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turns a full or read-only file system into an `EnvironmentFault`."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                free = shutil.disk_usage(_existing(self.root)).free
                raise EnvironmentFault(
                    f"{self.root}: the disk is full ({megabytes(free)} MB are free)",
                    "free some space, or set ORTIMG_CACHE to a folder on a larger disk",
                ) from error
            closed = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)
            if error.errno in closed or not self.root.is_dir():
                raise EnvironmentFault(
                    f"{self.root}: the cache cannot be written ({error.strerror})",
                    "set ORTIMG_CACHE to a folder that you may write",
                ) from error
            raise

    # inside

    @staticmethod
    def _checked(name: str) -> str:
        if not _NAME.fullmatch(name) or ".." in name:
            raise ValueError(f"not a cache name: {name!r}")
        return name


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, read in small pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def megabytes(size: int) -> str:
    """Bytes as MB for people: `1,361`."""
    return f"{size / 1e6:,.0f}"


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
