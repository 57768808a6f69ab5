"""Resources of one node, and of all."""

import pytest

from core.diagnosis.amounts.resources import ResourceInCluster, ResourceOnNode, resources_in_cluster, resources_on_node
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.remedy import Kind
from core.diagnosis.remedies.what_would_help import what_would_help
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass
from core.profile import parse_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import make_node
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import asking, decision_in, decision_of, roomy, using
from tests.core.profile_parts import affinity_profile

GI = 2**30
NODES = (roomy("n1", cpu="4"), roomy("n2", cpu="8"))
RUNNING = (using("a", "n1", cpu="1500m", memory="1Gi"), using("b", "n2", cpu="4800m"))


def test_each_resource_of_a_node_is_told_with_what_is_missing() -> None:
    found = resources_on_node(decision_of(asking(cpu="7500m", memory="2Gi"), *NODES, *RUNNING), 0)
    assert [
        ResourceOnNode("pods", 1, 10, 1, 9, 0),
        ResourceOnNode("cpu", 7500, 4000, 1500, 2500, 5000),
        ResourceOnNode("memory", 2 * GI, 16 * GI, GI, 15 * GI, 0),
    ] == list(found)


def test_the_most_that_is_free_is_told_with_its_node() -> None:
    found = resources_in_cluster(decision_of(asking(cpu="7500m"), *NODES, *RUNNING))
    assert [
        ResourceInCluster("pods", 1, 18, 9, "n1", 2),
        ResourceInCluster("cpu", 7500, 5700, 3200, "n2", 0),
    ] == list(found)


def test_a_full_node_misses_room_for_one_pod() -> None:
    full = make_node("full").allocatable(cpu="4", pods=1)
    [pods] = resources_on_node(decision_of(asking(), full, using("a", "full")), 0)
    assert ResourceOnNode("pods", 1, 1, 1, 0, 1) == pods


@pytest.mark.parametrize(("minor", "missing"), [(35, 1), (36, 0)])
def test_what_a_release_leaves_to_devices_is_not_missing(minor: int, missing: int) -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, minor)))
    for each in (node_of(NODES[0]), DeviceClass(name="gpu", extended_resource="example.com/gpu")):
        mirror.apply(ClusterEvent("Add", each))
    decision = decision_in(mirror, pod_of(asking(**{"example.com/gpu": 1})))
    assert [each.missing for each in resources_on_node(decision, 0)] == [0, missing]
    helps = [each.kind for each in what_would_help(decision, 5)]
    assert helps == ([Kind.LOWER_REQUESTS] if missing else [])


def test_a_profile_without_the_plugin_measures_nothing() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(affinity_profile(), mirror, pod_of(asking(cpu="9")), mirror.batch(["n1"]))
    assert not resources_on_node(decision, 0)
    assert not resources_in_cluster(decision)


def test_a_composite_has_the_amounts_of_its_parts() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(parse_profile("GeneralPredicates"), mirror, pod_of(asking(cpu="9")), mirror.batch(["n1"]))
    assert [each.missing for each in resources_on_node(decision, 0)] == [0, 5000]


def test_nodes_of_which_nothing_is_known_are_left_out_of_the_sums() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(
        decision_of(asking()).profile, mirror, pod_of(asking(cpu="1")), mirror.batch(["nowhere", "n2"])
    )
    assert [each.free for each in resources_in_cluster(decision)] == [10, 8000]
    assert not resources_in_cluster(decision_of(asking()))
