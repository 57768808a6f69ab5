"""The floor for Kindred's HTTP verbs: a bare ASGI app that reads the same body and returns the same bytes.

`PUT /filter/17` sets the response to `POST /filter/17`. Otherwise the app does only what every extender in Python must
do: read the body, decode it with its names as strings (a whole Node stays raw), and send a prepared response.
"""

import asyncio
import gc
from typing import Any

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send

_HEADERS = [(b"content-type", b"application/json")]


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw]


class _Args(msgspec.Struct):
    pod: dict[str, object] = msgspec.field(name="Pod")
    nodes: _NodeList | None = msgspec.field(name="Nodes")
    names: list[str] | None = msgspec.field(name="NodeNames")


_decode = msgspec.json.Decoder(_Args).decode


class FloorApp:
    """The app, and its prepared responses."""

    def __init__(self) -> None:
        self._responses: dict[str, bytes] = {}  # path -> body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        body = await _body(receive)
        if scope["method"] == "PUT":
            self._responses[scope["path"]] = body
            response = b""
        else:
            _decode(body)
            response = self._responses[scope["path"]]
        headers = [*_HEADERS, (b"content-length", b"%d" % len(response))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": response})


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    gathered = bytearray(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise asyncio.CancelledError
        gathered += message.get("body", b"")
    return bytes(gathered)


def config(app: FloorApp) -> uvicorn.Config:
    """Return the settings of Kindred's server, for a free port."""
    return uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        loop="auto",
        http="auto",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)  # noqa: T201 - for its parent


def main() -> None:
    """Serve until a signal arrives. The first printed line has the URL."""
    gc.freeze()
    _Server(config(FloorApp())).run()


if __name__ == "__main__":
    main()
