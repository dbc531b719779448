"""All inputs of a plan, each from the first origin that has it, in parallel.

`Fetcher.ort(release)` and its like return a future at once, so that a build can start with the first input
that is there; asking twice gives the same future. A missing input is a value (`Missing`), never an exception:
one that cannot be had must not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock as Mutex
from types import TracebackType

from ortimg.core.lock import Lock, merge
from ortimg.core.mirrors import NO_MIRRORS, Mirrors
from ortimg.core.model import Base, CudaSet, Flavour, OrtRelease, Wheel
from ortimg.errors import OrtimgError
from ortimg.inputs.cache import Cache, StoppedError
from ortimg.inputs.download import Downloader, WrongFile
from ortimg.inputs.origins import Origins
from ortimg.inputs.probe import Upstream, hub_url, probe, release_prefix
from ortimg.inputs.result import Fetched, Kind, Missing, OnUpdate, Result, Update, news, summary

WORKERS = 32  # mostly waiting: for the network, or for their turn


def _ignore(_update: Update) -> None:
    return None


class Fetcher:
    """Brings inputs into the cache on a bounded pool of threads.

    `upstream`: the answer of a probe; None: asked once, in the background, now. `lock`: pins besides the
    catalogue's. `mirrors`: those of images.yaml. `has_image`: whether the engine holds an image already (such
    a base needs no Docker Hub).
    """

    def __init__(
        self,
        cache: Cache,
        *,
        lock: Lock | None = None,
        mirrors: Mirrors = NO_MIRRORS,
        upstream: Upstream | None = None,
        on_update: OnUpdate = _ignore,
        has_image: Callable[[str], bool] = lambda _image: False,
        downloader: Downloader | None = None,
    ) -> None:
        self.cache = cache
        self._lock = lock or Lock()
        self._on_update = on_update
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="fetch")
        prefix, hub = release_prefix(mirrors.releases), hub_url(mirrors.registry)
        answer = self._pool.submit(lambda: upstream or probe(prefix, hub))
        self._origins = Origins(
            cache, self._lock, answer, downloader or Downloader(), has_image, on_update, mirrors
        )
        self._futures: dict[tuple[Kind, str], Future[Result]] = {}
        self._seen = Lock()
        self._mutex = Mutex()

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.cancel()
        self._pool.shutdown(wait=True, cancel_futures=error is not None)

    def cancel(self) -> None:
        """End downloads and client processes; what was waited for becomes `Missing`."""
        self._origins.stop.set()
        self._origins.downloader.stop()

    @property
    def upstream(self) -> Upstream:
        """Which upstream hosts answer (waits for the probe, 3 s at most)."""
        return self._origins.upstream

    @property
    def seen(self) -> Lock:
        """What the inputs fetched so far add to `images.lock`."""
        with self._mutex:
            return self._seen

    # inputs

    def ort(self, row: OrtRelease) -> Future[Result]:
        """An ORT archive in the release layout: release host, then Maven, then the wheel."""
        return self._once(Kind.ORT, row.key, lambda: self._origins.ort(row))

    def cuda(self, row: CudaSet) -> Future[Result]:
        """The wheels of a CUDA set."""
        return self._once(Kind.CUDA, row.key, lambda: self._origins.cuda(row))

    def python(self, key: str, rows: Sequence[Wheel]) -> Future[Result]:
        """ONNX Runtime's wheel and what it imports."""
        return self._once(Kind.PYTHON, key, lambda: self._origins.python(key, rows))

    def headers(self, row: OrtRelease) -> Future[Result]:
        """The headers: in the release archive itself, or in one made of Debian's package."""
        archive = self.ort(row)
        return self._once(Kind.HEADERS, row.key, lambda: self._origins.headers(row, archive.result()))

    def base(self, row: Base, flavour: Flavour = Flavour.RUNTIME) -> Future[Result]:
        """A base: Docker Hub's image by name, or a bootstrapped root file system (`root.tar`)."""
        return self._once(Kind.BASE, row.key_for(flavour), lambda: self._origins.base(row, flavour))

    def tools(self, image: str, requirements: Path) -> Future[Result]:
        """The `tools` stage: an image by name, or a root with Python and the hashed requirements."""
        return self._once(Kind.TOOLS, "tools", lambda: self._origins.tools(image, requirements))

    def known_ort(self, row: OrtRelease) -> Fetched | None:
        """The archive as the cache's index knows it, not read: enough to tell what must be built."""
        return self._origins.known_ort(row)

    def known_cuda(self, row: CudaSet) -> Fetched | None:
        """The set as the cache's index knows it, not read."""
        return self._origins.known_cuda(row)

    def known_python(self, key: str, rows: Sequence[Wheel]) -> Fetched | None:
        """The wheels as the cache's index knows them, not read."""
        return self._origins.known_python(key, rows)

    def known_headers(self, row: OrtRelease) -> Fetched | None:
        """The headers as the cache's index knows them, not read."""
        return self._origins.known_headers(row)

    def known_base(self, row: Base, flavour: Flavour = Flavour.RUNTIME) -> Fetched | None:
        """The base as the cache's index knows it, not read."""
        return self._origins.known_base(row, flavour)

    def known_tools(self, image: str, requirements: Path) -> Fetched | None:
        """The tools as the cache's index knows them, not read."""
        return self._origins.known_tools(image, requirements)

    # inside

    def _once(self, kind: Kind, key: str, job: Callable[[], Result]) -> Future[Result]:
        with self._mutex:
            if (kind, key) not in self._futures:
                self._futures[kind, key] = self._pool.submit(self._guarded, kind, key, job)
            return self._futures[kind, key]

    def _guarded(self, kind: Kind, key: str, job: Callable[[], Result]) -> Result:
        try:
            result = job()
            if isinstance(result, Fetched):
                self._learn(result)
        except StoppedError:
            result = Missing(kind=kind, key=key, reasons=("interrupted",))
        except OrtimgError as error:
            wrong = isinstance(error, WrongFile)
            result = Missing(kind=kind, key=key, reasons=(error.message,), hint=error.hint, wrong=wrong)
        self._on_update(summary(result))
        return result

    def _learn(self, result: Fetched) -> None:
        learned = news(result)
        try:
            merge(self._lock, learned)
        except OrtimgError as error:
            raise WrongFile(error.message, error.hint) from error
        with self._mutex:
            self._seen = merge(self._seen, learned)
