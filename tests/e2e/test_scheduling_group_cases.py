"""What a member of a group has been answered counts until its own signs say otherwise: one case after the other.

Each node has one place: a host port. Ordinary pods of `kindred` that want it come when the members' places are known to
kube-scheduler alone.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.e2e.api import NODES
from tests.e2e.claims import (
    DEVICE_CLAIMS,
    create_devices,
    create_late_claims,
    delete_claims,
    device_claim,
    provision,
    volume_claim,
)
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.deciding import assert_followed
from tests.e2e.grouping import (
    PORT,
    Grouping,
    bound_members,
    broken_rules,
    has_cycles,
    has_pauses,
    has_permit,
    member,
    members,
    names,
    places,
    rivals,
    served_groups,
    wait_until_members_are_bound,
    wait_until_nominated,
    wait_until_rejected,
    wait_until_tried,
)
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import on, pod

cycles = pytest.mark.skipif(not has_cycles(), reason="there are PodGroups since 1.36")
SILENT: Final = 12.0
"""Seconds without a sign: more than Kindred waits for the next request of a group, 10 s."""
STREAM: Final = 20.0  # seconds
PERIOD: Final = 0.3  # seconds between two pods of the stream
MOST_STORED: Final = 0.5
"""The most of the time that a gang without room may keep others from its places. Each try keeps them until the next
pod is asked about: up to a second on a busy machine. If that did not end it, it would be 10 s, so nearly all of it."""


@pytest.fixture(autouse=True)
def _groups(cluster: Cluster) -> Iterator[None]:
    with served_groups(cluster):
        yield


@pytest.fixture
def _claims(cluster: Cluster) -> Iterator[None]:
    yield
    delete_claims(cluster.api)


@cycles
def test_a_minimum_below_the_members_and_no_room_for_the_rest(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(4))
    grouping = Grouping(cluster)
    gang = members(8)
    grouping.bindings.hold_bindings(names(gang))
    grouping.create_members("gang", 4, gang)
    wait_until(lambda: len(grouping.bindings.bindings) == 4, PATIENCE, "4 bindings held")
    grouping.assert_that_others_are_rejected(rivals(3))
    grouping.bindings.release_bindings()
    wait_until_members_are_bound(cluster, "gang", 4)
    assert len(cluster.bound_names()) == 4
    grouping.assert_followed()


@cycles
def test_a_claim_is_missing_on_the_oldest_member_and_the_others_are_the_minimum(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(3))
    grouping = Grouping(cluster)
    gang = [member("gang", 0, host_port=PORT, **volume_claim("missing")), *members(4)[1:]]
    grouping.hold(gang, 3, gang[1:])
    grouping.assert_that_others_are_rejected(rivals(3))
    grouping.assert_bound(3, {*names(gang[1:])})


@cycles
@pytest.mark.parametrize("without", [0, 3], ids=["oldest", "newest"])
def test_a_claim_is_missing_and_the_others_are_too_few_so_their_places_are_given_back(
    cluster: Cluster, without: int
) -> None:
    cluster.api.create_all(NODES, places(4))
    grouping = Grouping(cluster)
    gang = members(4)
    gang[without] = member("gang", without, host_port=PORT, **volume_claim("missing"))
    grouping.create_members("gang", 4, gang)
    wait_until_tried(cluster, gang)
    cluster.create_pods(rivals(4))
    wait_until(lambda: cluster.bound_names() == {*names(rivals(4))}, PATIENCE, "all ordinary pods bound")
    grouping.assert_followed()


@cycles
def test_a_binding_fails_once(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(4))
    grouping = Grouping(cluster)
    gang = members(4)
    grouping.bindings.hold_bindings(names(gang))
    grouping.bindings.failing_bindings.add("gang-2")
    grouping.create_members("gang", 4, gang)
    grouping.wait_until_bindings_are_stored(names(gang))
    grouping.assert_that_others_are_rejected(rivals(3))
    grouping.bindings.release_bindings()
    wait_until_members_are_bound(cluster, "gang", 4)
    assert grouping.bindings.bindings.count("gang-2") == 2
    assert cluster.bound_names() == {*names(gang)}
    grouping.assert_followed()


@cycles
def test_a_binding_is_silent_for_long(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(4))
    grouping = Grouping(cluster)
    gang = members(4)
    grouping.bindings.hold_bindings(["gang-2"])
    grouping.create_members("gang", 4, gang)
    wait_until_members_are_bound(cluster, "gang", 3)
    until = time.monotonic() + SILENT
    came = 0
    while time.monotonic() < until:
        one = rivals(1, came)
        cluster.create_pods(one)
        wait_until_rejected(cluster, one)
        came += 1
        time.sleep(0.5)  # they keep coming, and not as fast as they are refused
    grouping.assert_bound(4, {*names(gang)})


@cycles
def test_a_member_is_nominated_on_a_full_node(cluster: Cluster) -> None:
    """Kindred counts it there when it starts. It is not the first that kube-scheduler asks about."""
    cluster.api.create_all(NODES, places(5))
    cluster.create_pods([on(pod("there", host_port=PORT), "node-0000")])
    gang = members(4)
    gang[1] = {**gang[1], "status": {"nominatedNodeName": "node-0000"}}
    for each in gang[:2]:
        cluster.api.create(PODS, each)
    grouping = Grouping(cluster)
    grouping.bindings.hold_bindings(names(gang))
    grouping.create_members("gang", 4, gang[2:])
    grouping.wait_until_bindings_are_stored(names(gang))
    grouping.assert_that_others_are_rejected(rivals(3))
    grouping.assert_bound(4, {"there", *names(gang)})


@cycles
@pytest.mark.usefixtures("_claims")
def test_volumes_come_late_and_kindred_is_killed_meanwhile(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(4))
    claims = [f"claim-{at}" for at in range(4)]
    create_late_claims(cluster.api, claims)
    grouping = Grouping(cluster)
    gang = [member("gang", at, host_port=PORT, **volume_claim(claim)) for at, claim in enumerate(claims)]
    grouping.create_members("gang", 4, gang)
    nominated = wait_until_nominated(cluster, 4)
    grouping.restart_kindred()
    grouping.assert_that_others_are_rejected(rivals(3))
    for claim in claims:
        provision(cluster.api, claim)
    wait_until_members_are_bound(cluster, "gang", 4)
    assert {each["metadata"]["name"]: each["spec"].get("nodeName") for each in cluster.pods()} == {
        **nominated,
        **dict.fromkeys(names(rivals(3))),
    }
    grouping.assert_followed()


@cycles
def test_a_gang_without_room_leaves_its_places_to_a_stream_of_ordinary_pods(cluster: Cluster, note: Note) -> None:
    cluster.api.create_all(NODES, places(4))
    grouping = Grouping(cluster)
    grouping.events.delay = 0.0
    gang = members(5)
    grouping.create_members("gang", 5, gang)
    wait_until_rejected(cluster, gang)
    uids = [cluster.api.get(f"{PODS}/{name}")["metadata"]["uid"] for name in names(gang)]
    seconds: list[float] = []
    with _sampled(lambda: any(grouping.kindred.has_on_a_node(uid) for uid in uids)) as samples:
        until = time.monotonic() + STREAM
        while time.monotonic() < until:
            begin = time.monotonic()
            one = rivals(1, len(seconds))[0]
            cluster.place(one)
            seconds.append(time.monotonic() - begin)
            cluster.api.delete(f"{PODS}/{one['metadata']['name']}")
            time.sleep(PERIOD)
    tries = grouping.scheduler.log().count('"Unable to schedule a pod group"')
    share = sum(samples) / len(samples)
    note(f"{len(seconds)} ordinary pods, each after {max(seconds):.1f} s at most; {tries} tries, held {share:.0%}")
    assert tries > 1
    assert max(seconds) < STREAM / 4
    # Without a pause the gang is answered again as soon as an ordinary pod has been decided.
    assert share < MOST_STORED or not has_pauses()
    assert not bound_members(cluster.pods())
    assert broken_rules(cluster) == []
    for name in names(gang) if not has_pauses() else ():
        cluster.api.delete(f"{PODS}/{name}")
    assert_followed(grouping.kindred)


@contextmanager
def _sampled(look: Callable[[], bool]) -> Iterator[list[bool]]:
    """Look ten times a second, in another thread; give what was seen."""
    samples: list[bool] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.1):
            samples.append(look())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()


@cycles
def test_of_two_gangs_one_has_room_and_the_other_comes_behind_it(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(8))
    grouping = Grouping(cluster)
    for group in ("first", "second"):
        grouping.create_members(group, 5, members(5, group))
    cluster.wait_bound(5)
    cluster.create_pods(rivals(3))
    wait_until(lambda: cluster.bound_names() >= {*names(rivals(3))}, PATIENCE, "all ordinary pods bound")
    (here,) = bound_members(cluster.pods())
    assert bound_members(cluster.pods()) == {here: 5}
    assert broken_rules(cluster) == []
    for each in members(5, here):
        cluster.api.delete(f"{PODS}/{each['metadata']['name']}")
    (there,) = {"first", "second"} - {here}
    wait_until_members_are_bound(cluster, there, 5)
    grouping.assert_followed()


@cycles
@pytest.mark.usefixtures("_claims")
def test_members_with_a_device_each_and_two_on_a_node_by_cpu(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(2, cpu="2"))
    claims = [f"device-{at}" for at in range(4)]
    create_devices(cluster.api, names(places(2)), 3, claims)
    grouping = Grouping(cluster)
    gang = [member("gang", at, cpu="1", **device_claim(claim)) for at, claim in enumerate(claims)]
    grouping.hold(gang, 4)
    ordinary = rivals(3, cpu="1", host_port=None)
    grouping.assert_that_others_are_rejected(ordinary)
    grouping.bindings.release_bindings()
    wait_until_members_are_bound(cluster, "gang", 4)
    assert all("allocation" in each["status"] for each in cluster.api.items(DEVICE_CLAIMS))
    assert cluster.bound_names() == {*names(gang)}
    grouping.assert_followed()


permit = pytest.mark.skipif(not has_permit(), reason="gangs wait in Permit in 1.35 alone")


@permit
def test_members_wait_in_permit_and_kindred_is_killed_meanwhile(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(3))
    grouping = Grouping(cluster)
    gang = members(4)
    grouping.create_members("gang", 4, gang)
    nominated = wait_until_nominated(cluster, 3)
    grouping.assert_that_others_are_rejected(rivals(2))
    grouping.restart_kindred()
    grouping.assert_that_others_are_rejected(rivals(2, 2))
    for name in names(rivals(4)):  # they would want the new node, too
        cluster.api.delete(f"{PODS}/{name}")
    cluster.api.create(NODES, places(4)[3])
    wait_until_members_are_bound(cluster, "gang", 4)
    found = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in cluster.pods()}
    assert found.items() >= nominated.items()
    grouping.assert_followed()
