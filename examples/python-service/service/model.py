"""The model in ONNX Runtime: a session on the provider that was asked for, a few threads that run it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort

from service.settings import Provider, Settings
from service.tensors import DTYPES, Array, Input


class UnusableError(Exception):
    """The model or the provider cannot be used; the service ends. `code` is the process's exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Outcome:
    """Outputs by name, and the seconds in ONNX Runtime."""

    outputs: Mapping[str, Array]
    seconds: float


class Model:
    """Makes the session. Raises UnusableError, with code 3 where CUDA cannot be used."""

    def __init__(self, settings: Settings) -> None:
        self._session = _session(settings)
        self.provider: str = self._session.get_providers()[0]
        self.onnxruntime: str = ort.__version__
        self._outputs = [output.name for output in self._session.get_outputs()]
        for one in (*self._session.get_inputs(), *self._session.get_outputs()):
            if one.type not in DTYPES:
                raise UnusableError(
                    f"{one.name} is a {one.type}, which this service does not take or give", 1
                )
        self.inputs = [
            Input(
                one.name,
                DTYPES[one.type],
                tuple(size if isinstance(size, int) else None for size in one.shape),
            )
            for one in self._session.get_inputs()
        ]

    def run(self, inputs: Mapping[str, Array]) -> Outcome:
        """One run, in the thread that calls it."""
        start = time.perf_counter()
        outputs = self._session.run(self._outputs, dict(inputs))
        return Outcome(dict(zip(self._outputs, outputs, strict=True)), time.perf_counter() - start)

    def warm_up(self, pool: ThreadPoolExecutor, settings: Settings) -> None:
        """Runs the model in every thread of the pool: each has cuBLAS and cuDNN handles of its own."""
        if unknown := settings.warmup_shapes.keys() - {one.name for one in self.inputs}:
            raise UnusableError(f"WARMUP_SHAPES names {min(unknown)}: the model has no such input", 2)
        together = threading.Barrier(settings.workers)  # no thread can take the turn of another

        def work() -> None:
            zeros = {
                one.name: np.zeros(_shape(one, settings.warmup_shapes), one.dtype) for one in self.inputs
            }
            together.wait(timeout=60)
            for _ in range(settings.warmup_runs):
                self.run(zeros)

        for turn in [pool.submit(work) for _ in range(settings.workers)]:
            try:
                turn.result()
            except Exception as error:
                raise UnusableError(
                    f"the warm-up failed: {_one_line(error)}; set WARMUP_SHAPES", 1
                ) from error


def _shape(declared: Input, wanted: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    return wanted.get(declared.name, tuple(1 if size is None else size for size in declared.shape))


def _session(settings: Settings) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = settings.threads
    name = settings.provider.onnxruntime_name
    providers = [(name, {"device_id": settings.device_id})] if settings.provider is Provider.CUDA else [name]
    with _kept_words() as words, contextlib.redirect_stdout(io.StringIO()):
        try:
            session = ort.InferenceSession(settings.model, options, providers=providers)
        except Exception as error:
            if cuda := _CUDA_FAULT.search(str(error)):
                raise UnusableError(f"CUDA cannot be used: {cuda[0]}; {_ADVICE}", 3) from error
            raise UnusableError(f"cannot load {settings.model}: {_one_line(error)}", 1) from error
        # Where a library is missing, ONNX Runtime says so in its log and takes the CPU. Here that is the end.
        if session.get_providers()[0] != name:
            cause = _CUDA_FAULT.search(words()) or _LIBRARY_FAULT.search(words())
            raise UnusableError(
                f"CUDA cannot be used: {cause[0] if cause else 'no cause was given'}; {_ADVICE}", 3
            )
    return session


_ADVICE = "start it with a GPU (--gpus all), or ask for the CPU with PROVIDER=cpu"
_CUDA_FAULT = re.compile(r"(CUDA|CUDNN|CUBLAS) (failure|error) \d+: [^;]+\w")
_LIBRARY_FAULT = re.compile(r"lib\S+: (cannot open shared object file|undefined symbol: \w+)")


@contextlib.contextmanager
def _kept_words() -> Iterator[Callable[[], str]]:
    """Holds back what native code writes to stderr: written when all went well, dropped otherwise."""
    with os.fdopen(os.memfd_create("stderr"), "w+b") as kept, os.fdopen(os.dup(2), "wb") as stderr:

        def words() -> str:
            return os.pread(kept.fileno(), 1 << 20, 0).decode(errors="replace")

        sys.stderr.flush()
        os.dup2(kept.fileno(), 2)
        try:
            yield words
        finally:
            sys.stderr.flush()
            os.dup2(stderr.fileno(), 2)
        stderr.write(words().encode())


def _one_line(error: object) -> str:
    return " ".join(str(error).split())
