"""Decide, while Kindred, its leader or the scheduler goes and comes: no rule is broken, and no pod stays assumed."""

from collections.abc import Callable

import pytest

from app.settings.limits import DEFAULTS
from tests.app.server.balancer import balancer
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.control_plane import SCHEDULER_USER
from tests.e2e.deciding import LATE, PATIENCE, Load, assert_followed, decisions, last_settled
from tests.e2e.kindred import Kindred
from tests.e2e.programs import wait_until
from tests.e2e.test_leader_election import LEASE, elected, killed, terminated
from tests.throughput.modes import LISTED_NODES, MODES
from tests.throughput.results import ANY_NODE

SETTLES = DEFAULTS.settle  # seconds
BINDINGS_LATE = 2.5  # seconds: some are under way when the next leader has the Lease, and land while it settles
# kube-scheduler 1.34 sends 16 bindings at a time, and queues the others. Then they land long after a leader has gone.
BINDINGS_AT_ONCE = "--feature-gates=SchedulerAsyncAPICalls=false"


@pytest.mark.parametrize(
    ("mode", "late"),
    [
        pytest.param(LISTED_NODES, 0.0, id="question, in time", marks=pytest.mark.long),
        pytest.param(ANY_NODE, LATE, id="any node, events late"),
    ],
)
def test_kindred_is_killed_at_a_quarter_and_at_a_half(cluster: Cluster, mode: str, late: float, note: Note) -> None:
    load = Load(cluster, late)
    kindred = load.start_kindred(MODES[mode])
    scheduler = cluster.start_scheduler(MODES[mode].config(kindred.url))
    assumed, bound = [], []
    with load.created(MODES[mode].scheduler_name) as number:
        for share in (number // 4, number // 2):
            wait_until(lambda share=share: scheduler.bound() >= share, PATIENCE, f"{share} pods bound")  # type: ignore[misc]
            assumed.append(kindred.samples()["kindred_mirror_assumed_pods"])
            kindred.program.kill()
            bound.append(scheduler.bound())
            kindred.start()
            assert last_settled(cluster) >= SETTLES
    load.wait_until_all_are_bound()
    note(f"killed with {bound} of {number} pods bound, {assumed} known from no event")
    assert bound[-1] < number
    assert load.broken_rules() == []
    assert_followed(kindred)


@pytest.mark.parametrize("ends", [killed, pytest.param(terminated, marks=pytest.mark.long)])
def test_the_leader_goes_and_bindings_of_its_decisions_are_under_way(
    cluster: Cluster, ends: Callable[[Kindred], None], note: Note
) -> None:
    if cluster.api.items(LEASE.rpartition("/")[0]):
        cluster.api.delete(LEASE)
    load, mode = Load(cluster), MODES[ANY_NODE]
    first, second = (
        load.start_kindred(mode, follows=follows, **elected(name))
        for name, follows in (("first", False), ("second", True))
    )
    with balancer() as service:
        service.backends += [("127.0.0.1", each.port) for each in (first, second)]
        wait_until(lambda: len(service.ready) == 1, PATIENCE, "one ready replica")
        proxy = cluster.start_proxy(SCHEDULER_USER)
        proxy.binding_delay = BINDINGS_LATE
        cluster.start_scheduler(mode.config(service.url), server=proxy.url, flags=[BINDINGS_AT_ONCE])
        with load.created(mode.scheduler_name) as number:
            wait_until(lambda: decisions(first).get("assumed", 0) >= number // 4, PATIENCE, "a quarter decided")
            under_way = int(first.samples()["kindred_mirror_assumed_pods"])
            ends(first)
            wait_until(second.is_ready, PATIENCE, "the other replica leads")
        load.wait_until_all_are_bound()
        most_ready = service.most_ready
    settled = last_settled(cluster)
    note(f"{ends.__name__} with {under_way} bindings under way, settled in {settled:.1f} s; {decisions(second)}")
    assert under_way > 0
    assert settled >= SETTLES
    assert most_ready == 1
    assert load.broken_rules() == []
    assert_followed(second)


def test_the_scheduler_is_killed_and_started_again(cluster: Cluster, note: Note) -> None:
    load, mode = Load(cluster), MODES[ANY_NODE]
    kindred = load.start_kindred(mode)
    scheduler = cluster.start_scheduler(mode.config(kindred.url))
    with load.created(mode.scheduler_name) as number:
        wait_until(lambda: decisions(kindred).get("assumed", 0) >= number // 4, PATIENCE, "a quarter decided")
        scheduler.program.kill()
        cluster.start_scheduler(mode.config(kindred.url))
    load.wait_until_all_are_bound()
    note(f"{decisions(kindred)}; replaced are those that were decided and not bound")
    assert load.broken_rules() == []
    assert_followed(kindred)
