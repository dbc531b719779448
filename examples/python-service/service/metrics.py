"""What Prometheus gets, in its text format 0.0.4."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Seconds. A small model on a GPU takes less than a millisecond, a large one some seconds.
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

disable_created_metrics()  # type: ignore[no-untyped-call]  # one more time series for each, which nobody asks for


class Metrics:
    """The service's numbers."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "ort_requests", "Requests for an inference, by status", ["code"], registry=registry
        )
        self.request_seconds = Histogram(
            "ort_request_seconds", "From the request to its answer", buckets=_BUCKETS, registry=registry
        )
        self.inference_seconds = Histogram(
            "ort_inference_seconds", "In ONNX Runtime alone", buckets=_BUCKETS, registry=registry
        )
        self.ready = Gauge("ort_ready", "1: the service takes requests", registry=registry)
        self.provider = Gauge(
            "ort_provider_info", "Where the model runs", ["provider", "onnxruntime"], registry=registry
        )
        self.warmup_seconds = Gauge("ort_warmup_seconds", "What the warm-up took", registry=registry)
        self.in_flight = Gauge("ort_in_flight", "Requests that are not answered yet", registry=registry)

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self._registry)
