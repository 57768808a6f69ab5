"""What a failed request costs."""

import logging

import pytest

from app.api_server.client import ConnectionFailedError, ReadTimeoutError, StatusError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES
from app.watch.backoff import Backoff
from app.watch.failures import Failures, status_of
from app.watch.freshness import ResourceState
from app.watch.memory_watch import MemoryPressureError
from app.watch.retries import Retries
from app.watch.retry_plan import Wait
from app.watch.timing import Timing
from app.watch.watch_stream import BrokenWatchError, GarbledWatchError, InStreamError
from core.objects.node import Node
from core.objects.pod import Pod

RULE = 'the RBAC rule that is missing: apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'


class Failing:
    """The failures of pods, with a clock that the test sets and waits of 1, 2, 4 ... s. Nodes are another resource."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.state = ResourceState(RESOURCES[Pod])
        retries = Retries(Timing(clock=lambda: self.now, random=lambda: 0.0))
        self.nodes = retries.join(ResourceState(RESOURCES[Node]), lambda: None)
        pods = retries.join(self.state, lambda: None)
        self.failures = Failures(self.state, Backoff(1.0, 60.0, lambda: 0.0), pods, lambda: self.now)

    def wait(self, error: Exception, after: float = 1.0, shortest: float = 0.0) -> Wait:
        """Let a request fail some seconds after the last one; return the wait, from then on."""
        self.now += after
        wait = self.failures.record(error, shortest)
        return Wait(wait.until - self.now, wait.earliest - self.now, wait.is_ours)

    def record(self, error: Exception, after: float = 1.0, shortest: float = 0.0) -> float:
        """Let a request fail some seconds after the last one; return how long it is to wait."""
        return self.wait(error, after, shortest).until


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
        pytest.param(ReadTimeoutError("silence"), "ReadTimeout", "silence", id="read-timeout"),
        pytest.param(BrokenWatchError("ended"), "BrokenWatch", "ended", id="broken"),
        pytest.param(GarbledWatchError("a\nb"), "GarbledWatch", "a\\nb", id="garbled"),
        pytest.param(KeyError(), "Key", "KeyError", id="without-words"),
    ],
)
def test_a_failure_is_counted_by_its_kind_and_told(
    failing: Failing, error: Exception, kind: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    failing.record(error)
    assert failing.state.failures == {kind: 1}
    assert failing.state.problem == problem
    assert caplog.messages == [f"pods: {problem}; next attempt within 1.0 s"]
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(status(503), 1.0, id="backoff"),
        pytest.param(status(429, 7.0), 7.0, id="retry-after"),
        pytest.param(InStreamError(status(429, 7.0)), 7.0, id="retry-after-in-stream"),
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
def test_a_refusal_for_lack_of_a_rule_names_it_until_another_failure(
    failing: Failing, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    failing.record(error)
    assert failing.state.forbidden
    assert caplog.messages == [f"pods: 403 Reason: message; {RULE}; next attempt within 1.0 s"]
    failing.record(status(401))
    assert not failing.state.forbidden


def test_being_followed_ends_the_problem_and_is_told_once(failing: Failing, caplog: pytest.LogCaptureFixture) -> None:
    failing.failures.over()
    assert caplog.messages == []
    failing.record(status(403))
    with caplog.at_level(logging.INFO):
        caplog.clear()
        for _ in range(3):
            failing.failures.over()
    assert (failing.state.problem, failing.state.forbidden) == ("", False)
    assert caplog.messages == ["pods: following again"]
    assert failing.state.failures == {"403": 1}


def test_the_same_problem_is_told_once_a_minute_and_another_one_at_once(
    failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    for error, after, told in (
        (status(503), 1.0, True),
        (status(503), 30.0, False),
        (status(503), 29.0, False),
        (status(500), 0.5, True),
        (status(503), 0.5, True),
        (status(503), 59.9, False),
        (status(503), 0.1, True),
    ):
        caplog.clear()
        failing.record(error, after)
        assert len(caplog.messages) == (1 if told else 0)


def test_a_problem_that_comes_again_after_being_followed_is_told_again(
    failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        caplog.clear()
        failing.record(status(503))
        assert len(caplog.messages) == 1
        failing.failures.over()


def test_waits_grow_again_from_the_first_after_being_followed_for_as_long_as_the_longest_wait(failing: Failing) -> None:
    assert [failing.record(status(403), 100.0) for _ in range(4)] == [1.0, 2.0, 4.0, 8.0]
    failing.now += 100.0
    for _ in range(3):  # only the time from the first one on went well
        failing.failures.over()
        failing.now += 2.0
    assert failing.record(status(503), 0.0) == 10.0  # of 16
    failing.failures.over()
    assert failing.record(status(503), 60.0) == 1.0
    assert failing.record(status(503), 60.0) == 2.0


@pytest.mark.parametrize(
    ("error", "earliest"),
    [
        pytest.param(status(503), 1.0, id="the-first-wait"),
        pytest.param(status(429, 7.0), 7.0, id="retry-after"),
        pytest.param(status(429, 86400.0), 300.0, id="retry-after-that-is-too-much"),
    ],
)
def test_the_success_of_others_shortens_the_wait_to_the_first_one_or_to_retry_after(
    failing: Failing, error: Exception, earliest: float
) -> None:
    for _ in range(3):
        failing.record(status(503))
    assert failing.wait(error) == Wait(max(8.0, earliest), earliest)


@pytest.mark.parametrize(
    ("error", "is_ours"),
    [
        pytest.param(ConnectionFailedError("refused"), False, id="connection"),
        pytest.param(status(403), False, id="status"),
        pytest.param(BrokenWatchError("ended"), False, id="watch"),
        pytest.param(DecodeError("", "no JSON"), False, id="answer"),
        pytest.param(CredentialsError("no token"), False, id="credentials"),
        pytest.param(MemoryPressureError("memory: short"), True, id="memory"),
        pytest.param(KeyError("bug"), True, id="internal"),
    ],
)
def test_want_of_memory_and_faults_of_ours_are_not_held_against_the_server(
    failing: Failing, error: Exception, *, is_ours: bool
) -> None:
    failing.nodes.failed()
    assert failing.wait(error).is_ours == is_ours
    assert failing.nodes.is_server_unwell != is_ours


def test_failures_of_an_unwell_server_do_not_lengthen_the_wait(
    failing: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    assert [failing.record(status(503)) for _ in range(2)] == [1.0, 2.0]
    failing.nodes.failed()
    caplog.clear()
    assert [failing.record(status(500)) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert caplog.messages == ["pods: 500 Reason: message; next attempt in turn with other resources"]
    failing.nodes.followed()
    assert failing.record(status(503)) == 4.0


def test_waits_begin_anew_when_the_resource_is_followed_after_the_server_was_unwell(failing: Failing) -> None:
    for _ in range(3):
        failing.record(status(503))
    failing.nodes.failed()
    failing.record(status(503))
    failing.nodes.followed()
    failing.failures.over()
    assert failing.record(status(503), after=0.0) == 1.0


def test_the_status_is_that_of_the_response_or_of_the_error_event() -> None:
    found = status(410)
    assert status_of(found) is found
    assert status_of(InStreamError(found)) is found
    assert status_of(ConnectionFailedError("refused")) is None
    assert status_of(BrokenWatchError("ended")) is None


def test_the_wait_is_no_shorter_than_the_kind_of_failure_wants_it(failing: Failing) -> None:
    assert failing.record(MemoryPressureError("memory: short"), shortest=30.0) == 30.0
    assert failing.record(MemoryPressureError("memory: short"), shortest=0.5) == 2.0


def test_what_a_sync_had_gathered_is_kept_only_where_there_was_no_memory_for_it(failing: Failing) -> None:
    failing.state.listed = 7
    failing.record(MemoryPressureError("memory: short"))
    assert (failing.state.listed, failing.state.failures["MemoryPressure"]) == (7, 1)
    failing.record(ConnectionFailedError("refused"))
    assert failing.state.listed == 0
