"""POSTs to a server that a test scripts: how they end, and on which connections they come."""

import asyncio
from typing import Final

import pytest

from app.api_server.client import ApiClient, ApiError
from tests.app.api_server.api_server import Answer, ApiServer, response
from tests.app.api_server.client_setting import PODS, Setting

PATH: Final = f"{PODS}/web/binding"
HEAD: Final = f"POST {PATH} at SERVER"
DONE: Final = response(b'{"status":"Success"}', status="201 Created")


async def post(client: ApiClient, _: ApiServer) -> bytes:
    return await client.post(PATH, b"{}")


def fails(setting: Setting, answer: Answer, **limits: float) -> tuple[type[ApiError], str]:
    """Return how a POST fails, which leaves open whether it was done."""

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[type[ApiError], str]:
        with pytest.raises(ApiError) as caught:
            await post(client, server)
        assert not getattr(caught.value, "unsent", False)
        assert "\n" not in str(caught.value)
        return caught.type, str(caught.value).replace(server.url, "SERVER")

    return setting.run(answer, exchange, **limits)


def connections(setting: Setting, answer: Answer, times: int = 2) -> list[int]:
    """Return the connections on which successful POSTs came, one after the other."""

    async def exchange(client: ApiClient, server: ApiServer) -> list[int]:
        for _ in range(times):
            await post(client, server)
            await asyncio.sleep(0.05)  # what the server does after its answer has arrived by then
        return [request.connection for request in server.requests]

    return setting.run(answer, exchange)
