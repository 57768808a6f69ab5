"""A metrics API, or a Prometheus, on the loopback: what nodes use is what a test says."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from tests.e2e.api import Api
from tests.fake_apiserver.usage import METRICS_PATH, FakeUsage
from tests.fake_apiserver.wire import Request

_GROUP_VERSION: Final = "metrics.k8s.io/v1beta1"
_SERVICES: Final = "/api/v1/namespaces/default/services"
_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_NAME: Final = "fake-metrics"
_DISCOVERY: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": _GROUP_VERSION,
    "resources": [{"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["list"]}],
}


@contextmanager
def usage_server(usage: FakeUsage, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve the APIs of `usage` until the block ends; give the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the library calls
            split = urlsplit(self.path)
            request = Request("GET", split.path, dict(parse_qsl(split.query)), {}, b"")
            respond = usage.apis.get(split.path)
            status, body = (404, b"{}") if respond is None else respond(request)
            if split.path == METRICS_PATH.removesuffix("/nodes"):  # by which the API server knows that it is there
                status, body = 200, json.dumps(_DISCOVERY).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:  # noqa: ANN401  # as the library has it
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def aggregated(api: Api, port: int) -> Iterator[None]:
    """Let the API server pass requests for metrics.k8s.io on to a port of the loopback, until the block ends."""
    service = {
        "metadata": {"name": _NAME},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    api.create(_SERVICES, service)
    name = f"v1beta1.{_GROUP_VERSION.partition('/')[0]}"
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "service": {"name": _NAME, "namespace": "default", "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec}
    api.create(_API_SERVICES, body)
    try:
        yield
    finally:
        api.request("DELETE", f"{_API_SERVICES}/{name}")
        api.request("DELETE", f"{_SERVICES}/{_NAME}")
