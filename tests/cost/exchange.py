"""Sends a wire form to a running service on several connections, and discards the responses."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from tests.bench.live import HttpClient
from tests.cost.attack import Object

PATIENCE: Final = 15.0
"""Timeout of one connection in seconds."""
_READ: Final = 1 << 20


def exchange(document: Object, url: str, admin_url: str) -> None:
    """Send a wire form on all its connections at once. Return when the last one is closed."""
    asks = "path" in document
    target = admin_url if document.get("port") == "admin" else url
    threads = [
        threading.Thread(target=_ask if asks else _send, args=(document, target))
        for _ in range(document["connections"])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _ask(document: Object, url: str) -> None:
    client = HttpClient(url)
    for _ in range(document["times"]):
        client.ask("GET", document["path"])
    client.close()


def _send(document: Object, url: str) -> None:
    """Send all pieces, unless the service closes the connection, or reads nothing for too long."""
    parts = urlsplit(url)
    with suppress(OSError), socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
        reader = threading.Thread(target=_read, args=(connection,))
        reader.start()
        try:
            until = time.monotonic() + PATIENCE
            for piece in _pieces(document):
                connection.sendall(piece)
                if time.monotonic() > until:
                    break
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed after a response, or without one: both are correct
        reader.join()


def _read(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(_READ):
            pass


def _pieces(document: Object) -> Iterator[bytes]:
    for piece in document["pieces"]:
        text = piece["text"].encode("latin-1")
        for _ in range(piece.get("times", 1)):
            yield text
