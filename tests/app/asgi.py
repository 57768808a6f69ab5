"""Requests to an app in process, over HTTP or message by message."""

import asyncio
from collections.abc import AsyncIterable, Iterator, Mapping

import httpx
from starlette.types import ASGIApp, Message

ASGI_REQUEST = {"type": "http", "http_version": "1.1", "method": "POST", "query_string": b"", "headers": []}


def ask(
    app: ASGIApp,
    method: str,
    path: str,
    content: bytes | AsyncIterable[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Send one request and give the response; what the app raises is raised here."""

    async def exchange() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, content=content, headers=headers)

    return asyncio.run(exchange())


def bodies_of(app: ASGIApp, path: str) -> list[bytes]:
    """Get a path, and give the pieces of the body as they are sent."""
    sent: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            sent.append(message["body"])

    async def serve() -> None:
        scope = {**ASGI_REQUEST, "method": "GET", "path": path, "asgi": {"spec_version": "2.4"}}
        await app(scope, receive, send)

    asyncio.run(serve())
    return sent


def converse(app: ASGIApp, path: str, received: Iterator[Message]) -> list[Message]:
    """Let an app receive these messages, and give those that it sends."""
    sent: list[Message] = []

    async def receive() -> Message:
        return next(received)

    async def send(message: Message) -> None:
        sent.append(message)

    async def serve() -> None:
        await app({**ASGI_REQUEST, "path": path, "raw_path": path.encode()}, receive, send)

    asyncio.run(serve())
    return sent
