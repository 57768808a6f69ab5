"""What a failed request costs: the wait, the log line, and what it says of the server."""

import asyncio
import logging
import random
from collections.abc import Callable

import pytest

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, StatusError
from app.feeds.freshness import ResourceState
from app.feeds.memory import MemoryPressureError
from app.feeds.retry import FailureLog, Retries, Retry, Timing
from app.feeds.stream import GarbledWatchError, InStreamError
from app.objects.resources import RESOURCES
from core.events import Kind
from core.objects.kinds import DeviceClass, Namespace, Service
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolume
from tests.app.feeds.simulated_server import SimulatedServer
from tests.virtual_time import run_in_virtual_time

RULE = 'the RBAC rule that is missing: apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'


def no_client() -> ApiClient:
    """Return a client that is not used."""
    return ApiClient.__new__(ApiClient)


class Failing:
    """Pods that fail beside other resources of a server, with a clock that the test sets and waits of 1, 2, 4, 5 s."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.now = 1000.0
        self.state = ResourceState(RESOURCES[Pod])
        timing = Timing(
            backoff_first=1.0, backoff_longest=5.0, backoff_alone=30.0, clock=lambda: self.now, random=lambda: jitter
        )
        self.all = Retries(no_client(), timing)
        self.pods = self._join(self.state)
        self.nodes, self.namespaces, self.classes = (
            self._join(ResourceState(RESOURCES[kind])) for kind in (Node, Namespace, DeviceClass)
        )

    def _join(self, state: ResourceState) -> Retry:
        return Retry(state, self.all, lambda: None)

    def record(self, error: Exception, after: float = 1.0, shortest: float = 0.0) -> float:
        """Let a request fail some seconds after the last one; return how long it is to wait."""
        self.now += after
        return self.pods.failed(error, shortest)


@pytest.fixture
def failing() -> Failing:
    return Failing()


def status(code: int, retry_after: float | None = None) -> StatusError:
    """Return a refusal."""
    return StatusError(code, "Reason", "message", retry_after)


@pytest.mark.parametrize(
    ("error", "kind", "problem"),
    [
        pytest.param(status(410), "410", "410 Reason: message", id="status"),
        pytest.param(InStreamError(status(500)), "in-stream 500", "500 Reason: message", id="in-stream"),
        pytest.param(ConnectionFailedError("refused"), "ConnectionFailed", "refused", id="connection"),
        pytest.param(GarbledWatchError("a\nb"), "GarbledWatch", "a\\nb", id="garbled"),
        pytest.param(KeyError(), "Key", "KeyError", id="without-words"),
    ],
)
def test_a_failure_is_counted_by_its_kind_and_told(failing: Failing, error: Exception, kind: str, problem: str) -> None:
    failing.record(error)
    assert failing.state.failures == {kind: 1}
    assert failing.state.problem == problem


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(status(503), 1.0, id="backoff"),
        pytest.param(status(429, 7.0), 7.0, id="retry-after"),
        pytest.param(status(429, 0.5), 1.0, id="retry-after-that-is-less"),
        pytest.param(status(429, 86400.0), 300.0, id="retry-after-that-is-too-much"),
    ],
)
def test_the_wait_is_that_of_the_server_where_it_wants_more_than_ours(
    failing: Failing, error: Exception, expected: float
) -> None:
    assert failing.record(error) == expected
    assert failing.record(status(500)) == 2.0


@pytest.mark.parametrize("error", [status(403), InStreamError(status(403))])
def test_a_refusal_for_lack_of_a_rule_is_one_until_another_failure(failing: Failing, error: Exception) -> None:
    failing.record(error)
    assert failing.state.forbidden
    failing.record(status(401))
    assert not failing.state.forbidden


def test_being_followed_ends_the_problem(failing: Failing) -> None:
    failing.record(status(403))
    failing.pods.followed()
    assert (failing.state.problem, failing.state.forbidden) == ("", False)


# The log.


class Looking:
    """The log of four resources, one look a second: second -> line."""

    def __init__(self, failing: Failing, caplog: pytest.LogCaptureFixture) -> None:
        self.failing = failing
        self.began = failing.now
        self.log = FailureLog(lambda: failing.now)
        self._caplog = caplog
        caplog.set_level(logging.INFO)

    def until(self, second: int) -> dict[int, str]:
        """Look up to and including a second. Return the lines."""
        found = {}
        while self.failing.now < self.began + second:
            self.failing.now += 1.0
            self._caplog.clear()
            self.log.look([each.state for each in self.failing.all.all])
            for line in self._caplog.messages:
                found[int(self.failing.now - self.began)] = line
        return found


@pytest.fixture
def looking(failing: Failing, caplog: pytest.LogCaptureFixture) -> Looking:
    return Looking(failing, caplog)


def test_an_outage_is_one_line_once_all_fail_then_one_a_minute_and_one_at_its_end(looking: Looking) -> None:
    for retry in looking.failing.all.all:  # one after the other, as their requests end
        retry.failed(ConnectionFailedError(f"GET /api/v1/{retry.state.plural} at https://10.96.0.1: refused"))
        assert looking.until(int(looking.failing.now - looking.began) + 1) == {}
    line = "all 4 resources fail: pods, nodes, namespaces, deviceclasses: https://10.96.0.1: refused"
    assert looking.until(150) == {7: line, 67: line, 127: line}
    for retry in looking.failing.all.all:
        retry.followed()
    assert looking.until(300) == {151: "all 4 resources are followed again"}


def test_a_failure_that_is_over_within_seconds_is_not_logged(looking: Looking) -> None:
    looking.failing.pods.failed(status(503))
    looking.until(3)
    looking.failing.pods.followed()
    assert looking.until(100) == {}


def test_a_line_has_the_missing_rule_and_which_resources_have_which_problem(looking: Looking) -> None:
    looking.failing.pods.failed(status(403))
    for retry in (looking.failing.nodes, looking.failing.namespaces):
        retry.failed(status(500))
    assert looking.until(10) == {
        4: f"3 of 4 resources fail: nodes, namespaces: 500 Reason: message; pods: 403 Reason: message; {RULE}"
    }
    looking.failing.nodes.followed()
    assert looking.until(20) == {
        14: f"2 of 4 resources fail: pods: 403 Reason: message; {RULE}; namespaces: 500 Reason: message"
    }


def test_of_many_problems_three_are_shown(looking: Looking) -> None:
    for code, retry in enumerate(looking.failing.all.all, 500):
        retry.failed(status(code))
    (line,) = looking.until(10).values()
    assert line.endswith("namespaces: 502 Reason: message; and 1 more (kindred status)")


def test_failures_that_come_and_go_are_logged_after_a_while(looking: Looking) -> None:
    looking.failing.nodes.failed(status(500))
    lines: dict[int, str] = {}
    for second in range(2, 40, 2):
        looking.failing.pods.failed(status(500)) if second % 4 else looking.failing.pods.followed()
        lines |= looking.until(second)
    assert [*lines][:1] == [16]


def test_for_want_of_memory_the_wait_is_no_shorter_than_it_says_and_what_a_sync_had_gathered_is_kept(
    failing: Failing,
) -> None:
    failing.state.listed = 7
    assert failing.record(MemoryPressureError("memory: short"), shortest=30.0) == 30.0
    assert failing.record(MemoryPressureError("memory: short"), shortest=0.5) == 2.0
    assert (failing.state.listed, failing.state.failures["MemoryPressure"]) == (7, 2)
    failing.record(ConnectionFailedError("refused"))
    assert failing.state.listed == 0


# Waits.


@pytest.mark.parametrize(
    ("jitter", "expected"),
    [
        pytest.param(0.0, [1.0, 2.0, 4.0, 5.0, 5.0], id="none"),
        pytest.param(1.0, [0.75, 1.5, 3.0, 3.75, 3.75], id="most"),
    ],
)
def test_the_wait_doubles_up_to_the_longest_less_up_to_a_quarter(jitter: float, expected: list[float]) -> None:
    failing = Failing(jitter)
    assert [failing.record(status(503)) for _ in expected] == expected


@pytest.mark.parametrize(("well", "expected"), [(4.9, 4.0), (5.0, 1.0)])
def test_waits_begin_anew_after_being_followed_for_as_long_as_the_longest_wait(
    failing: Failing, well: float, expected: float
) -> None:
    for _ in range(2):
        failing.record(status(503))
    failing.now += 100.0
    for _ in range(3):  # only the time from the first one on went well
        failing.pods.followed()
        failing.now += 1.0
    assert failing.record(status(503), well - 3.0) == expected


def test_a_resource_that_alone_fails_for_a_minute_waits_longer_until_it_is_followed(failing: Failing) -> None:
    assert [failing.record(status(403), 10.0) for _ in range(6)] == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    assert [failing.record(status(403), 10.0) for _ in range(4)] == [10.0, 20.0, 30.0, 30.0]
    failing.pods.followed()
    assert [failing.record(status(403), 10.0) for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]


def test_a_resource_that_fails_with_half_of_all_waits_no_longer_however_long_it_takes(failing: Failing) -> None:
    failing.nodes.failed(status(503))
    assert [failing.record(status(503), 100.0) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    failing.nodes.followed()
    assert failing.record(status(503)) == 10.0
    failing.nodes.failed(status(503))
    assert failing.record(status(503)) == 5.0


def test_a_fault_of_ours_waits_longer_at_once(failing: Failing) -> None:
    assert [failing.record(KeyError("bug")) for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]


def test_retries_take_turns_whatever_they_have_waited() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        retries = Retries(no_client(), Timing(clock=loop.time))
        began = loop.time()

        async def tried_at(seconds: float) -> float:
            await retries.wait(seconds)
            return loop.time() - began

        return await asyncio.gather(*map(tried_at, (0.0, 1.0, 1.01, 1.02, 3.0)))

    assert run_in_virtual_time(main()) == pytest.approx([0.0, 1.0, 1.07, 1.14, 3.0], abs=0.005)


# What the failures of others say.


@pytest.mark.parametrize(
    ("fail", "expected"),
    [
        pytest.param(lambda _: None, True, id="no-other"),
        pytest.param(lambda each: each.nodes.failed(status(503)), True, id="one-other"),
        pytest.param(lambda each: (each.nodes.failed(status(503)), each.pods.failed(status(500))), False, id="two"),
        pytest.param(lambda each: (each.nodes.failed(status(403)), each.pods.failed(status(403))), True, id="rules"),
        pytest.param(
            lambda each: (each.nodes.failed(status(503)), each.pods.failed(MemoryPressureError("memory: short"))),
            True,
            id="memory",
        ),
        pytest.param(
            lambda each: (each.nodes.failed(status(503)), each.pods.failed(KeyError("bug"))), True, id="internal"
        ),
        pytest.param(
            lambda each: (each.nodes.failed(status(503)), each.pods.failed(status(503)), each.pods.followed()),
            True,
            id="followed-again",
        ),
    ],
)
def test_a_404_is_absence_unless_several_resources_fail_for_what_may_be_the_servers_fault(
    failing: Failing, fail: Callable[[Failing], object], *, expected: bool
) -> None:
    fail(failing)
    assert failing.classes.is_absence(status(404)) == expected
    assert not failing.classes.is_absence(status(503))
    assert not failing.namespaces.is_absence(status(404))  # every server has them


def test_resources_that_fail_for_long_while_most_do_not_say_nothing_of_the_server() -> None:
    failing = Failing()
    for kind in (PersistentVolume, Service):
        Retry(ResourceState(RESOURCES[kind]), failing.all, lambda: None)
    for each in (failing.nodes, failing.pods):
        each.failed(status(500))
    assert not failing.classes.is_absence(status(404))
    failing.now += 60.0
    assert failing.classes.is_absence(status(404))


# Stuck requests.


class Probed:
    """Three resources of a server without a network, in virtual time."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.server = SimulatedServer(random.Random(1))  # noqa: S311 - to be the same each time
        self.retries = Retries(self.server, Timing(clock=loop.time))
        self.interrupted: list[str] = []
        self.nodes, self.pods, self.namespaces = self._join(Node), self._join(Pod), self._join(Namespace)

    def _join(self, kind: Kind) -> Retry:
        state = ResourceState(RESOURCES[kind])
        return Retry(state, self.retries, lambda: self.interrupted.append(state.plural))

    async def pass_by(self, failing: int, *, silent: bool = True) -> None:
        """Let requests be stuck for 4 s while so many resources fail and packets are lost, if so, and 1 s more."""
        for each in (self.nodes, self.pods)[:failing]:
            each.failed(ConnectionFailedError("timed out"))
        self.pods.begin()
        self.namespaces.begin()
        probing = asyncio.create_task(self.retries.probe())
        self.server.is_silent = silent
        await asyncio.sleep(4.0)
        self.server.is_silent = False
        self.nodes.begin()  # not stuck
        await asyncio.sleep(0.95)
        probing.cancel()


