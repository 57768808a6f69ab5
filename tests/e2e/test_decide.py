"""Decide: pods that leave hardly any room find their nodes, all at once; no rule is broken, no pod stays assumed."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from app.settings.limits import DEFAULTS
from tests.e2e.cluster import LED, ROOM, TAKEN, Cluster, killed, terminated
from tests.e2e.conftest import Note
from tests.e2e.control_plane import SCHEDULER_USER
from tests.e2e.deciding import LATE, Load, assert_followed, decisions, renamed
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.relay import relay_to
from tests.throughput.modes import LISTED_NODES, MODES
from tests.throughput.results import ANY_NODE

SECOND = "second"
BROKEN = {"apart", "together", "pods like spread", "OutOfcpu", "NodePorts"}
"""How the lines about the rules begin that a pair of pods can break which do not see each other."""


@pytest.mark.parametrize("late", [pytest.param(0.0, id="in time"), pytest.param(LATE, id="events late")])
@pytest.mark.parametrize("mode", [LISTED_NODES, ANY_NODE])
def test_all_pods_at_once_find_their_nodes(cluster: Cluster, mode: str, late: float, note: Note) -> None:
    load = Load(cluster, late)
    kindred = load.start_kindred(MODES[mode])
    scheduler = cluster.start_scheduler(MODES[mode].config(kindred.url))
    with load.created(MODES[mode].scheduler_name) as number:
        pass
    seconds = load.wait_until_all_are_bound()
    note(f"all bound {seconds:.1f} s after the last was made: {decisions(kindred)}")
    assert load.broken_rules() == []
    assert decisions(kindred)["assumed"] == number
    assert scheduler.failed_bindings() == 0
    assert_followed(kindred)


def test_two_schedulers_at_once_share_one_kindred(cluster: Cluster, note: Note) -> None:
    load = Load(cluster)
    mode, other = MODES[ANY_NODE], MODES[LISTED_NODES]
    kindred = load.start_kindred(
        mode, KINDRED_DECIDE_SCHEDULERS=mode.scheduler_name, KINDRED_DECIDE_CLAIMS_SCHEDULER=SECOND
    )
    first = cluster.start_scheduler(mode.config(kindred.url))
    second = cluster.start_scheduler(renamed(other.config(kindred.url), SECOND))
    with load.created(mode.scheduler_name, SECOND) as number:
        pass
    load.wait_until_all_are_bound()
    # A scheduler logs a binding some moments after the API server has it.
    wait_until(lambda: first.bound() + second.bound() >= number, PATIENCE, f"{number} bindings logged")
    bound = (first.bound(), second.bound())
    note(f"bound by each: {bound}; {decisions(kindred)}")
    assert load.broken_rules() == []
    assert min(bound) > number // 3
    assert sum(bound) == number
    assert_followed(kindred)


def test_without_the_assumption_rules_are_broken_so_these_tests_can_fail(cluster: Cluster) -> None:
    load = Load(cluster, LATE)
    kindred = load.start_kindred(MODES[ANY_NODE])
    with relay_to(kindred.url, {"Kindred-Dry-Run": "true"}) as relay:
        scheduler = cluster.start_scheduler(MODES[ANY_NODE].config(relay.url))
        with load.created(MODES[ANY_NODE].scheduler_name):
            pass
        wait_until(lambda: kinds(load.broken_rules()) >= BROKEN, PATIENCE, f"{BROKEN} broken", every=1.0)
        scheduler.end()
    assert decisions(kindred).keys() <= {"not_assumed", "no_fit"}
    assert kindred.samples()["kindred_mirror_assumed_pods"] == 0


def kinds(lines: list[str]) -> set[str]:
    """Return the letters with which lines about broken rules begin."""
    return {found[0] for line in lines if (found := re.match(r"[A-Za-z ]+", line))}


SETTLES = DEFAULTS.settle  # seconds
# Seconds after the last renewal, or after SIGTERM, at which the last bindings have landed, and at which another leads.
KILLED = (LED + SETTLES, DEFAULTS.lease_duration + TAKEN + ROOM)
TERMINATED = (SETTLES, TAKEN + SETTLES + ROOM)
BINDINGS_LATE = 2.5  # seconds: some are under way when the next leader has the Lease, and land while it settles


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
            began = time.monotonic()
            kindred.start()
            assert time.monotonic() - began >= SETTLES
    load.wait_until_all_are_bound()
    note(f"killed with {bound} of {number} pods bound, {assumed} known from no event")
    assert bound[-1] < number
    assert load.broken_rules() == []
    assert_followed(kindred)


@pytest.mark.parametrize(
    ("ends", "between"),
    [
        pytest.param(killed, KILLED, id="killed"),
        pytest.param(terminated, TERMINATED, id="terminated", marks=pytest.mark.long),
    ],
)
def test_the_leader_goes_and_bindings_of_its_decisions_are_under_way(
    cluster: Cluster, ends: Callable[[Kindred], None], between: tuple[float, float], note: Note
) -> None:
    load, mode = Load(cluster), MODES[ANY_NODE]
    with cluster.two_replicas(mode.settings, load.server) as (first, second, service):
        proxy = cluster.start_proxy(SCHEDULER_USER)
        proxy.binding_delay = BINDINGS_LATE
        cluster.start_scheduler(mode.config(service.url), server=proxy.url)
        with load.created(mode.scheduler_name) as number:
            wait_until(lambda: decisions(first).get("assumed", 0) >= number // 4, PATIENCE, "a quarter decided")
            under_way = int(first.samples()["kindred_mirror_assumed_pods"])
            begun = datetime.now(UTC)
            ends(first)
            holder, written = cluster.lease()
            wait_until(second.is_ready, PATIENCE, "the other replica leads")
            gap = (datetime.now(UTC) - (written if ends is killed else begun)).total_seconds()
        load.wait_until_all_are_bound()
        most_ready = service.most_ready
    note(f"{ends.__name__} with {under_way} bindings under way, ready after {gap:.1f} s; {decisions(second)}")
    assert under_way > 0
    assert between[0] <= gap < between[1]
    assert ends is killed or holder != "first", "it is released"
    assert cluster.marked() == {"first", "second"}
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
