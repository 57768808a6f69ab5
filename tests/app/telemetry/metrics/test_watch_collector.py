"""What list+watch has come to, as metrics."""

import pytest

from app.objects.resources import RESOURCES
from app.telemetry.metrics.watch_collector import WatchCollector
from app.watch.freshness import OF_A_DUMP, Freshness, ResourceState
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.telemetry.metrics.scraped import collected

NOW = 1000.0
UNIX_NOW = 1_700_000_000.0
STALE_AFTER = 180.0


def followed() -> ResourceState:
    """Return the pods as they are after a while."""
    state = ResourceState(RESOURCES[Pod])
    state.synced = True
    state.followed_at = NOW - 2.5
    state.last_event_at = NOW - 7.0
    state.requests.update({"watch": 3, "list": 2})
    state.relists.update({"expired": 1})
    state.events.update({"ADDED": 5, "BOOKMARK": 6})
    state.failures.update({"in-stream 500": 1, "ConnectionFailed": 4})
    state.decode_errors = 8
    state.decode_seconds = 0.125
    state.objects, state.read_objects, state.read_bytes = 3, 10, 5000
    return state


def collector_of(*states: ResourceState) -> WatchCollector:
    def clock() -> float:
        return NOW

    return WatchCollector(Freshness(states, STALE_AFTER, clock), clock, lambda: UNIX_NOW)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("synced", {("pods",): 1}, id="synced"),
        pytest.param("last_byte_timestamp_seconds", {("pods",): UNIX_NOW - 2.5}, id="time-of-the-last-byte"),
        pytest.param("last_event_timestamp_seconds", {("pods",): UNIX_NOW - 7}, id="time-of-the-last-event"),
        pytest.param("requests_total", {("pods", "watch"): 3, ("pods", "list"): 2}, id="requests"),
        pytest.param("relists_total", {("expired", "pods"): 1}, id="relists"),
        pytest.param("events_total", {("pods", "ADDED"): 5, ("pods", "BOOKMARK"): 6}, id="events"),
        pytest.param("failures_total", {("ConnectionFailed", "pods"): 4, ("in-stream 500", "pods"): 1}, id="failures"),
        pytest.param("wire_bytes", {("pods",): 1500}, id="size-on-the-wire"),
        pytest.param("decode_errors_total", {("pods",): 8}, id="decode-errors"),
        pytest.param("decode_seconds_total", {("pods",): 0.125}, id="decode-seconds"),
    ],
)
def test_each_resource_tells_what_it_has_come_to(name: str, expected: dict[tuple[str, ...], float]) -> None:
    assert collected(collector_of(followed()))[f"kindred_watch_{name}"] == expected


def test_a_resource_that_was_never_synced_has_no_times() -> None:
    values = collected(collector_of(followed(), ResourceState(RESOURCES[Node])))
    assert values["kindred_watch_synced"] == {("pods",): 1, ("nodes",): 0}
    assert values["kindred_watch_last_byte_timestamp_seconds"].keys() == {("pods",)}
    assert values["kindred_watch_last_event_timestamp_seconds"].keys() == {("pods",)}


def test_known_objects_are_counted_when_they_are_asked_for() -> None:
    known: dict[str, list[str]] = {"pods": ["a"]}
    collector = WatchCollector(Freshness([followed()], STALE_AFTER, lambda: NOW), lambda: NOW, lambda: UNIX_NOW, known)
    known["pods"].append("b")
    assert collected(collector)["kindred_watch_known_objects"] == {("pods",): 2}


def test_ready_is_what_the_freshness_says_now() -> None:
    assert collected(collector_of(followed()))["kindred_ready"] == {(): 1}
    stale = followed()
    stale.followed_at = NOW - STALE_AFTER - 1
    assert collected(collector_of(stale))["kindred_ready"] == {(): 0}
    assert collected(collector_of(followed(), ResourceState(RESOURCES[Node])))["kindred_ready"] == {(): 0}


def test_a_dump_is_ready_and_tells_of_no_resource() -> None:
    assert collected(WatchCollector(OF_A_DUMP, lambda: NOW, lambda: UNIX_NOW)) == {"kindred_ready": {(): 1}}
