"""Pages that are too large in bytes are asked for again, of fewer objects."""

import asyncio
from collections.abc import Mapping

import pytest

from app.api_server.client import ResponseTooLargeError
from app.watch.stream import MAX_PAGE_BYTES, Pages


class Client:
    """Answers pages of at most so many objects."""

    def __init__(self, *most: int) -> None:
        self._most = list(most)
        self.asked: list[tuple[str, str]] = []

    async def get(self, path: str, params: Mapping[str, str], most: int) -> bytes:
        assert (path, most) == ("/pods", MAX_PAGE_BYTES)
        self.asked.append((params["limit"], params.get("continue", "")))
        if int(params["limit"]) > self._most[0]:
            raise ResponseTooLargeError("GET /pods: the response has more than N bytes")
        self._most.pop(0)
        return b"{}"


def limits(client: Client, pages: int) -> list[tuple[str, str]]:
    async def ask() -> None:
        getter = Pages(client, "/pods")  # type: ignore[arg-type]  # all that it uses
        for number in range(pages):
            assert await getter.get({"continue": f"c{number}"} if number else {}) == b"{}"

    asyncio.run(ask())
    return client.asked


def test_an_object_that_is_too_large_alone_is_an_error() -> None:
    client = Client(0)
    with pytest.raises(ResponseTooLargeError):
        limits(client, 1)
    assert [limit for limit, _ in client.asked] == ["500", "62", "7", "1"]
