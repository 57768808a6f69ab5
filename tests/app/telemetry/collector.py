"""A collector of OpenTelemetry traces, by OTLP over HTTP."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.app.serving import until


class Collector(HTTPServer):
    """What spans are sent to; where it `hangs`, it takes them and does not answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiving)
        self.received: list[tuple[str, ExportTraceServiceRequest]] = []
        self.answers = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> list[Span]:
        """Return the spans of all batches."""
        return [
            span
            for _, request in self.received
            for of_resource in request.resource_spans
            for scope in of_resource.scope_spans
            for span in scope.spans
        ]


class Receiving(BaseHTTPRequestHandler):
    """One batch."""

    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.server.answers.wait(60)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        """Say nothing."""


@contextmanager
def collector(*, hangs: bool = False) -> Iterator[Collector]:
    with Collector() as server:
        if not hangs:
            server.answers.set()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.answers.set()
            server.shutdown()
            thread.join()


def wait_for_exporters() -> None:
    """Wait until no thread sends spans any more; each ends when it is shut down, and has sent what it had."""
    until(lambda: not any(thread.name.startswith("OtelBatch") for thread in threading.enumerate()))
