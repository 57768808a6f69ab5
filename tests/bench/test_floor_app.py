"""The floor app uses Kindred's server, and returns the prepared responses."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from fastapi import FastAPI

from app.server.port_server import port_server
from app.server.ports import extender_port
from app.settings import Settings
from tests.bench.floor_app import FloorApp, config

NAMES = b'{"Pod":{"a":1},"Nodes":null,"NodeNames":["n"]}'
NODES = b'{"Pod":{"a":1},"Nodes":{"metadata":{},"items":[{"b":2}]},"NodeNames":null}'
OF_THE_APP = {"app", "host", "port", "lifespan", "http", "ws"}  # settings that may differ


def ask(app: FloorApp, method: str, path: str, *pieces: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Send an ASGI app a body in pieces. Return headers and body."""
    received = iter(
        {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
        for number, piece in enumerate(pieces, start=1)
    )
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return next(received)

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app({"type": "http", "method": method, "path": path}, receive, send))
    return sent[0]["headers"], sent[1]["body"]


def test_the_server_has_the_settings_of_kindreds() -> None:
    port = extender_port(Settings(listen_port=0), FastAPI())
    ours, floor = vars(port_server(port, lambda _: None).config), vars(config(FloorApp()))
    assert {key: (ours[key], floor[key]) for key in ours if key not in OF_THE_APP and ours[key] != floor[key]} == {}


@pytest.mark.parametrize("body", [pytest.param(NAMES, id="names"), pytest.param(NODES, id="whole-nodes")])
def test_a_question_gets_the_answer_that_was_put_there(body: bytes) -> None:
    app = FloorApp()
    ask(app, "PUT", "/filter/1", b"answer ", b"one")
    ask(app, "PUT", "/filter/2", b"two")
    headers, answer = ask(app, "POST", "/filter/1", body[:20], body[20:30], body[30:])
    assert answer == b"answer one"
    assert (b"content-length", b"10") in headers


def test_a_body_is_read_indeed() -> None:
    app = FloorApp()
    ask(app, "PUT", "/filter/1", b"one")
    with pytest.raises(Exception, match="Expected `str`"):
        ask(app, "POST", "/filter/1", NAMES.replace(b'"n"', b"1"))
