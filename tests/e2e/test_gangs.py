"""Gangs: of 40 gangs of 8 exactly those 20 run that have room, none in part, over a restart; without groups some do.

Packed gangs end on the fewest nodes, or in the fewest racks.
"""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest

from core.objects.groups import PACKING_ANNOTATION, POD_GROUP_LABEL, TOPOLOGY_KEY_ANNOTATION
from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import NAMESPACE, PODS, Cluster, terminated
from tests.e2e.conftest import Note
from tests.e2e.deciding import assert_followed, decisions
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import HOSTNAME, RACK, node, pod
from tests.throughput.modes import LISTED_NODES, MODES
from tests.throughput.results import ANY_NODE

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD: Final = Path(__file__).with_name("podgroups-crd.json")
POD_GROUPS: Final = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{NAMESPACE}/podgroups"
_GROUP: Final = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
GANGS: Final = 40
SIZE: Final = 8
ROOM: Final = 20
"""Gangs that have room on all nodes together."""
_CPUS: Final = 4
WAYS: Final = ("spread", "pack", "near")
PACKED: Final = 20
"""Members of a gang for each way of packing: they fill five nodes, or one rack of four nodes and a part of another."""
POOL: Final = 12
"""Nodes that a gang may be on, in three racks."""


def nodes() -> list[Manifest]:
    number = ROOM * SIZE // _CPUS
    return [node(at, allocatable={"cpu": str(_CPUS), "memory": "64Gi", "pods": "110"}) for at in range(number)]


def gangs(scheduler_name: str) -> list[Manifest]:
    """Return the members of all gangs, in any order."""
    made = []
    for gang in range(GANGS):
        for number in range(SIZE):
            name = f"gang-{gang:02}"
            member = pod(f"{name}-{number}", {"kindred.dev/group": name}, cpu="1", schedulerName=scheduler_name)
            member["metadata"]["annotations"] = {"kindred.dev/group-minimum": str(SIZE)}
            made.append(member)
    Random(22).shuffle(made)  # noqa: S311  # the same order each time
    return made


def running(cluster: Cluster) -> Counter[str]:
    """Count the members with a node by gang."""
    return Counter(
        each["metadata"]["labels"]["kindred.dev/group"] for each in cluster.pods() if each["spec"].get("nodeName")
    )


def wait_for_whole_gangs(cluster: Cluster) -> set[str]:
    """Wait until all rooms are taken; return the gangs that run, of which none does in part."""
    wait_until(lambda: running(cluster).total() == ROOM * SIZE, PATIENCE, "all rooms taken", every=0.5)
    found = running(cluster)
    assert set(found.values()) == {SIZE}
    assert cluster.rejections() == []
    return set(found)


def units(kindred: Kindred) -> Counter[str]:
    url = f"http://127.0.0.1:{kindred.admin_port}/units"
    found: list[dict[str, Any]] = httpx.get(url, timeout=30.0).raise_for_status().json()["units"]
    return Counter(each["status"] for each in found)


