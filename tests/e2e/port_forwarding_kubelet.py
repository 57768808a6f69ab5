"""A kubelet that can do one thing: forward ports, to this machine, when a real kube-apiserver hands a websocket on."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.port_forwarding import forward, switching_head

_KEY: Final = re.compile(r"^sec-websocket-key: *(\S+)", re.IGNORECASE | re.MULTILINE)
_PORT: Final = re.compile(r"[?&]ports?=(\d+)")


class ForwardingKubelet:
    """Listens on the loopback, over TLS."""

    def __init__(self, server: socket.socket, tls: ssl.SSLContext) -> None:
        self.port: int = server.getsockname()[1]
        self.to = 1
        """The port of this machine that is forwarded to, whatever port of the pod is asked for."""
        self.requests: list[str] = []
        self._server = server
        self._tls = tls

    def serve(self) -> None:
        """Serve one connection after the other, until the server is shut down."""
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, suppress(OSError), self._tls.wrap_socket(connection, server_side=True) as secured:
                self._serve_one(secured)

    def _serve_one(self, connection: ssl.SSLSocket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = connection.recv(1)
            if not piece:
                return
            head += piece
        text = head.decode()
        self.requests.append(text.split("\r\n")[0])
        key, port = _KEY.search(text), _PORT.search(self.requests[-1])
        if key is None or port is None:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return
        connection.sendall(switching_head(key[1]))
        forward(connection, int(port[1]), self.to)


@contextmanager
def forwarding_kubelet(crt: Path, key: Path) -> Iterator[ForwardingKubelet]:
    """Run one, with a certificate; kube-apiserver checks none unless it is told to."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(crt, key)
    with socket.create_server(("127.0.0.1", 0)) as server:
        kubelet = ForwardingKubelet(server, tls)
        thread = threading.Thread(target=kubelet.serve)
        thread.start()
        try:
            yield kubelet
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
