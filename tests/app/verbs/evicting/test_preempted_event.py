"""The Event of a preemption is the one that kube-scheduler writes, and one that the API server takes."""

from datetime import UTC, datetime
from typing import Any

from app.verbs.executor import preempted_event
from core.objects.pod import Pod

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
PREEMPTOR = Pod("u-p", "theirs", "p", scheduler_name="mine")


def event_of(victim: Pod, host: str = "host") -> dict[str, Any]:
    return preempted_event(victim, PREEMPTOR, "n1", host=host, now=NOW)


def test_it_regards_the_victim_and_is_related_to_the_preemptor() -> None:
    assert event_of(Pod("u-v", "ours", "v")) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "v.1886caf21ca08a70", "namespace": "ours"},
        "eventTime": "2026-01-02T03:04:05.000678Z",
        "reportingController": "mine",
        "reportingInstance": "mine-host",
        "action": "Preempting",
        "reason": "Preempted",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "ours", "name": "v", "uid": "u-v"},
        "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "theirs", "name": "p", "uid": "u-p"},
        "note": "Preempted by pod u-p on node n1",
        "type": "Normal",
    }


def test_a_name_that_would_be_too_long_is_a_random_one() -> None:
    long = Pod("u-v", "ours", "v" * 253)
    names = {event_of(long)["metadata"]["name"] for _ in range(2)}
    assert len(names) == 2
    assert all(len(name) == 36 for name in names)


def test_the_instance_is_as_long_as_the_api_server_allows() -> None:
    assert event_of(Pod("u-v", "ours", "v"), "h" * 200)["reportingInstance"] == "mine-" + "h" * 123
