"""What the attempts of pods that fit nowhere write, by the counters of the API server."""

import re
import time
from collections import Counter
from typing import Final

from tests.e2e.cluster import NAMESPACE, Cluster
from tests.e2e.conftest import Note
from tests.e2e.deciding import decisions
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import apart, pod
from tests.throughput.modes import MODES
from tests.throughput.results import ANY_NODE

NODES: Final = 120
WAITING: Final = 5
EVENTS: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
_ATTEMPTS: Final = 4 * WAITING
_PAUSE: Final = 0.5  # seconds, in which waiting pods are tried again after an event of the cluster
_REQUESTS: Final = re.compile(r"^apiserver_request_total{(.*)} (.*)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_FILLING: Final = {"app": "filling"}
MESSAGE: Final = (
    f"0/{NODES} nodes are available: 1 decision of kindred: Insufficient cpu, Insufficient memory. "
    f"preemption: 0/{NODES} nodes are available: {NODES} Preemption is not helpful for scheduling."
)


def writes(cluster: Cluster) -> Counter[str]:
    """Return the requests so far that write the status of a pod, or an Event."""
    found: Counter[str] = Counter()
    for labels, value in _REQUESTS.findall(cluster.api.metrics()):
        of = dict(_LABEL.findall(labels))
        if (of["resource"], of["subresource"]) in {("pods", "status"), ("events", "")}:
            found[f"{of['verb']} {of['resource']}"] += int(float(value))
    return Counter({key: number for key, number in found.items() if key.startswith(("POST", "PATCH", "PUT"))})


def bound_by_events(cluster: Cluster) -> int:
    """Count the pods of which an Event says that they were bound."""
    return sum(each["reason"] == "Scheduled" for each in cluster.api.items(EVENTS))


def test_an_attempt_whose_reasons_are_the_same_writes_nothing(cluster: Cluster, note: Note) -> None:
    mode = MODES[ANY_NODE]
    cluster.add_nodes(NODES)
    kindred = cluster.start_kindred({**mode.settings, "KINDRED_PREEMPT": "evict"})
    cluster.start_scheduler(mode.config(kindred.url))
    filled = 0

    def fill_until(attempts: int) -> None:
        """Fill one node after another, so that one more lacks CPUs, until the waiting pods had so many attempts."""
        nonlocal filled
        before = rejected()
        while rejected() < before + attempts:
            name = f"filling-{filled}"
            cluster.place(pod(name, _FILLING, cpu="31", affinity=apart(_FILLING), schedulerName=mode.scheduler_name))
            filled += 1
            time.sleep(_PAUSE)
        # kube-scheduler sends its Events in their order, some time later.
        wait_until(lambda: bound_by_events(cluster) == filled + 1, PATIENCE, "an Event of each pod that was placed")

    def rejected() -> int:
        return decisions(kindred).get("no_fit", 0)

    cluster.place(pod("filling", _FILLING, cpu="31", affinity=apart(_FILLING), schedulerName=mode.scheduler_name))
    start, attempts = writes(cluster), rejected()
    names = [f"waiting-{number}" for number in range(WAITING)]
    large = {"requests": {"cpu": "2", "memory": "100Gi"}}
    for name in names:
        made = pod(name, schedulerName=mode.scheduler_name)
        made["spec"]["containers"][0]["resources"] = large
        cluster.create_pods([made])
    wait_until(lambda: all(cluster.condition(name) for name in names), PATIENCE, "a condition of each pod")
    fill_until(_ATTEMPTS)
    first, attempts, filled_first = writes(cluster) - start, rejected() - attempts, filled
    note(f"{WAITING} pods, {attempts} attempts, {filled_first} pods placed: {dict(first)}")
    assert [cluster.condition(name)["message"] for name in names] == [MESSAGE] * WAITING

    before, attempts = writes(cluster), rejected()
    fill_until(_ATTEMPTS)
    later, attempts, placed = writes(cluster) - before, rejected() - attempts, filled - filled_first
    note(f"{attempts} attempts more, {placed} pods placed: {dict(later)}")
    assert placed > 1, "the numbers of nodes that lack CPUs are the same"
    assert later["PATCH pods"] == 0
    assert later["PATCH events"] == 0
    assert later["POST events"] <= placed, "one for each pod that was placed"
    assert first["PATCH pods"] == WAITING
