"""The server of a port: uvicorn with Kindred's protocol, without the parts that Kindred replaces."""

from collections.abc import Callable

from app.server.ports import Port
from app.server.process import Server
from app.server.uvicorn_parts import Config
from app.server.verb_protocol import VerbProtocol


def port_server(port: Port, on_listening: Callable[[str], None]) -> Server:
    """Return the server of a port, for `process.run`. It calls `on_listening` with its URL."""
    config = Config(
        port.app,
        host=port.host,
        port=port.number,
        loop="auto",
        http=VerbProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=list(port.headers),
    )
    return Server(config, port.connections, on_listening, port.tls.context if port.tls is not None else None)
