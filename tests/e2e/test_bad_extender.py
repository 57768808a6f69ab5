"""What kube-scheduler does when its extender misbehaves, and that all pods recover (docs/architecture.md, Errors).

Between the scheduler and Kindred stands a relay that goes wrong for one verb and one pod at a time, by the pod's name.
All pods repel each other, so that a mistake would be seen in where they stand.
"""

import re
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
import pytest

from tests.e2e.api import Manifest, condition_of
from tests.e2e.cluster import NAMESPACE, Cluster
from tests.e2e.kindred import BINDS, Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.relay import Fault, Relay, relay_to
from tests.e2e.scheduler import Scheduler, configuration, with_in_tree_filters
from tests.e2e.shapes import apart, pod

NODES: Final = 30
SHORT: Final = 3.0  # seconds, in which a busy machine responds, too
BACKOFF: Final = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}  # by default 1 to 10 s
GROUP: Final = {"group": "one-a-node"}

FAILED: Final = "SchedulerError"
UNSCHEDULABLE: Final = "Unschedulable"
SCORE_IGNORED: Final = "Failed to run extender's priority function. No score given by this extender."
SKIPPED: Final = "Skipping extender as it returned error and has ignorable flag set"

TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
BROKEN: Final[Mapping[str, tuple[Fault, str]]] = {
    # Each with what the scheduler says of it, whatever it has asked.
    "late": (Fault(seconds=SHORT + 0.5, body=b""), TIMED_OUT),
    "http-500": (Fault(status=HTTPStatus.INTERNAL_SERVER_ERROR, body=b""), ", code 500"),
    "garbage": (Fault(body=b"<html>"), "invalid character '<' looking for beginning of value"),
    "empty": (Fault(body=b""), "EOF"),
    "cut": (Fault(body=b"", cut=True), "EOF"),
}
ERROR: Final = (Fault(body=b'{"Error":"out of order"}'), "out of order")
NO_NODES: Final = Fault(body=b'{"NodeNames":[],"FailedNodes":{},"Error":""}')

FILTER: Final[Mapping[str, tuple[Fault, str]]] = {
    **BROKEN,
    "error": ERROR,
    "unknown-node": (
        Fault(body=b'{"NodeNames":["no-such-node"],"FailedNodes":{},"Error":""}'),
        'claims a filtered node "no-such-node" which is not found in the input node list',
    ),
}
PRIORITIZE: Final[Mapping[str, tuple[Fault, str]]] = {
    **BROKEN,
    "error": (ERROR[0], "cannot unmarshal object into Go value of type v1.HostPriorityList"),
    # These two are not even noticed: see prioritizeNodes in schedule_one.go.
    "unknown-node": (Fault(body=b'[{"Host":"no-such-node","Score":20}]'), ""),
    "no-nodes": (Fault(body=b"[]"), ""),
}
BIND: Final[Mapping[str, tuple[Fault, str]]] = {**BROKEN, "error": ERROR}
LOST: Final = "bind-lost"
UNTRUE: Final = "bind-untrue"
IN_NEITHER: Final = "filter-in-neither"
OTHERS: Final = {
    LOST: Fault(cut=True),  # bound, and the scheduler is not told
    UNTRUE: Fault(body=b'{"Error":""}'),  # not bound, and the scheduler is told that it is
    IN_NEITHER: NO_NODES,
}
FAULTS: Final = {
    **{
        f"{verb}-{name}": fault
        for verb, faults in {"filter": FILTER, "prioritize": PRIORITIZE, "bind": BIND}.items()
        for name, (fault, _) in faults.items()
    },
    **OTHERS,
}


class Seen(msgspec.Struct, frozen=True):
    """What was seen while the extender misbehaved, and after."""

    conditions: Mapping[str, Mapping[str, str]]
    """Pod -> its condition PodScheduled, from when its verb went wrong."""
    bound: set[str]
    """What was bound by then."""
    log: str
    recovered: set[str]
    """What was bound in the end, by the same scheduler."""
    violations: list[str]


def cases(faults: Mapping[str, tuple[Fault, str]]) -> list[object]:
    """Return the name of each fault and what the scheduler says of it."""
    return [pytest.param(name, message, id=name) for name, (_, message) in faults.items()]


def repelling(name: str) -> Manifest:
    return pod(name, GROUP, affinity=apart(GROUP))


def misbehave(relay: Relay, faults: Mapping[str, Fault]) -> None:
    """Let the relay go wrong for pods; their names begin with the verb."""
    relay.faults = {(name.partition("-")[0], name): fault for name, fault in faults.items()}


