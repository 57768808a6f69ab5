"""Reservations end between requests, too: by time, and when the replica no longer decides."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.verbs import effects
from tests.app.verbs.receptions import effects_over
from tests.core.gangs.gang_setting import GangSetting, member, node


@pytest.mark.parametrize(
    ("now", "rejection", "left"),
    [
        pytest.param(59.0, "", {"a", "b"}, id="in time"),
        pytest.param(60.0, "", {"a"}, id="too old"),
        pytest.param(1.0, "not leading", {"a"}, id="not leading"),
    ],
)
def test_reservations_are_looked_at_again_and_again(
    now: float, rejection: str, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "_REVIEW_EVERY", 0.0)
    setting = GangSetting(node("n0"))
    setting.see(member("a"), member("b"))
    setting.ask(member("a"))
    turns = iter([now] * 6)

    async def keep() -> None:
        await effects_over(setting.mirror, lambda: next(turns), gangs=setting.gangs).keep(lambda: rejection)

    async def retained() -> None:
        keeping = asyncio.create_task(keep())
        for _ in range(4):
            await asyncio.sleep(0)
        keeping.cancel()

    asyncio.run(retained())
    assert setting.assumed() == left


def test_a_wrong_packing_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(effects, "_REVIEW_EVERY", 0.0)
    setting = GangSetting(node("n0"))
    setting.see(member("a").packed("dense"), member("b"))
    setting.ask(member("a").packed("dense"))

    async def retained() -> None:
        keeping = asyncio.create_task(effects_over(setting.mirror, lambda: 1.0, gangs=setting.gangs).keep(lambda: ""))
        for _ in range(4):
            await asyncio.sleep(0)
        keeping.cancel()

    asyncio.run(retained())
    problem = "metadata.annotations[kindred.dev/group-packing]: expected spread, pack or near, got 'dense'"
    stated = [record.getMessage() for record in caplog.records if record.name == effects.__name__]
    assert stated == [f"group default/train is placed as spread: {problem}"]


def test_places_of_unproved_cycles_are_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_RELEASE_EVERY", 0.0)
    made, looks = effects_over(GangSetting(node("n0")).mirror, lambda: 1.0), []

    async def looked(relist: Callable[[], Awaitable[None]]) -> None:
        looks.append(relist)

    async def relist() -> None:
        """List nothing."""

    async def retained() -> None:
        keeping = asyncio.create_task(made.keep_releasing(relist))
        for _ in range(4):
            await asyncio.sleep(0)
        keeping.cancel()

    monkeypatch.setattr(made, "release_unproved", looked)
    asyncio.run(retained())
    assert looks[:2] == [relist, relist]