@pytest.mark.parametrize("mode", [LISTED_NODES, ANY_NODE])
def test_exactly_the_gangs_that_have_room_run_and_others_when_some_of_them_go(
    cluster: Cluster, mode: str, note: Note
) -> None:
    cluster.api.create_all(NODES, nodes())
    kindred = cluster.start_kindred(MODES[mode].settings)
    scheduler = cluster.start_scheduler(MODES[mode].config(kindred.url))
    cluster.create_pods(gangs(MODES[mode].scheduler_name))
    first = wait_for_whole_gangs(cluster)
    note(f"{len(first)} gangs run: {decisions(kindred)}")
    assert_followed(kindred)
    assert units(kindred) == {"scheduled": ROOM, "scheduling": GANGS - ROOM}
    gone = sorted(first)[: ROOM // 2]
    for name in gone:
        cluster.api.delete_all(f"{PODS}?labelSelector=kindred.dev/group%3D{name}")
    second = wait_for_whole_gangs(cluster)
    note(f"{len(second - first)} others run after {len(gone)} have gone: {decisions(kindred)}")
    assert len(second - first) == len(gone)
    assert scheduler.failed_bindings() == 0
    assert_followed(kindred)


def test_no_gang_runs_in_part_though_kindred_is_killed_while_gangs_are_placed(cluster: Cluster, note: Note) -> None:
    cluster.api.create_all(NODES, nodes())
    kindred = cluster.start_kindred(MODES[ANY_NODE].settings)
    scheduler = cluster.start_scheduler(MODES[ANY_NODE].config(kindred.url))
    cluster.create_pods(gangs(MODES[ANY_NODE].scheduler_name))
    wait_until(lambda: scheduler.bound() >= SIZE, PATIENCE, "some pods bound", every=0.01)
    kindred.program.kill()
    in_part = {name: members for name, members in running(cluster).items() if members < SIZE}
    note(f"killed with {running(cluster).total()} pods bound, gangs in part: {in_part}")
    kindred.start()
    whole = wait_for_whole_gangs(cluster)
    assert in_part.keys() <= whole
    assert_followed(kindred)


def test_no_gang_runs_in_part_though_the_leader_goes_while_gangs_are_placed(cluster: Cluster, note: Note) -> None:
    cluster.api.create_all(NODES, nodes())
    mode = MODES[ANY_NODE]
    with cluster.two_replicas(mode.settings) as (first, second, service):
        scheduler = cluster.start_scheduler(mode.config(service.url))
        cluster.create_pods(gangs(mode.scheduler_name))
        wait_until(lambda: scheduler.bound() >= SIZE, PATIENCE, "some pods bound", every=0.01)
        terminated(first)
        in_part = {name for name, members in running(cluster).items() if members < SIZE}
        wait_until(second.is_ready, PATIENCE, "the other replica leads")
        whole = wait_for_whole_gangs(cluster)
    note(f"the leader went with {len(in_part)} gangs in part; then {decisions(second)}")
    assert in_part <= whole
    assert_followed(second)


def test_a_pod_group_has_the_minimum_of_its_members(cluster: Cluster) -> None:
    crd = json.loads(CRD.read_text("utf-8"))
    cluster.api.apply(crd)
    try:
        wait_until(lambda: _is_served(cluster), PATIENCE, "PodGroups are served")
        cluster.api.create_all(NODES, nodes())
        kindred = cluster.start_kindred(MODES[ANY_NODE].settings)
        cluster.start_scheduler(MODES[ANY_NODE].config(kindred.url))
        made = [
            pod(f"{group}-{number}", {POD_GROUP_LABEL: group}, cpu="1", schedulerName=MODES[ANY_NODE].scheduler_name)
            for group in ("here", "nowhere")
            for number in range(3)
        ]
        cluster.create_pods(made[:2] + made[3:])
        rejected = "PodGroup e2e/nowhere does not exist"
        wait_until(lambda: rejected in cluster.condition("nowhere-0").get("message", ""), PATIENCE, "no PodGroup")
        cluster.api.create(POD_GROUPS, {**_GROUP, "metadata": {"name": "here"}, "spec": {"minMember": 3}})
        cluster.create_pods([made[2]])
        cluster.wait_bound(3)
        assert cluster.bound_names() == {"here-0", "here-1", "here-2"}
    finally:
        cluster.api.delete(f"{CRDS}/{crd['metadata']['name']}")


def _is_served(cluster: Cluster) -> bool:
    with suppress(httpx.HTTPStatusError):
        return cluster.api.items(POD_GROUPS) == []
    return False


def pools() -> list[Manifest]:
    """Give as many nodes for each way, which a label names."""
    amounts = {"cpu": str(_CPUS), "memory": "64Gi", "pods": "110"}
    made = [node(at, allocatable=amounts) for at in range(POOL * len(WAYS))]
    for at, each in enumerate(made):
        each["metadata"]["labels"]["pool"] = WAYS[at // POOL]
    return made


def packed_gangs(scheduler_name: str) -> list[Manifest]:
    """Give the members of three gangs that differ in their packing alone."""
    made = []
    for way in WAYS:
        for number in range(PACKED):
            member = pod(
                f"{way}-{number}",
                {"kindred.dev/group": way},
                cpu="1",
                schedulerName=scheduler_name,
                nodeSelector={"pool": way},
            )
            member["metadata"]["annotations"] = {
                "kindred.dev/group-minimum": str(PACKED),
                PACKING_ANNOTATION: way,
                **({TOPOLOGY_KEY_ANNOTATION: RACK} if way == "near" else {}),
            }
            made.append(member)
    return made


def taken(cluster: Cluster, label: str) -> dict[str, int]:
    """Count the values of a node label that the members of each gang have, as the API server has the objects."""
    values = {each["metadata"]["name"]: each["metadata"]["labels"][label] for each in cluster.api.items(NODES)}
    found: dict[str, set[str]] = {way: set() for way in WAYS}
    for each in cluster.pods():
        found[each["metadata"]["labels"]["kindred.dev/group"]].add(values[each["spec"]["nodeName"]])
    return {way: len(each) for way, each in found.items()}


def test_packed_gangs_end_on_the_fewest_nodes_or_in_the_fewest_racks(cluster: Cluster, note: Note) -> None:
    cluster.api.create_all(NODES, pools())
    kindred = cluster.start_kindred(MODES[ANY_NODE].settings)
    cluster.start_scheduler(MODES[ANY_NODE].config(kindred.url))
    cluster.create_pods(packed_gangs(MODES[ANY_NODE].scheduler_name))
    seconds = cluster.wait_bound(PACKED * len(WAYS))
    on_nodes, in_racks = taken(cluster, HOSTNAME), taken(cluster, RACK)
    note(f"nodes {on_nodes}, racks {in_racks}, after {seconds:.0f} s")
    assert on_nodes["pack"] == PACKED // _CPUS
    assert in_racks["near"] == 2
    assert on_nodes["spread"] > on_nodes["pack"]  # the control
    assert in_racks["spread"] > in_racks["near"]
    assert cluster.rejections() == []
    assert_followed(kindred)