@pytest.mark.parametrize(
    ("silent", "failing", "rejection", "expected"),
    [
        pytest.param(True, 2, None, ["pods", "namespaces"], id="network-is-back"),
        pytest.param(True, 2, status(403), ["pods", "namespaces"], id="a-refusal-is-a-response"),
        pytest.param(True, 2, ConnectionFailedError("refused"), [], id="no-server"),
        pytest.param(True, 1, None, [], id="one-resource-alone"),
        pytest.param(False, 2, None, [], id="slow-server"),
    ],
)
def test_stuck_requests_are_made_again_when_the_network_is_back(
    failing: int, rejection: ApiError | None, expected: list[str], *, silent: bool
) -> None:
    async def main() -> list[str]:
        probed = Probed()
        probed.server.rejection = lambda _: rejection
        await probed.pass_by(failing, silent=silent)
        return probed.interrupted

    assert run_in_virtual_time(main()) == expected


@pytest.mark.parametrize(("responded", "expected"), [(False, 1), (True, 2)])
def test_a_stuck_request_is_made_again_once_until_there_is_a_response(*, responded: bool, expected: int) -> None:
    async def main() -> int:
        probed = Probed()
        await probed.pass_by(2)
        if responded:
            probed.pods.succeeded()
        await probed.pass_by(2)
        return probed.interrupted.count("namespaces" if not responded else "pods")

    assert run_in_virtual_time(main()) == expected
