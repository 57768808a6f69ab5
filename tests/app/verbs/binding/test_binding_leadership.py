"""`bind` by a replica whose leadership ends while it binds: nothing is posted from then on."""

import asyncio
import re
import time
from typing import Final

from app.api_server.elector import Elector
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import N1, WEB, Scheduler, loner, scheduling
from tests.fake_apiserver import FakeApiServer, Stall
from tests.fake_apiserver.single_objects import binding_path, pod_path

NOT_LEADING: Final = "not leading: another replica leads: b"


class Given(Elector):
    """A leadership that the test gives and takes; `grants`: how often it says so when it is asked, None: always."""

    leader = "b_1"

    def __init__(self, left: float = 60.0) -> None:
        self.is_given = True
        self.ends_at = time.monotonic() + left
        self.granted = 0
        self.grants: int | None = None

    def leads(self) -> bool:
        self.granted += 1
        return self.is_given and (self.grants is None or self.granted <= self.grants)

    def problem(self) -> str:
        return "" if self.is_given else "another replica leads: b"

    def seconds_left(self) -> float:
        return self.ends_at - time.monotonic()

    async def resign(self, *, landed: bool = True) -> None:  # noqa: ARG002  # it is part of the interface
        self.is_given = False


def given_to(scheduler: Scheduler, left: float = 60.0) -> Given:
    leadership = Given(left)
    scheduler.service.state.leadership = leadership
    return leadership


@scenario()
async def test_a_pod_that_is_still_looked_at_when_the_leadership_ends_is_not_assumed(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        leadership = given_to(scheduler)
        scheduler.stall_watch()
        pod = scheduler.create(WEB)
        stall = Stall(before_head=True)
        server.faults.add(stall, pod_path("web"), "get")
        binding = asyncio.create_task(scheduler.bind(pod, "n1"))
        await server.until(lambda: not server.faults.pending)
        leadership.is_given = False
        stall.release()
        assert await binding == NOT_LEADING
        assert not scheduler.is_assumed(pod)
        assert scheduler.requested() == ["get"]
        assert await scheduler.metric('kindred_binds_total{result="not_leading"}') == 1


@scenario()
async def test_it_is_asked_right_before_the_binding_is_written(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(loner("a"))
        assert await scheduler.filter(pod, "n1") == ["n1"]
        leadership = given_to(scheduler)
        leadership.grants = 0
        error = await scheduler.bind(pod, "n1")
        assert error.endswith(": held back")
        assert scheduler.requested() == []
        assert not scheduler.is_assumed(pod), "what was not sent is not done"
        leadership.grants = None
        assert await scheduler.bind(pod, "n1") == ""


@scenario()
async def test_a_binding_without_an_answer_ends_with_the_time_in_which_no_other_leads(server: FakeApiServer) -> None:
    async with scheduling(server, N1, http_timeout=75.0) as scheduler:
        pod = scheduler.create(WEB)
        assert await scheduler.filter(pod, "n1") == ["n1"]
        given_to(scheduler, left=0.5)
        server.faults.add(Stall(before_head=True), binding_path("web"), "bind")
        began = time.monotonic()
        stated = await scheduler.bind(pod, "n1")
        assert re.search(r"the API server did not respond within 0\.[1-5]\d? s", stated)  # what is left of the time
        assert time.monotonic() - began < 20


@scenario()
async def test_pods_that_pass_untouched_are_not_bound_either(server: FakeApiServer) -> None:
    async with scheduling(server, N1, bypass_namespaces="default") as scheduler:
        pod = scheduler.create(WEB)
        assert await scheduler.filter(pod, "n1") == ["n1"]
        given_to(scheduler).is_given = False
        assert await scheduler.bind(pod, "n1") == NOT_LEADING
        assert "bind" not in scheduler.requested()
