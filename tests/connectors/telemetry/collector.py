"""A collector of OpenTelemetry for the tests: it decodes what arrives by OTLP over HTTP."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Collector", "collecting"]


class Collector:
    """What arrived: spans, exports of metrics by name, attributes of resources, and headers."""

    def __init__(self) -> None:
        """Listen at a free port."""
        self.spans: list[Span] = []
        self.exports: list[dict[str, Metric]] = []
        self.resources: list[dict[str, str]] = []
        self.authorizations: list[str | None] = []
        self.arrived = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def sent(self) -> dict[str, Span]:
        """Return the spans of outputs by their ids, each of which arrived once."""
        found = {one.span_id.hex(): one for one in self.spans if one.name.startswith("send ")}
        assert len(found) + len(self.transactions()) == len(self.spans)
        return found

    def transactions(self) -> list[Span]:
        """Return the spans of transactions."""
        return [one for one in self.spans if one.name == "transaction"]

    def take(self, path: str, body: bytes, authorization: str | None) -> None:
        """Take an export."""
        with self.arrived:
            self.authorizations.append(authorization)
            if path == "/v1/traces":
                for traces in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self._resource(traces.resource.attributes)
                    self.spans += [one for scope in traces.scope_spans for one in scope.spans]
            else:
                assert path == "/v1/metrics"
                (metrics,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
                self._resource(metrics.resource.attributes)
                (scope,) = metrics.scope_metrics
                assert scope.scope.name == "abers"
                self.exports.append({one.name: one for one in scope.metrics})
            self.arrived.notify_all()

    def _resource(self, attributes: object) -> None:
        self.resources.append({one.key: one.value.string_value for one in attributes})  # type: ignore[attr-defined]

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            """Take an export."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, body, self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Handler


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector in a `with` block."""
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()
