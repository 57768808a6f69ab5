"""Kindred killed, and started again: pods wait for it or do without it, by the registration, and no rule is broken."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.e2e.api import Manifest
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.programs import wait_until
from tests.e2e.scheduler import configuration
from tests.e2e.shapes import HOSTNAME, ZONE, pod, required, term

NODES: Final = 100
GROUPS: Final = 10  # of each kind
SIZE: Final = 50
PODS: Final = 2 * GROUPS * SIZE
ENOUGH: Final = PODS // 4
BOUND: Final = 'kindred_binds_total{result="bound"}'
PATIENCE: Final = 180.0  # seconds


def pods_of_all_groups() -> list[Manifest]:
    """Return 1,000 pods, half of them in groups that keep apart, half in groups that keep together."""
    rules = {"apart": ("podAntiAffinity", HOSTNAME), "together": ("podAffinity", ZONE)}
    return [
        pod(
            f"{name}-{group}-{number}",
            labels := {"group": f"{name}-{group}"},
            affinity=required(kind, term(labels, key)),
        )
        for number in range(SIZE)
        for group in range(GROUPS)
        for name, (kind, key) in rules.items()
    ]


@pytest.mark.parametrize(
    "late", [pytest.param(0.0, id="in time", marks=pytest.mark.long), pytest.param(1.0, id="events a second late")]
)
def test_kindred_is_killed_in_the_middle_and_all_pods_find_their_place(
    cluster: Cluster, late: float, note: Note
) -> None:
    cluster.add_nodes(NODES)
    proxy = cluster.start_proxy()
    kindred, scheduler = cluster.full_offload(server=proxy.url)
    proxy.delay = late
    with ThreadPoolExecutor(1) as creating:
        # Or all could be bound before they are all made.
        created = creating.submit(cluster.create_pods, pods_of_all_groups())
        wait_until(lambda: kindred.samples()[BOUND] > ENOUGH, PATIENCE, "enough pods bound")
        unconfirmed = kindred.samples()["kindred_mirror_assumed_pods"]
        kindred.program.kill()
        bound = cluster.bound()
        kindred.start()
        created.result()
    cluster.wait_bound(PODS, PATIENCE)
    note(
        f"killed with {bound} of {PODS} pods bound, {unconfirmed:.0f} of them known from no event;"
        f" {scheduler.failed_bindings()} bindings tried again"
    )
    assert ENOUGH <= bound < PODS
    assert cluster.violations() == []
    found = kindred.differences().values()
    assert [each for each in found if each["missed"] or each["redundant"] or each["differing"]] == []


def test_pods_do_not_wait_for_kindred_where_no_hard_rule_depends_on_it(cluster: Cluster) -> None:
    cluster.add_nodes(SIZE)
    kindred = cluster.start_kindred()
    cluster.start_scheduler(configuration("score-offload", kindred.url))
    kindred.program.kill()
    labels = {"group": "alone"}
    apart = required("podAntiAffinity", term(labels, HOSTNAME))
    cluster.create_pods(pod(f"alone-{number}", labels, affinity=apart) for number in range(SIZE))
    cluster.wait_bound(SIZE, PATIENCE)
    assert cluster.violations() == []
