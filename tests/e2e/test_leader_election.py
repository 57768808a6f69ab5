"""Two Kindreds of which one leads, and the leader goes: all pods find their place, and no rule is broken."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from tests.app.server.balancer import balancer
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.kindred import BINDS, Kindred
from tests.e2e.programs import wait_until
from tests.e2e.scheduler import configuration
from tests.e2e.test_restarts import BOUND, ENOUGH, NODES, PATIENCE, PODS, pods_of_all_groups

LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kindred/leases/kindred"
DURATION: Final = 15.0  # seconds; the default


def elected(name: str) -> dict[str, str]:
    return {"KINDRED_LEADER_ELECTION": "kindred", "POD_NAMESPACE": "kindred", "POD_NAME": name}


def killed(leader: Kindred) -> None:
    leader.program.kill()


def terminated(leader: Kindred) -> None:
    assert leader.program.end(), "it drains for too long"


@pytest.mark.parametrize(
    "late", [pytest.param(0.0, id="in time", marks=pytest.mark.long), pytest.param(1.0, id="events a second late")]
)
@pytest.mark.parametrize("ends", [killed, terminated])
def test_the_leader_goes_in_the_middle_and_the_other_goes_on(
    cluster: Cluster, ends: Callable[[Kindred], None], late: float, note: Note
) -> None:
    cluster.add_nodes(NODES)
    if cluster.api.items(LEASE.rpartition("/")[0]):
        cluster.api.delete(LEASE)
    proxy = cluster.start_proxy()
    first = cluster.start_kindred({**BINDS, **elected("first")}, server=proxy.url)
    second = cluster.start_kindred({**BINDS, **elected("second")}, server=proxy.url, follows=True)
    with balancer() as service, ThreadPoolExecutor(1) as creating:
        service.backends += [("127.0.0.1", each.port) for each in (first, second)]
        wait_until(lambda: len(service.ready) == 1, PATIENCE, "one ready replica")
        scheduler = cluster.start_scheduler(configuration("full-offload", service.url))
        proxy.delay = late
        created = creating.submit(cluster.create_pods, pods_of_all_groups())
        wait_until(lambda: first.samples()[BOUND] > ENOUGH, PATIENCE, "enough pods bound")
        ends(first)
        began, bound = time.monotonic(), cluster.bound()
        wait_until(second.is_ready, PATIENCE, "the other replica leads")
        gap = time.monotonic() - began
        created.result()
        cluster.wait_bound(PODS, PATIENCE)
        most_ready = service.most_ready
    note(
        f"{ends.__name__} with {bound} of {PODS} pods bound; ready after {gap:.1f} s;"
        f" {scheduler.failed_bindings()} bindings tried again"
    )
    assert ENOUGH <= bound < PODS
    assert most_ready == 1
    assert cluster.violations() == []
    assert second.samples()[BOUND] > 0
    assert (gap < DURATION) or ends is killed
    spec = cluster.api.get(LEASE)["spec"]
    assert (spec["holderIdentity"].partition("_")[0], spec["leaseTransitions"]) == ("second", 1)
    found = second.differences().values()
    assert [each for each in found if each["missed"] or each["redundant"] or each["differing"]] == []
