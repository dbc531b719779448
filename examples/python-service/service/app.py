"""The routes. The event loop only moves bytes: JSON, checks and ONNX Runtime are work for the threads."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import orjson
from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from service.metrics import CONTENT_TYPE, Metrics
from service.model import Model
from service.settings import Settings
from service.tensors import BadInputError, as_json, read_inputs

GONE = 499  # for the metrics: the client went away, and nobody is answered


class State(Enum):
    """Of the service. Only a ready one takes requests."""

    STARTING = "warming up"
    READY = "ready"
    STOPPING = "stopping"


class Service:
    """What the routes share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="infer")
        self.model: Model | None = None
        self.in_flight = 0
        self._state = State.STARTING

    @property
    def state(self) -> State:
        """Where the service stands."""
        return self._state

    @state.setter
    def state(self, value: State) -> None:
        self._state = value
        self.metrics.ready.set(value is State.READY)

    def start(self) -> None:
        """Make the session and warm it up; takes a second, or minutes. Raises model.UnusableError."""
        model = Model(self.settings)
        self.metrics.provider.labels(model.provider, model.onnxruntime).set(1)
        before = time.perf_counter()
        model.warm_up(self.pool, self.settings)
        self.metrics.warmup_seconds.set(time.perf_counter() - before)
        self.model = model

    async def infer(self, request: Request) -> Response:
        """Answer one request for an inference."""
        if self.state is not State.READY or self.model is None:
            return _error(503, f"the service is {self.state.value}")
        if self.in_flight > self.settings.workers + self.settings.queue:
            return _error(503, "too many requests are waiting")
        try:
            async with asyncio.timeout(self.settings.receive_seconds):  # a place is taken meanwhile
                body = await _body(request, self.settings.max_body_mb << 20)
        except TimeoutError:
            refused = _error(408, f"the body did not come within {self.settings.receive_seconds} s")
            refused.headers["connection"] = "close"
            return refused
        except ClientDisconnect:
            return Response(status_code=GONE)
        if body is None:
            return _error(413, f"the body is larger than {self.settings.max_body_mb} MiB")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, self._work, self.model, body)

    def _work(self, model: Model, body: bytes) -> Response:
        try:
            inputs = read_inputs(orjson.loads(body), model.inputs)
        except orjson.JSONDecodeError as error:
            return _error(400, f"the body is not JSON: {error}")
        except BadInputError as error:
            return _error(400, str(error))
        try:
            outcome = model.run(inputs)
        except Exception as error:  # of ONNX Runtime, such as shapes that do not fit each other
            return _error(400 if "INVALID_ARGUMENT" in str(error) else 500, " ".join(str(error).split()))
        self.metrics.inference_seconds.observe(outcome.seconds)
        answer = {
            "outputs": {name: as_json(values) for name, values in outcome.outputs.items()},
            "provider": model.provider,
            "seconds": outcome.seconds,
        }
        return _json(200, answer)


def make_app(service: Service) -> FastAPI:
    """The routes over `service`."""
    app = FastAPI(title="ONNX Runtime", docs_url=None, redoc_url=None)

    @app.post("/v1/infer")
    async def infer(request: Request) -> Response:
        start = time.perf_counter()
        service.in_flight += 1
        service.metrics.in_flight.set(service.in_flight)
        code = GONE
        try:
            response = await service.infer(request)
            code = response.status_code
            return response
        finally:
            service.in_flight -= 1
            service.metrics.in_flight.set(service.in_flight)
            service.metrics.requests.labels(str(code)).inc()
            service.metrics.request_seconds.observe(time.perf_counter() - start)

    @app.get("/healthz")
    async def healthz() -> Response:
        return _json(200, {"status": "alive"})

    @app.get("/readyz")
    async def readyz() -> Response:
        if service.state is not State.READY or service.model is None:
            return _json(503, {"status": service.state.value})
        return _json(
            200,
            {
                "status": "ready",
                "provider": service.model.provider,
                "onnxruntime": service.model.onnxruntime,
                "device": service.settings.device_id,
            },
        )

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    return app


async def _body(request: Request, limit: int) -> bytes | None:
    """The whole body; None where it is larger than `limit` bytes.

    Some of the rest is read and dropped: many clients read no answer before they have sent all.
    """
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= limit:
            body += piece
        elif size > 4 * limit:
            break
    return bytes(body) if size <= limit else None


def _json(code: int, content: object) -> Response:
    return Response(
        orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY),
        status_code=code,
        media_type="application/json",
    )


def _error(code: int, words: str) -> Response:
    return _json(code, {"error": words})
