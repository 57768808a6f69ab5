"""Resources that wait after failures, and are tried again one by one; in virtual time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from app.objects.resources import RESOURCES
from app.watch.freshness import ResourceState
from app.watch.retries import ResourceRetries, Retries
from app.watch.retry_plan import Wait
from app.watch.timing import Timing
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.virtual_time import run_in_virtual_time


class Resources:
    """Three resources of a server, all followed."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.interrupted: list[str] = []
        self.states = [ResourceState(RESOURCES[kind]) for kind in (Node, Pod, Namespace)]
        shared = Retries(Timing(clock=self.loop.time, random=lambda: 0.0))
        self.nodes, self.pods, self.namespaces = (self._join(shared, state) for state in self.states)

    def _join(self, shared: Retries, state: ResourceState) -> ResourceRetries:
        return shared.join(state, lambda: self.interrupted.append(state.plural))

    def fail(self, resource: ResourceRetries) -> "asyncio.Task[float]":
        """Let a resource fail; return the task that waits, whose result is the time when it is tried again."""
        resource.failed()
        now = self.loop.time()
        return asyncio.create_task(self._tried_at(resource.wait(Wait(now + 20.0, now + 0.8))))

    async def _tried_at(self, wait: Awaitable[None]) -> float:
        await wait
        return self.loop.time()


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Make a test of a coroutine."""

    async def main() -> None:
        await test()

    def run() -> None:
        run_in_virtual_time(main())

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_resources_that_fail_are_probed_in_turn_and_woken_by_the_first_success() -> None:
    found = Resources()
    waiting = [found.fail(each) for each in (found.nodes, found.pods, found.namespaces)]
    assert await waiting[0] == pytest.approx(0.8)
    found.nodes.begin()
    found.nodes.answered()
    assert [await each for each in waiting[1:]] == pytest.approx([0.85, 0.875])
    assert [state.retries for state in found.states] == [{"probe": 1}, {"woken": 1}, {"woken": 1}]


@in_virtual_time
async def test_one_that_fails_alone_waits_for_its_own_backoff() -> None:
    found = Resources()
    assert await found.fail(found.pods) == pytest.approx(20.0)
    assert found.states[1].retries == {"backoff": 1}


@in_virtual_time
async def test_a_wait_that_is_cancelled_takes_no_turn() -> None:
    found = Resources()
    nodes, pods = found.fail(found.nodes), found.fail(found.pods)
    await asyncio.sleep(0.1)
    nodes.cancel()
    assert await pods == pytest.approx(0.8)


@in_virtual_time
async def test_a_request_that_follows_no_failure_is_made_at_once_and_is_no_retry() -> None:
    found = Resources()
    await found.nodes.pass_on()
    assert found.loop.time() == pytest.approx(0.0)
    await found.pods.pass_on()
    assert found.loop.time() == pytest.approx(0.025)
    assert found.states[0].retries.total() == 0


@in_virtual_time
async def test_a_request_that_is_stuck_is_interrupted_when_another_one_succeeds() -> None:
    found = Resources()
    for each in (found.nodes, found.pods):
        await found.fail(each)
        each.begin()
    await asyncio.sleep(1.0)
    found.pods.answered()
    assert found.interrupted == ["nodes"]


def test_the_log_tells_when_the_server_becomes_unwell_and_is_well_again(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        found = Resources()
        waiting = [found.fail(found.nodes), found.fail(found.pods)]
        await asyncio.sleep(3.0)
        assert found.nodes.is_server_unwell
        assert found.nodes.followed()
        assert found.pods.followed()
        assert not found.pods.followed()
        await asyncio.gather(*waiting)

    with caplog.at_level(logging.INFO):
        run_in_virtual_time(main())
    assert caplog.messages == [
        "API server: 2 of 3 resources fail; one of them is tried every 1 s",
        "API server: 1 of 3 resources fail, after 3.0 s",
    ]
