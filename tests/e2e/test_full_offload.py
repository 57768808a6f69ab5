"""Full offload: Kindred alone keeps the hard rules of inter-pod affinity, also while it or its leader is killed."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from app.settings.limits import DEFAULTS
from tests.e2e.api import Manifest
from tests.e2e.cluster import LEASE, ROOM, TAKEN, Cluster, killed, terminated
from tests.e2e.conftest import Note
from tests.e2e.kindred import BINDS, Kindred, samples_of
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import configuration
from tests.e2e.shapes import HOSTNAME, ZONE, pod, required, term

NODES: Final = 100
GROUPS, SIZE = 6, 50
MANY: Final = 10
"""Groups of each kind, while Kindred goes and comes."""
PODS: Final = 2 * MANY * SIZE
ENOUGH: Final = PODS // 4
BOUND: Final = 'kindred_binds_total{result="bound"}'
LATE: Final = 2.0  # seconds
UNSEEN: Final = 60.0  # seconds: most pods are placed before another one is seen, also on a slow machine
in_time_or_late = pytest.mark.parametrize(
    "late", [pytest.param(0.0, id="in time", marks=pytest.mark.long), pytest.param(1.0, id="events a second late")]
)


def groups(kind: str, topology_key: str, number: int = GROUPS) -> list[Manifest]:
    """Return pods in groups of 50, each with a required term that selects its own group."""

    def affinity(labels: Mapping[str, str]) -> dict[str, Any]:
        return required(kind, term(labels, topology_key))

    prefix = "anti" if kind == "podAntiAffinity" else "near"
    return [
        pod(f"{prefix}-{group}-{place}", labels := {"group": f"{prefix}{group}"}, affinity=affinity(labels))
        for place in range(SIZE)
        for group in range(number)
    ]


def groups_of_both_kinds(number: int) -> list[Manifest]:
    """Return as many groups that keep apart as groups that keep together, mixed."""
    both = groups("podAntiAffinity", HOSTNAME, number), groups("podAffinity", ZONE, number)
    return [each for pair in zip(*both, strict=True) for each in pair]


@pytest.mark.parametrize(("kind", "key"), [("podAntiAffinity", HOSTNAME), ("podAffinity", ZONE)])
def test_pods_that_repel_or_want_their_group_stand_apart_or_together(cluster: Cluster, kind: str, key: str) -> None:
    cluster.add_nodes(NODES)
    kindred, _ = cluster.full_offload()
    cluster.create_pods(groups(kind, key))
    cluster.wait_bound(GROUPS * SIZE)
    assert cluster.violations() == []
    assert kindred.samples()[BOUND]


def test_no_rule_is_broken_when_events_are_late(cluster: Cluster, note: Note) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    kindred, scheduler = cluster.full_offload(server=proxy.url)
    proxy.delay = LATE
    cluster.create_pods(groups_of_both_kinds(GROUPS))
    cluster.wait_bound(2 * GROUPS * SIZE)
    assert cluster.violations() == []
    binds = samples_of(kindred.samples(), "kindred_binds_total")
    others = {labels: value for labels, value in binds.items() if value and labels not in BOUND}
    note(f"events {LATE:.0f} s late: {scheduler.failed_bindings()} of 600 bindings tried again {others or ''}")
    # No more is certain: where a call took too long, either side may count a binding as failed that was done.
    assert kindred.samples()[BOUND]


def test_without_bind_rules_are_broken_so_these_tests_can_fail(cluster: Cluster) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    kindred = cluster.start_kindred(server=proxy.url)
    config = configuration("full-offload", kindred.url)
    for extender in config["extenders"]:
        del extender["bindVerb"]
    cluster.start_scheduler(config)
    proxy.delay = UNSEEN
    cluster.create_pods(groups("podAntiAffinity", HOSTNAME))
    cluster.wait_bound(GROUPS * SIZE)
    assert cluster.violations() != []


@in_time_or_late
def test_kindred_is_killed_in_the_middle_and_all_pods_find_their_place(
    cluster: Cluster, late: float, note: Note
) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    kindred, scheduler = cluster.full_offload(server=proxy.url)
    proxy.delay = late
    with ThreadPoolExecutor(1) as creating:
        # Or all could be bound before they are all made.
        created = creating.submit(cluster.create_pods, groups_of_both_kinds(MANY))
        wait_until(lambda: kindred.samples()[BOUND] > ENOUGH, PATIENCE, "enough pods bound")
        unconfirmed = kindred.samples()["kindred_mirror_assumed_pods"]
        kindred.program.kill()
        bound = cluster.bound()
        kindred.start()
        created.result()
    cluster.wait_bound(PODS)
    note(
        f"killed with {bound} of {PODS} pods bound, {unconfirmed:.0f} of them known from no event;"
        f" {scheduler.failed_bindings()} bindings tried again"
    )
    assert ENOUGH <= bound < PODS
    assert cluster.violations() == []
    kindred.assert_equal()


def test_pods_do_not_wait_for_kindred_where_no_hard_rule_depends_on_it(cluster: Cluster) -> None:
    cluster.add_nodes(SIZE)
    kindred = cluster.start_kindred()
    cluster.start_scheduler(configuration("score-offload", kindred.url))
    kindred.program.kill()
    cluster.create_pods(groups("podAntiAffinity", HOSTNAME, 1))
    cluster.wait_bound(SIZE)
    assert cluster.violations() == []


@in_time_or_late
@pytest.mark.parametrize("ends", [killed, terminated])
def test_the_leader_goes_in_the_middle_and_the_other_goes_on(
    cluster: Cluster, ends: Callable[[Kindred], None], late: float, note: Note
) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    with cluster.two_replicas(BINDS, proxy.url) as (first, second, service), ThreadPoolExecutor(1) as creating:
        scheduler = cluster.start_scheduler(configuration("full-offload", service.url))
        proxy.delay = late
        created = creating.submit(cluster.create_pods, groups_of_both_kinds(MANY))
        wait_until(lambda: first.samples()[BOUND] > ENOUGH, PATIENCE, "enough pods bound")
        ends(first)
        holder, written = cluster.lease()
        bound = cluster.bound()
        wait_until(second.is_ready, PATIENCE, "the other replica leads")
        gap = (datetime.now(UTC) - written).total_seconds()
        created.result()
        cluster.wait_bound(PODS)
        most_ready = service.most_ready
    note(
        f"{ends.__name__} with {bound} of {PODS} pods bound; ready {gap:.1f} s after the Lease was written last;"
        f" {scheduler.failed_bindings()} bindings tried again"
    )
    assert ENOUGH <= bound < PODS
    assert most_ready == 1
    assert cluster.violations() == []
    assert second.samples()[BOUND] > 0
    assert gap < (DEFAULTS.lease_duration if ends is killed else 0.0) + TAKEN + late + ROOM
    assert ends is killed or holder != "first", "it is released"
    assert cluster.lease()[0] == "second"
    assert cluster.api.get(LEASE)["spec"]["leaseTransitions"] == 1
    second.assert_equal()
