"""Full offload: Kindred alone keeps the hard rules of inter-pod affinity, whatever the scheduler asks how fast."""

from collections.abc import Mapping
from typing import Any

from tests.e2e.api import Manifest
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.kindred import samples_of
from tests.e2e.scheduler import configuration
from tests.e2e.shapes import HOSTNAME, ZONE, pod, required, term

GROUPS, SIZE = 6, 50
NODES = 100
LATE = 2.0  # seconds
BOUND = '{result="bound"}'


def groups(kind: str, topology_key: str, prefix: str = "p") -> list[Manifest]:
    """Return 300 pods in groups, each with a required term that selects its own group."""

    def affinity(labels: Mapping[str, str]) -> dict[str, Any]:
        return required(kind, term(labels, topology_key))

    return [
        pod(f"{prefix}-{group}-{number}", labels := {"group": f"{prefix}{group}"}, affinity=affinity(labels))
        for number in range(SIZE)
        for group in range(GROUPS)
    ]


def test_pods_that_repel_their_group_stand_on_nodes_of_their_own(cluster: Cluster) -> None:
    cluster.add_nodes(NODES)
    kindred, _ = cluster.full_offload()
    cluster.create_pods(groups("podAntiAffinity", HOSTNAME))
    cluster.wait_bound(GROUPS * SIZE)
    assert cluster.violations() == []
    assert samples_of(kindred.samples(), "kindred_binds_total")[BOUND]


def test_pods_that_want_their_group_stand_in_its_zone(cluster: Cluster) -> None:
    cluster.add_nodes(NODES)
    cluster.full_offload()
    cluster.create_pods(groups("podAffinity", ZONE))
    cluster.wait_bound(GROUPS * SIZE)
    assert cluster.violations() == []


def test_no_rule_is_broken_when_events_are_late(cluster: Cluster, note: Note) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    kindred, scheduler = cluster.full_offload(server=proxy.url)
    proxy.delay = LATE
    cluster.create_pods([*groups("podAntiAffinity", HOSTNAME, "anti"), *groups("podAffinity", ZONE, "near")])
    cluster.wait_bound(2 * GROUPS * SIZE)
    assert cluster.violations() == []
    binds = samples_of(kindred.samples(), "kindred_binds_total")
    others = {labels: value for labels, value in binds.items() if value and labels != BOUND}
    note(f"events {LATE:.0f} s late: {scheduler.failed_bindings()} of 600 bindings tried again {others or ''}")
    # No more is certain: where a call took too long, either side may count a binding as failed that was done.
    assert binds[BOUND]


def test_without_bind_rules_are_broken_so_these_tests_can_fail(cluster: Cluster) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    kindred = cluster.start_kindred(server=proxy.url)
    config = configuration("full-offload", kindred.url)
    for extender in config["extenders"]:
        del extender["bindVerb"]
    cluster.start_scheduler(config)
    proxy.delay = LATE
    cluster.create_pods(groups("podAntiAffinity", HOSTNAME))
    cluster.wait_bound(GROUPS * SIZE)
    assert cluster.violations() != []