def conditions(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return the condition PodScheduled of each pod that has it."""
    return {each["metadata"]["name"]: found for each in cluster.pods() if (found := condition_of(each))}


def wait_for(cluster: Cluster, *, placed: Iterable[str] = (), failed: Iterable[str] = ()) -> None:
    """Wait until pods are bound, and others were tried without success."""

    def all_seen() -> bool:
        tried = {name for name, condition in conditions(cluster).items() if condition["status"] == "False"}
        return cluster.bound_names() >= set(placed) and tried >= set(failed)

    wait_until(all_seen, PATIENCE, f"{placed} bound, {failed} tried")


def scheduler_of(cluster: Cluster, registered: Mapping[str, Any], seconds: float | None = SHORT) -> Scheduler:
    """Start a scheduler that does not wait long: for an answer (None: as long as it says), or with another attempt."""
    config: dict[str, Any] = {**registered, **BACKOFF}
    if seconds is not None:
        config["extenders"][0]["httpTimeout"] = f"{seconds:g}s"
    return cluster.start_scheduler(config, verbosity=5)  # from 5 on it tells of scores that are missing


def start_kindred(cluster: Cluster) -> Kindred:
    cluster.add_nodes(NODES)
    return cluster.start_kindred(BINDS)


@pytest.fixture(scope="module")
def seen(cluster: Cluster) -> Seen:
    """Let everything go wrong at once in full offload, then nothing any more."""
    kindred = start_kindred(cluster)
    with relay_to(kindred.url) as relay:
        misbehave(relay, FAULTS)
        scheduler = scheduler_of(cluster, configuration("full-offload", relay.url))
        cluster.create_pods(repelling(name) for name in FAULTS)
        scored = {name for name in FAULTS if name.startswith("prioritize-")}
        stuck = FAULTS.keys() - scored - OTHERS.keys()
        wait_for(cluster, placed={*scored, LOST}, failed={*stuck, IN_NEITHER})
        verbs = {name: name.partition("-")[0] for name in stuck}
        wait_until(
            lambda: all(relay.calls_for(verb, name) > 1 for name, verb in verbs.items()), PATIENCE, "all tried again"
        )
        before, bound_before = conditions(cluster), cluster.bound_names()
        relay.faults = {}
        wait_for(cluster, placed=FAULTS.keys() - {UNTRUE})
        recovered = cluster.bound_names()
        scheduler.end()
        cluster.start_scheduler(configuration("full-offload", kindred.url))
        cluster.wait_bound(len(FAULTS))
        return Seen(before, bound_before, scheduler.log(), recovered, cluster.violations())


def test_all_pods_recover_and_no_rule_is_broken(seen: Seen) -> None:
    assert seen.recovered >= FAULTS.keys() - {UNTRUE}
    assert seen.violations == []


@pytest.mark.parametrize(("name", "message"), cases(FILTER))
def test_an_error_of_filter_fails_the_attempt(seen: Seen, name: str, message: str) -> None:
    condition = seen.conditions[f"filter-{name}"]
    assert condition["reason"] == FAILED
    assert message in condition["message"]
    assert f"filter-{name}" not in seen.bound


def test_nodes_in_neither_list_of_filter_are_gone_without_a_reason(seen: Seen) -> None:
    condition = seen.conditions[IN_NEITHER]
    assert condition["reason"] == UNSCHEDULABLE
    assert condition["message"].startswith(f"0/{NODES} nodes are available: ")
    assert "node(s)" not in condition["message"]
    # Nor are victims looked for there.
    assert f"{NODES} Preemption is not helpful for scheduling" in condition["message"]


@pytest.mark.parametrize(("name", "message"), cases(PRIORITIZE))
def test_an_error_of_prioritize_costs_no_more_than_the_score(seen: Seen, name: str, message: str) -> None:
    assert f"prioritize-{name}" in seen.bound
    lines = re.findall(f'"{SCORE_IGNORED}" pod="{NAMESPACE}/prioritize-{name}" (.*)', seen.log)
    assert bool(lines) == bool(message)
    assert all(message in line for line in lines)


@pytest.mark.parametrize(("name", "message"), cases(BIND))
def test_an_error_of_bind_fails_the_binding(seen: Seen, name: str, message: str) -> None:
    condition = seen.conditions[f"bind-{name}"]
    assert condition["reason"] == FAILED
    assert message in condition["message"]
    assert f'"Failed to bind pod" pod="{NAMESPACE}/bind-{name}"' in seen.log
    assert f"bind-{name}" not in seen.bound


def test_a_binding_whose_answer_is_lost_is_found_out(seen: Seen) -> None:
    assert f'"Failed to bind pod" pod="{NAMESPACE}/{LOST}"' in seen.log
    assert LOST in seen.bound


def test_a_binding_that_was_not_done_is_believed_until_the_scheduler_is_started_again(seen: Seen) -> None:
    assert f'"Successfully bound pod to node" pod="{NAMESPACE}/{UNTRUE}"' in seen.log
    assert UNTRUE not in seen.recovered


def test_an_answer_after_five_seconds_is_too_late_and_the_pod_is_tried_again(cluster: Cluster) -> None:
    kindred = start_kindred(cluster)
    with relay_to(kindred.url) as relay:
        misbehave(relay, {"filter-late": Fault(seconds=6.0)})
        scheduler_of(cluster, configuration("full-offload", relay.url), None)
        began = time.monotonic()
        cluster.create_pods([repelling("filter-late")])
        wait_until(lambda: "filter-late" in conditions(cluster), PATIENCE, "too late")
        seconds = time.monotonic() - began
        relay.faults = {}
        cluster.create_pods([repelling("another")])
        wait_for(cluster, placed={"filter-late", "another"})
        assert seconds >= 5.0
        assert cluster.violations() == []


def test_an_error_of_filter_is_skipped_where_the_extender_is_ignorable(cluster: Cluster) -> None:
    kindred = start_kindred(cluster)
    faults = {f"filter-{name}": fault for name, (fault, _) in FILTER.items()}
    with relay_to(kindred.url) as relay:
        misbehave(relay, {**faults, IN_NEITHER: NO_NODES})
        scheduler = scheduler_of(cluster, with_in_tree_filters(relay.url, ignorable=True), None)
        cluster.create_pods(repelling(name) for name in (*faults, IN_NEITHER))
        wait_for(cluster, placed=faults, failed={IN_NEITHER})
        skipped = set(re.findall(f'"{SKIPPED}" pod="{NAMESPACE}/(.*?)"', scheduler.log()))
        assert skipped >= set(faults)
        assert IN_NEITHER not in cluster.bound_names()  # an answer in time is obeyed, right or wrong
        relay.faults = {}
        # It is tried again at any event of the cluster.
        cluster.create_pods([repelling("another")])
        wait_for(cluster, placed={IN_NEITHER, "another"})
        assert cluster.violations() == []
