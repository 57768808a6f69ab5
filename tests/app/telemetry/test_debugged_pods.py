"""Pods whose questions are logged in full, for a while."""

import json
import logging

import pytest

from app.line_rate import LIMIT, LineLimit
from app.logs import JsonLines
from app.telemetry.debugged_pods import MAX_PODS, DebuggedPods, TooManyPodsError
from app.verbs.observation import Asked, Observation, VerbOutcome
from tests.app.telemetry.passing_time import Clock

ANSWER = {
    "NodeNames": ["n4"],
    "FailedNodes": {"n1": "Too many pods", "n2": "Too many pods"},
    "FailedAndUnresolvableNodes": {"n3": "node(s) had untolerated taint"},
    "Error": "",
}
ABOUT_WEB = Observation(
    "filter",
    VerbOutcome.FIT,
    0.0004,
    0.0,
    16,
    300,
    Asked("shop/web", "u-1", 4, 1),
    "",
    "",
    "",
    request=b'{"Pod":{"a":"b"}}',
    response=json.dumps(ANSWER).encode(),
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pods(clock: Clock) -> DebuggedPods:
    return DebuggedPods(clock)


def line(record: logging.LogRecord) -> dict[str, object]:
    told: dict[str, object] = json.loads(JsonLines().format(record))
    return told


def test_only_a_pod_that_is_debugged_has_lines_and_only_until_its_time_is_over(
    pods: DebuggedPods, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    pods(ABOUT_WEB)
    pods.begin("shop/web", 600)
    pods(ABOUT_WEB._replace(asked=Asked("shop/other", "u-2")))
    assert caplog.records == []
    pods(ABOUT_WEB)
    clock.pass_by(599)
    pods(ABOUT_WEB)
    assert len(caplog.records) == 2
    clock.pass_by(1)
    pods(ABOUT_WEB)
    assert len(caplog.records) == 2
    assert pods.left() == {}


def test_the_lines_are_of_level_debug_and_written_whatever_the_level_of_the_log_is(
    pods: DebuggedPods, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger().setLevel(logging.ERROR)
    pods.begin("shop/web", 1)
    pods(ABOUT_WEB)
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.DEBUG, "kindred.debug_pod")


def test_a_line_has_the_reasons_the_error_and_both_bodies(pods: DebuggedPods, caplog: pytest.LogCaptureFixture) -> None:
    pods.begin("shop/web", 1)
    pods(ABOUT_WEB._replace(outcome=VerbOutcome.DOUBTED, error="node n1: the watch may be late"))
    told = line(caplog.records[0])
    assert told["pod"] == "shop/web"
    assert told["error"] == "node n1: the watch may be late"
    assert told["failed"] == {"Too many pods": 2}
    assert told["unresolvable"] == {"node(s) had untolerated taint": 1}
    assert told["request"] == '{"Pod":{"a":"b"}}'
    assert told["response"] == json.dumps(ANSWER)


def test_of_scores_the_highest_are_told(pods: DebuggedPods, caplog: pytest.LogCaptureFixture) -> None:
    scores = [{"Host": f"n{number}", "Score": number % 50} for number in range(60)]
    pods.begin("shop/web", 1)
    pods(ABOUT_WEB._replace(verb="prioritize", response=json.dumps(scores).encode()))
    highest = line(caplog.records[0])["highest_scores"]
    assert isinstance(highest, dict)
    assert len(highest) == 20
    assert highest["n49"] == 49
    assert "n0" not in highest


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind", "preempt"])
@pytest.mark.parametrize("response", [b"", b"{}", b'{"Error":"no"}', b"[]", b"nonsense"])
def test_an_answer_that_has_nothing_to_sum_up_is_told_as_it_is(
    verb: str, response: bytes, pods: DebuggedPods, caplog: pytest.LogCaptureFixture
) -> None:
    pods.begin("shop/web", 1)
    pods(ABOUT_WEB._replace(verb=verb, response=response))
    assert line(caplog.records[0])["response"] == response.decode()


def test_long_bodies_are_cut(pods: DebuggedPods, caplog: pytest.LogCaptureFixture) -> None:
    pods.begin("shop/web", 1)
    pods(ABOUT_WEB._replace(request=bytearray(b"x" * 10_000), response=b" " * 5_000_000))
    told = line(caplog.records[0])
    assert told["request"] == "x" * 8192 + "... (10000 bytes)"
    assert str(told["response"]).endswith("... (5000000 bytes)")


def test_each_pod_has_its_own_limit_and_a_line_that_is_left_out_costs_little(
    pods: DebuggedPods, caplog: pytest.LogCaptureFixture
) -> None:
    pods.begin("shop/web", 60)
    pods(ABOUT_WEB)
    record = vars(caplog.records[0])
    assert (record[LIMIT], record["pod"]) == (LineLimit(("pod",)), "shop/web")
    assert not {"request", "response"} & record.keys()


def test_there_are_so_many_pods_at_once_and_no_more(pods: DebuggedPods, clock: Clock) -> None:
    for number in range(MAX_PODS):
        pods.begin(f"shop/web-{number}", 60)
    with pytest.raises(TooManyPodsError, match="100 pods are logged already"):
        pods.begin("shop/one-more", 60)
    pods.begin("shop/web-0", 120)
    assert pods.left()["shop/web-0"] == 120
    clock.pass_by(61)
    pods.begin("shop/one-more", 60)
    assert pods.left() == {"shop/web-0": pytest.approx(59), "shop/one-more": pytest.approx(60)}


def test_a_pod_can_be_taken_back(pods: DebuggedPods, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    pods.begin("shop/web", 60)
    assert pods.end("shop/web")
    assert not pods.end("shop/web")
    pods(ABOUT_WEB)
    assert caplog.records == []
    pods.begin("shop/web", 60)
    clock.pass_by(61)
    assert not pods.end("shop/web")
