"""Preemption: the right victims go, budgets are respected, and the pod that they made room for lands there.

There is no kubelet: a pod that is deleted with a grace period of 0 is gone at once, and others wait for the test.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.kindred import BINDS, Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import IN_TREE, Scheduler, configuration
from tests.e2e.shapes import apart, node, on, pod
from tests.throughput.modes import LISTED_NODES, MODES
from tests.throughput.results import ANY_NODE

PRIORITIES: Final = {"lowest": 1, "low": 5, "middle": 10, "high": 1000}
REPELLED: Final = {"app": "repelled"}
RETAINED: Final = {**REPELLED, "keep": "yes"}
AFFINITY: Final = apart(REPELLED)
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/e2e/events"
BUDGETS: Final = "/apis/policy/v1/namespaces/e2e/poddisruptionbudgets"


@pytest.fixture(scope="module", autouse=True)
def _rules(cluster: Cluster) -> None:
    """Make the priority classes, and the budget of the pods that must stay."""
    for name, value in PRIORITIES.items():
        cluster.api.create_priority({"metadata": {"name": name}, "value": value})
    patient = {"metadata": {"name": "patient"}, "value": PRIORITIES["high"], "preemptionPolicy": "Never"}
    cluster.api.create_priority(patient)
    protect(cluster, RETAINED)


def standing(name: str, index: int, priority: str, labels: Mapping[str, str] = REPELLED, cpu: str = "1") -> Manifest:
    """Return a pod of a priority on the node of an index."""
    return on(pod(name, labels, cpu=cpu, priorityClassName=priority), f"node-{index:04}")


def preemptor(cpu: str = "1") -> Manifest:
    """Return a pod of high priority that is repelled by all of the above."""
    return pod("preemptor", affinity=AFFINITY, cpu=cpu, priorityClassName="high")


def node_of(cluster: Cluster, name: str) -> str | None:
    """Return the node of a pod."""
    found: str | None = cluster.api.get(f"{PODS}/{name}")["spec"].get("nodeName")
    return found


def survivors(cluster: Cluster) -> list[str]:
    """Return the names of the pods that nobody has deleted."""
    return sorted(item["metadata"]["name"] for item in cluster.pods() if "deletionTimestamp" not in item["metadata"])


def protect(cluster: Cluster, labels: Mapping[str, str]) -> None:
    """Make a budget that allows no disruption; without its controller, its status is written here."""
    budget = {"metadata": {"name": "keep"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": dict(labels)}}}
    made = cluster.api.create(BUDGETS, budget)
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    cluster.api.patch(f"{BUDGETS}/keep/status", {"status": status})


def make_room_by_priority(cluster: Cluster) -> Sequence[str]:
    """Fill four nodes so that the one of `low` is right: `lowest` is protected, and two have more important pods."""
    cluster.add_nodes(4)
    standing_pods = [
        standing("middle", 0, "middle"),
        standing("low", 1, "low"),
        standing("protected", 2, "lowest", RETAINED),
        standing("two-middle", 3, "low"),
        standing("two-low", 3, "middle"),
    ]
    cluster.create_pods(standing_pods)
    return [made["metadata"]["name"] for made in standing_pods]


def check_the_low_one_went(cluster: Cluster, before: Sequence[str]) -> None:
    wait_until(lambda: node_of(cluster, "preemptor") is not None, PATIENCE, "the preemptor has a node")
    assert node_of(cluster, "preemptor") == "node-0001"
    assert survivors(cluster) == sorted({*before, "preemptor"} - {"low"})
    assert cluster.violations() == []


def test_what_the_scheduler_does_by_itself(cluster: Cluster) -> None:
    """The in-tree plugin alone: what all others are held against."""
    before = make_room_by_priority(cluster)
    cluster.start_scheduler(configuration(IN_TREE, ""))
    cluster.create_pods([preemptor()])
    check_the_low_one_went(cluster, before)


def test_where_the_in_tree_filter_stays_it_finds_the_victims(cluster: Cluster) -> None:
    before = make_room_by_priority(cluster)
    kindred = cluster.start_kindred()
    cluster.start_scheduler(configuration("score-offload", kindred.url))
    cluster.create_pods([preemptor()])
    check_the_low_one_went(cluster, before)


def test_nobody_else_goes_when_kindred_learns_late_that_the_victim_went(cluster: Cluster) -> None:
    cluster.api.create(NODES, node(0, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}))
    cluster.api.create(NODES, node(1, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}))
    cluster.create_pods([standing("low", 0, "lowest", cpu="3"), standing("middle", 1, "middle", cpu="3")])
    proxy = cluster.start_proxy()
    kindred = cluster.start_kindred({**BINDS, "KINDRED_PREEMPT": "verb"}, server=proxy.url)
    cluster.start_scheduler(configuration("full-offload", kindred.url))
    proxy.delay = 1.0
    cluster.create_pods([preemptor(cpu="3")])
    wait_until(lambda: node_of(cluster, "preemptor") is not None, PATIENCE, "the preemptor has a node")
    assert survivors(cluster) == ["middle", "preemptor"]


def test_victims_of_a_shortage_are_completed_by_those_that_repel(cluster: Cluster) -> None:
    """The scheduler sees a lack of CPU, and would evict `big` alone; the pod that repels has to go, too."""
    cluster.api.create(NODES, node(0, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}))
    cluster.create_pods(
        [
            standing("big", 0, "lowest", {}, cpu="3"),
            standing("repels", 0, "low", cpu="100m"),
            standing("harmless", 0, "low", {}, cpu="100m"),
        ]
    )
    kindred = cluster.start_kindred({**BINDS, "KINDRED_PREEMPT": "verb"})
    cluster.start_scheduler(configuration("full-offload", kindred.url))
    cluster.create_pods([preemptor(cpu="3")])
    wait_until(lambda: node_of(cluster, "preemptor") is not None, PATIENCE, "the preemptor has a node")
    assert survivors(cluster) == ["harmless", "preemptor"]


def test_a_scheduler_that_finds_no_victim_anywhere_asks_nobody(cluster: Cluster) -> None:
    """What upstream does where an extender alone refuses all nodes (preemption.go, DryRunPreemption)."""
    before = make_room_by_priority(cluster)
    kindred = cluster.start_kindred({**BINDS, "KINDRED_PREEMPT": "verb"})
    scheduler = cluster.start_scheduler(configuration("full-offload", kindred.url), verbosity=5)
    cluster.create_pods([preemptor()])
    wait_until(
        lambda: "expected at least one victim pod on node" in scheduler.log(), PATIENCE, "the scheduler gives up"
    )
    assert survivors(cluster) == sorted([*before, "preemptor"])
    assert node_of(cluster, "preemptor") is None
    assert kindred.samples()['kindred_request_duration_seconds_count{verb="preempt"}'] == 0


def start_evicting(cluster: Cluster) -> Scheduler:
    """Start full offload with a Kindred that preempts by itself."""
    kindred = cluster.start_kindred({**BINDS, "KINDRED_PREEMPT": "evict"})
    return cluster.start_scheduler(configuration("full-offload", kindred.url))


def test_there_kindred_preempts_by_itself_as_the_scheduler_would(cluster: Cluster) -> None:
    before = make_room_by_priority(cluster)
    start_evicting(cluster)
    cluster.create_pods([preemptor()])
    check_the_low_one_went(cluster, before)


def test_nobody_else_goes_while_a_victim_takes_its_time(cluster: Cluster) -> None:
    cluster.add_nodes(2)
    slow = standing("slow", 0, "lowest")
    cluster.create_pods(
        [{**slow, "spec": {**slow["spec"], "terminationGracePeriodSeconds": 60}}, standing("other", 1, "low")]
    )
    scheduler = start_evicting(cluster)
    cluster.create_pods([preemptor()])
    wait_until(lambda: "slow" not in survivors(cluster), PATIENCE, "the victim terminates")
    wait_until(
        lambda: cluster.api.get(f"{PODS}/preemptor")["status"].get("nominatedNodeName") == "node-0000",
        PATIENCE,
        "the preemptor is nominated",
    )
    wait_for_an_attempt(cluster, scheduler, "event")
    assert survivors(cluster) == ["event", "other", "preemptor"]
    cluster.api.delete(f"{PODS}/slow")
    wait_until(lambda: node_of(cluster, "preemptor") == "node-0000", PATIENCE, "the preemptor has the victim's node")
    assert survivors(cluster) == ["event", "other", "preemptor"]


def test_a_pod_that_may_not_preempt_evicts_nobody(cluster: Cluster) -> None:
    before = make_room_by_priority(cluster)
    scheduler = start_evicting(cluster)
    patient = preemptor()
    cluster.create_pods([{**patient, "spec": {**patient["spec"], "priorityClassName": "patient"}}])
    wait_until(lambda: given_up(cluster, "preemptor"), PATIENCE, "the scheduler gives up")
    wait_for_an_attempt(cluster, scheduler, "event")
    assert survivors(cluster) == sorted([*before, "event", "preemptor"])


def given_up(cluster: Cluster, name: str) -> bool:
    """Whether the scheduler has said of a pod that it fits nowhere."""
    return cluster.condition(name).get("status") == "False"


# Where Kindred decides, nothing but Kindred filters.


def start_deciding(cluster: Cluster, mode: str) -> tuple[Kindred, Scheduler]:
    """Start a Kindred that decides and preempts, and a scheduler that asks it."""
    kindred = cluster.start_kindred({**MODES[mode].settings, "KINDRED_PREEMPT": "evict"})
    return kindred, cluster.start_scheduler(MODES[mode].config(kindred.url))


def large(name: str, priority: str) -> Manifest:
    """Return a pod that takes most of a node, for the scheduler that asks Kindred to decide."""
    return pod(name, cpu="3", priorityClassName=priority, schedulerName="kindred")


def nominated(cluster: Cluster, name: str) -> str | None:
    """Return the node that a pod is nominated for."""
    found: str | None = cluster.api.get(f"{PODS}/{name}")["status"].get("nominatedNodeName")
    return found


def attempts(scheduler: Scheduler, name: str) -> int:
    """Count the attempts after which the scheduler found no node for a pod."""
    return scheduler.log().count(f'"Unable to schedule pod; no fit; waiting" pod="e2e/{name}"')


@pytest.mark.parametrize("mode", [LISTED_NODES, ANY_NODE])
def test_where_kindred_decides_a_preemptor_keeps_the_room_of_its_victim(cluster: Cluster, mode: str) -> None:
    """The victim is slow, the preemptor is tried meanwhile, and a less important pod comes when the victim is gone."""
    for index in range(2):
        cluster.api.create(NODES, node(index, allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"}))
    slow = standing("slow", 0, "lowest", {}, cpu="3")
    slow["spec"]["terminationGracePeriodSeconds"] = 60
    cluster.create_pods([slow, standing("equal", 1, "high", {}, cpu="3")])
    kindred, scheduler = start_deciding(cluster, mode)
    cluster.create_pods([large("preemptor", "high")])
    wait_until(lambda: "slow" not in survivors(cluster), PATIENCE, "the victim terminates")
    wait_until(lambda: events_of(cluster, "slow") != [], PATIENCE, "the preemption is told in an event")
    check_the_event(cluster, mode)
    for number in range(3):
        wait_for_an_attempt(cluster, scheduler, f"event-{number}")
        assert nominated(cluster, "preemptor") == "node-0000"
    assert "is nominated for node-0000 again" not in kindred.program.log.read_text(), "the scheduler has kept it"
    cluster.create_pods([large("waiting", "low")])
    wait_until(lambda: given_up(cluster, "waiting"), PATIENCE, "the scheduler gives the less important pod up")
    cluster.api.delete(f"{PODS}/slow")
    cluster.create_pods([large("newcomer", "middle")])
    wait_until(lambda: node_of(cluster, "preemptor") is not None, PATIENCE, "the preemptor has a node")
    assert survivors(cluster) == ["equal", "event-0", "event-1", "event-2", "newcomer", "preemptor", "waiting"]
    assert [node_of(cluster, name) for name in ("preemptor", "waiting", "newcomer")] == ["node-0000", None, None]


def wait_for_an_attempt(cluster: Cluster, scheduler: Scheduler, name: str) -> None:
    """Create a pod on a node, which makes the scheduler try the preemptor again, and wait until that is written."""
    before = attempts(scheduler, "preemptor")
    cluster.create_pods([standing(name, 1, "low", {}, cpu="10m")])
    wait_until(lambda: attempts(scheduler, "preemptor") > before, PATIENCE, "the preemptor is tried again")
    time.sleep(0.3)  # until the scheduler has written the status


def events_of(cluster: Cluster, name: str) -> list[Manifest]:
    """Return the events about the preemption of a pod that is still there."""
    uid = cluster.api.get(f"{PODS}/{name}")["metadata"]["uid"]
    items = cluster.api.get(EVENTS)["items"]
    return [item for item in items if item["reason"] == "Preempted" and item["regarding"]["uid"] == uid]


def check_the_event(cluster: Cluster, mode: str) -> None:
    (event,) = events_of(cluster, "slow")
    uid = cluster.api.get(f"{PODS}/preemptor")["metadata"]["uid"]
    assert event["note"] == f"Preempted by pod {uid} on node node-0000"
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert (event["related"]["name"], event["related"]["uid"]) == ("preemptor", uid)
    assert event["reportingController"] == MODES[mode].scheduler_name
