"""The usage that was measured of a node, and of how many nodes, as explanations have it."""

from typing import Final

from core.diagnosis.amounts import cluster_amounts, node_amounts
from core.diagnosis.diagnosis import Diagnosis
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Usage
from core.plugins.load.explaining import MeasuredResource, UsageInCluster, UsageOnNode
from core.profile import full_profile, parse_profile
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, pod_of
from tests.core.plugins.load.test_load import AFTER, FOUR_CORES, GIB, metrics

PROFILE: Final = parse_profile("full,TargetLoadPacking=5")
NEW: Final = make_pod("new").uid("new").image("a").on("n1").started(AFTER)


def measured() -> ClusterMirror:
    """Return n1, measured with a pod that started later, n2, measured too long ago, and n3, not measured."""
    mirror = mirror_of(FOUR_CORES, make_node("n2"), make_node("n3"), NEW)
    mirror.apply(ClusterEvent("Add", metrics(Usage(800, 50), Usage(GIB))))
    mirror.apply(ClusterEvent("Add", metrics(Usage(1), name="n2", too_old=True)))
    return mirror


def decision() -> Diagnosis:
    mirror = measured()
    return Diagnosis(PROFILE, mirror, pod_of(make_pod("p")), mirror.batch(["n1", "n2", "n3", "stranger"]))


def test_a_node_is_told_with_what_was_measured_and_the_pods_that_were_not() -> None:
    assert node_amounts(decision(), 0, 3).usage == UsageOnNode(
        measured_at=metrics().measured_at,
        too_old=False,
        resources=[MeasuredResource("cpu", 800, 50, 4000), MeasuredResource("memory", GIB, None, 8 * GIB)],
        pods_not_covered=1,
    )


def test_a_measurement_that_is_too_old_or_missing_is_told() -> None:
    old, missing, unknown = (node_amounts(decision(), position, 3).usage for position in (1, 2, 3))
    assert old is not None
    assert old.too_old
    assert missing == UsageOnNode(None, too_old=False, resources=(), pods_not_covered=0)
    assert unknown is None


def test_nodes_are_counted_by_their_measurement() -> None:
    assert cluster_amounts(decision(), 3).usage == UsageInCluster(measured=1, too_old=1, not_measured=2)


def test_nothing_is_told_where_no_plugin_follows_the_load() -> None:
    mirror = measured()
    plain = Diagnosis(full_profile(), mirror, pod_of(make_pod("p")), mirror.batch(["n1"]))
    assert (node_amounts(plain, 0, 3).usage, cluster_amounts(plain, 3).usage) == (None, None)
