"""An app that serves in a thread, so that a command can call it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tests.app.serving import until
from tests.openssl import Authority


class Running(uvicorn.Server):
    """A server in a thread."""

    @property
    def url(self) -> str:
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"{'https' if self.config.is_ssl else 'http'}://{host}:{port}"


@contextmanager
def running(app: FastAPI, tls: Authority | None = None) -> Iterator[Running]:
    """Serve, with a certificate where there is an authority."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off")
    if tls is not None:
        config.ssl_certfile, config.ssl_keyfile = tls.crt("server"), tls.key("server")
    server = Running(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        until(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        thread.join()
