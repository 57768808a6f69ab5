"""`GET /what-if/progress`: how far a question is, for who asked it with a key of their own."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from tests.app.admin.test_what_if_routes import NODES, PATIENCE, PODS, Caller, children, endless, port, until_so
from tests.app.commands.what_if.asking import dump


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    return port(dump(tmp_path, *NODES, *PODS))


async def done(app: FastAPI, key: str = "") -> float | None:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as client:
        response = await client.get("/what-if/progress", params={"key": key})
    assert response.status_code == 200
    share: float | None = response.json()["done"]
    return share


async def until_done(app: FastAPI, key: str, share: float) -> None:
    async with asyncio.timeout(PATIENCE):
        while await done(app, key) != share:  # noqa: ASYNC110  # of a child
            await asyncio.sleep(0.01)


def test_who_asked_with_a_key_and_nobody_else_learns_the_share_done(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def three_steps(*_: object, **__: object) -> Iterator[None]:
        yield
        yield
        time.sleep(0.2)
        yield
        time.sleep(PATIENCE)

    three_of_all = 3 / (2 * 3 * 2)  # two pods in three orders and two states
    monkeypatch.setattr("app.simulation.questions.lose_each", three_steps)
    monkeypatch.setattr("app.simulation.asking._LOOKS_EVERY", 0.1)

    async def main() -> None:
        assert await done(app, "mine") is None
        first = Caller(app, b"mine")
        second = Caller(app, b"waits")
        await until_done(app, "mine", three_of_all)
        assert [await done(app, key) for key in ("", "min", "waits")] == [None, None, None]
        first.leave()
        await asyncio.wait_for(first.task, PATIENCE)
        await until_done(app, "waits", three_of_all)
        assert await done(app, "mine") is None
        second.leave()
        await asyncio.wait_for(second.task, PATIENCE)
        assert await done(app, "waits") is None

    asyncio.run(main())


def test_nobody_learns_how_far_a_question_without_a_key_is(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    endless(monkeypatch)
    before = children()

    async def main() -> None:
        caller = Caller(app)
        await until_so(lambda: len(children() - before) == 1)
        await asyncio.sleep(0.1)
        assert await done(app) is None
        caller.leave()
        await asyncio.wait_for(caller.task, PATIENCE)

    asyncio.run(main())


def test_more_steps_than_thought_are_never_more_than_all(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    endless(monkeypatch)
    monkeypatch.setattr("app.simulation.asking._LOOKS_EVERY", 0.05)

    async def main() -> None:
        caller, shares = Caller(app, b"mine"), [0.0]
        async with asyncio.timeout(PATIENCE):
            while shares[-1] < 1:
                await asyncio.sleep(0.01)
                shares.append(await done(app, "mine") or 0.0)
        await asyncio.sleep(0.2)
        assert await done(app, "mine") == 1.0
        assert shares == sorted(shares)
        caller.leave()
        await asyncio.wait_for(caller.task, PATIENCE)

    asyncio.run(main())
