"""kube-scheduler gives up a request whose pod is still looked up: no decision follows from it any more."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest

from app.objects.decode_pod import decode_pod
from app.server.connections import Connections
from app.server.port import Connection
from app.settings.limits import DEFAULTS
from app.verbs.filter import filter_verb
from app.verbs.pods import BindingArgs
from core.objects.pod import Pod
from tests.app.questions import mirror_of
from tests.app.server.conversations import request, until
from tests.app.server.test_at_once import Written, rounds, run
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, written
from tests.app.verbs.deciding.test_scheduling_groups import member
from tests.app.verbs.deciding.test_scheduling_groups import setting as grouped
from tests.app.verbs.receptions import app_with, reception
from tests.builders import make_node, make_pod

NAMES: Final = ["n0", "n1"]
FORMS: Final = pytest.mark.parametrize("options", [(), ("Kindred-Cache: off",)], ids=["at-once", "by-asgi"])


class Scheduler:
    """A kube-scheduler with a connection for each request, beside an API server that responds when it is told to."""

    def __init__(self, made: DecidingSetting, options: tuple[str, ...]) -> None:
        self._pods = made.pods
        self._options = options
        self._app = app_with(reception()(filter_verb(made.extender, made.effects)))
        self._server = SimpleNamespace(default_headers=[], tasks=set())
        self._get = made.pods.get
        self._responds = asyncio.Event()
        made.pods.get = self._late  # type: ignore[method-assign]  # only here

    async def _late(self, args: BindingArgs, *, limited: bool = True) -> Pod | None:
        await self._responds.wait()
        return await self._get(args, limited=limited)

    def send(self, pod: dict[str, Any]) -> tuple[Connection, Written]:
        """Send a request for a pod over a connection of its own."""
        connections = Connections("extender", DEFAULTS)
        made = Connection(self._app, connections, config=None, server_state=self._server, app_state={})
        client = Written()
        made.connection_made(client)
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": NAMES}).encode()
        made.data_received(request("/filter", body, *self._options))
        return made, client

    async def ask(self, pod: dict[str, Any]) -> str:
        """Return the node for a pod that the watch shows."""
        _, client = self.send(pod)
        await until(lambda: bool(client.text))
        result = json.loads(client.text.partition(b"\r\n\r\n")[2])
        assert not result["Error"], result
        return "".join(result["NodeNames"] or ())

    @asynccontextmanager
    async def late(self, pod: dict[str, Any], *, leaves: bool) -> AsyncIterator[None]:
        """Within the block, the API server is asked for a pod that the watch does not show. Then it responds."""
        made, client = self.send(pod)
        decoded = decode_pod(json.dumps(pod).encode())
        self._pods.live[decoded.full_name] = decoded
        await asyncio.sleep(0.1)  # more than two looks at the watch
        if leaves:
            made.connection_lost(None)
        yield
        self._responds.set()
        await rounds()
        await until(lambda: not self._server.tasks)
        assert bool(client.text) is not leaves


def deciding() -> DecidingSetting:
    return DecidingSetting(mirror_of(*(make_node(name).allocatable(cpu="2", memory="8Gi", pods=10) for name in NAMES)))


@FORMS
def test_a_late_decision_does_not_replace_the_one_of_the_next_attempt(options: tuple[str, ...]) -> None:
    async def story() -> None:
        made = deciding()
        scheduler = Scheduler(made, options)
        pod = make_pod("p").requests(cpu="2")
        async with scheduler.late(written(pod), leaves=True):
            made.tell(pod)
            assert await scheduler.ask(written(pod)) == "n0"
            made.turn = 1
        assert made.assumed() == {"default/p": "n0"}, "n0 would be given away, where the pod is being bound"
        assert made.counts() == {"assumed": 1}

    run(story())


@FORMS
def test_a_late_decision_does_not_end_the_cycle_of_a_group(options: tuple[str, ...]) -> None:
    async def story() -> None:
        made = grouped(minimum=2)
        made.effects.take_over(0.0)
        made.now = 100.0  # long after the start, so that a cycle below the minimum has bound nothing
        scheduler = Scheduler(made, options)
        async with scheduler.late(written(make_pod("p").requests(cpu="1")), leaves=True):
            made.tell_object(member("m0"))
            made.tell_object(member("m1"))
            assert await scheduler.ask(member("m0")) == "n0"
        assert made.assumed() == {"default/m0": "n0"}, "n0 would be given away, where the cycle goes on"

    run(story())


@FORMS
def test_a_client_that_waits_gets_its_late_decision(options: tuple[str, ...]) -> None:
    async def story() -> None:
        made = deciding()
        async with Scheduler(made, options).late(written(make_pod("p")), leaves=False):
            pass
        assert made.counts() == {"assumed": 1}

    run(story())
