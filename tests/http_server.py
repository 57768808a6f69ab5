"""An HTTP server in a thread, in place of one that a client calls."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    """Answers one request of any method, which is `command`. Logs nothing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the names of the standard library
        """Answer."""
        self.respond()

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the same

    def respond(self) -> None:
        """Read the request, and reply."""
        raise NotImplementedError

    def body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status: int, body: bytes = b"", media_type: str = "application/json") -> None:
        """Send the response."""
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def http_server(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer requests to a free port of the loopback until the block ends; yield the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
