"""How long schedulers wait while people ask: for one explanation, and never for a second."""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Final

import pytest
import uvloop
from fastapi import FastAPI

from app.admin.access import Access
from app.admin.explain_routes import explain_router
from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods
from app.feeds.freshness import OF_A_DUMP
from app.feeds.release import ReleaseTracker
from app.process.long_work import LongWork
from app.server.ports import admin_port, extender_port
from app.settings.settings import Settings
from app.verbs.admission import Admission
from app.verbs.filter import Extender
from app.verbs.request import Request as VerbRequest
from core.diagnosis.explained_profile import served_alone
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving
from tests.app.verbs.receptions import effects_over, extender_app, reception
from tests.builders import make_namespace, make_node, make_pod
from tests.conformance.engine import load
from tests.core.profile_parts import affinity_profile

SETTINGS: Final = Settings(listen="127.0.0.1:0", admin="127.0.0.1:0")
POD: Final = make_pod("next").obj()
PEOPLE: Final = 12
ROOM: Final = 1 << 20  # bytes that the kernel takes while nobody reads

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def names(count: int) -> list[str]:
    return [f"node-{number:05}" for number in range(count)]


class Setting:
    """A service whose log says when an explanation begins, and when a scheduler is answered."""

    def __init__(self, admission: Admission) -> None:
        self.log: list[str] = []
        self.begins: Callable[[], None] = lambda: None
        """Called within each explanation."""
        self._admission = admission
        profile = affinity_profile()
        mirror = load([make_namespace("default").obj()], [make_node(name).obj() for name in names(10)], [])
        extender, effects = Extender(profile, mirror, None), effects_over(mirror)
        release = ReleaseTracker(Settings(), mirror)
        work = LongWork(self._idle, PATIENCE)
        explainer = Explainer(
            served_alone(profile), KnownPods(mirror, effects.recent_pods, work), None, OF_A_DUMP, release=release
        )
        self.app = extender_app(extender, mirror, reception(admission=admission, observe=self._observe))
        self.admin = FastAPI()
        self.admin.include_router(explain_router(explainer, 2**20, Access(None)))

    async def _idle(self, patience: float) -> None:
        await self._admission.wait_until_idle(patience)
        self.log.append("explanation")
        self.begins()

    def _observe(self, request: VerbRequest) -> None:
        self.log.append(request.verb)


def admission() -> Admission:
    return Admission(deadline=PATIENCE, queue_limit=100, max_bytes=10**9, clock=time.monotonic)


async def explained(port: int) -> None:
    async with connected(port) as (reader, writer):
        body = {"Pod": POD, "NodeNames": names(10)}
        writer.write(request("/explain", json.dumps(body).encode()))
        assert (await read_response(reader))[0] == 200


@pytest.mark.parametrize(
    ("loop", "padding", "schedulers"),
    [
        pytest.param(asyncio.new_event_loop, 0, 1, id="asyncio, read at once"),
        pytest.param(asyncio.new_event_loop, 400_000, 3, id="asyncio, read in parts"),
        pytest.param(uvloop.new_event_loop, 0, 3, id="uvloop, read at once"),
        pytest.param(uvloop.new_event_loop, 400_000, 1, id="uvloop, read in parts"),
    ],
)
def test_a_question_that_comes_within_an_explanation_is_answered_before_the_next(
    padding: int, schedulers: int, loop: LoopFactory
) -> None:
    setting = Setting(admission())
    requested = request("/filter", json.dumps({"Pod": POD, "NodeNames": names(10), "padding": "x" * padding}).encode())

    async def story() -> None:
        async with AsyncExitStack() as stack:
            _, port = await stack.enter_async_context(serving(extender_port(SETTINGS, setting.app)))
            _, admin = await stack.enter_async_context(serving(admin_port(SETTINGS, setting.admin)))
            with ExitStack() as sockets:
                clients = [sockets.enter_context(client(port)) for _ in range(schedulers)]

                def ask() -> None:
                    for each in clients:
                        each.sendall(requested)

                setting.begins = ask
                await asyncio.gather(*(explained(admin) for _ in range(PEOPLE)))
                setting.begins = lambda: None
                while setting.log.count("filter") < PEOPLE * schedulers:  # noqa: ASYNC110 - nobody tells of it
                    await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(story(), PATIENCE))
    assert setting.log == (["explanation"] + ["filter"] * schedulers) * PEOPLE


def client(port: int) -> socket.socket:
    """Connect so that a whole question can be written while nobody reads."""
    connected = socket.socket()
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connected.setsockopt(socket.SOL_SOCKET, option, ROOM)
    connected.connect(("127.0.0.1", port))
    return connected


async def come(waiting: Admission) -> None:
    began = time.monotonic()
    if waiting.enter(began) is None:
        await waiting.wait(began, lambda: False)


def test_people_wait_while_questions_wait_but_not_for_ever() -> None:
    async def story() -> None:
        waiting = admission()
        began = time.monotonic()
        task = asyncio.create_task(waiting.wait_until_idle(0.3))
        requests = []
        while not task.done():
            requests += [asyncio.create_task(come(waiting)) for _ in range(3)]
            await asyncio.sleep(0)
        for each in requests:
            each.cancel()
        assert time.monotonic() - began >= 0.3

    asyncio.run(asyncio.wait_for(story(), PATIENCE))
