"""The holes 6 to 11 that upstream's equivalence cache had, by their numbers in the list, none of which is here."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.equivalence.class_entry import ENTRY_BYTES
from core.framework.interface import AnyFilter
from core.framework.status import Code
from core.objects.host_port import HostPort
from core.objects.labels import Operator, Requirement
from core.objects.node import Node
from core.objects.node_selector import NodeSelector, NodeSelectorTerm
from core.objects.pod_volumes import InlineDisk, PodClaim
from core.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeSource
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.nodename import NodeName
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.tainttoleration import TaintToleration
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions.plugin import VolumeRestrictions
from core.plugins.volumezone import VolumeZone
from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import node_of, pod_of
from tests.core.equivalence.held_cluster import HeldCluster, on
from tests.core.equivalence.said_plugin import statuses, whole

EBS: Final = "ebs.csi.aws.com"
A, B, C = (node_of(make_node(name).label("zone", zone)) for name, zone in (("a", "x"), ("b", "x"), ("c", "y")))
"""Two nodes of one zone, and one of another."""
WEB, DB = (make_pod(app).label("app", app) for app in ("web", "db"))
SMALL_NODE: Final = node_of(make_node("a").allocatable(cpu="1", memory="1Gi", pods=10))
HALF: Final = pod_of(WEB.requests(cpu="600m"))
_CLAIMING: Final = replace(pod_of(WEB), volumes=(PodClaim("c"),))
_CLAIM: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", volume="pv", bind_completed=True)
_UNBOUND: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", storage_class="s")
_WAITING: Final = StorageClass(name="s", provisioner=EBS, volume_binding_mode="WaitForFirstConsumer")
_IN_X: Final = NodeSelector((NodeSelectorTerm((Requirement("zone", Operator.IN, ("x",)),)),))
_VOLUME: Final = PersistentVolume(name="pv", source=VolumeSource(EBS, "vol-1"), node_affinity=_IN_X)


def affinity(*nodes: Node) -> HeldCluster:
    return HeldCluster(*(nodes or (A, B, C)), filters=(InterPodAffinity(),))


# 6. spec.unschedulable without a condition change. Attachable-volume limits. StorageClass and CSINode events.


def test_hole_6_a_cordon_changes_no_condition() -> None:
    cluster = HeldCluster(A, filters=(NodeUnschedulable(),))
    assert cluster.fits(pod_of(WEB)) == ["a"]

    cluster.sees(replace(A, unschedulable=True))
    assert cluster.fits(pod_of(WEB)) == []

    cluster.sees(A)
    assert cluster.fits(pod_of(WEB)) == ["a"]


def test_hole_6_limits_of_attachable_volumes() -> None:
    limited = CSINode(name="a", volume_limits={EBS: 1})
    cluster = HeldCluster(A, _CLAIM, _VOLUME, filters=(NodeVolumeLimits(),))
    assert cluster.fits(_CLAIMING) == ["a"]

    cluster.sees(replace(limited, volume_limits={EBS: 0}))
    assert cluster.fits(_CLAIMING) == []

    cluster.sees(limited)
    assert cluster.fits(_CLAIMING) == ["a"]

    cluster.sees(replace(limited, volume_limits={EBS: 0}))
    cluster.loses(limited)
    assert cluster.fits(_CLAIMING) == ["a"]


@pytest.mark.parametrize("plugin", [VolumeBinding(), VolumeZone()], ids=lambda plugin: plugin.name)
def test_hole_6_a_storage_class_comes_changes_and_goes(plugin: AnyFilter) -> None:
    cluster = HeldCluster(A, _UNBOUND, filters=(plugin,))
    assert cluster.fits(_CLAIMING) == []

    cluster.sees(_WAITING)
    assert cluster.fits(_CLAIMING) == ["a"]

    cluster.sees(replace(_WAITING, volume_binding_mode="Immediate"))
    assert cluster.fits(_CLAIMING) == []

    cluster.sees(_WAITING)
    cluster.loses(_WAITING)
    assert cluster.fits(_CLAIMING) == []


# 7. NoDiskConflict on pod add. Other protocols and host IPs. Pods that end, are resized in place, or relabelled.


def test_hole_7_a_pod_that_is_added_has_taken_a_shared_disk() -> None:
    disk = InlineDisk("v", VolumeSource("kubernetes.io/gce-pd", "disk", in_tree=True))
    pod = replace(pod_of(WEB), volumes=(disk,))
    cluster = HeldCluster(A, B, filters=(VolumeRestrictions(),))
    assert cluster.fits(pod) == ["a", "b"]

    cluster.sees(on("a", replace(pod_of(DB), volumes=(disk,))))
    assert cluster.fits(pod) == ["b"]


@pytest.mark.parametrize(
    ("port", "conflicts"),
    [
        pytest.param(HostPort(80), True, id="the-same"),
        pytest.param(HostPort(80, "UDP"), False, id="another-protocol"),
        pytest.param(HostPort(80, ip="10.0.0.2"), False, id="another-address"),
        pytest.param(HostPort(80, ip="10.0.0.1"), True, id="the-same-address"),
        pytest.param(HostPort(81), False, id="another-port"),
    ],
)
def test_hole_7_host_ports_are_told_apart_by_protocol_and_address(port: HostPort, conflicts: bool) -> None:  # noqa: FBT001 - expected
    pod = replace(pod_of(WEB), host_ports=frozenset({HostPort(80, ip="10.0.0.1")}))
    cluster = HeldCluster(A, filters=(NodePorts(),))
    assert cluster.fits(pod) == ["a"]

    cluster.sees(there := on("a", replace(pod_of(DB), host_ports=frozenset({HostPort(8080)}))))
    assert cluster.fits(pod) == ["a"]

    cluster.sees(replace(there, host_ports=frozenset({port})))
    assert cluster.fits(pod) == ([] if conflicts else ["a"])


def test_hole_7_a_pod_that_has_ended_holds_nothing() -> None:
    pod = pod_of(WEB.requests(cpu="600m").host_port(80).required_anti_affinity(term("zone", labelled(app="web"))))
    node = replace(SMALL_NODE, labels={"zone": "x"})
    cluster = HeldCluster(node, filters=(NodeResourcesFit(), NodePorts(), InterPodAffinity()))
    cluster.sees(there := on("a", pod, "there"))
    assert len(cluster.answers(pod)["a"]) == 3

    cluster.sees(replace(there, terminal=True))
    assert cluster.fits(pod) == ["a"]


def test_hole_7_a_pod_that_is_resized_in_place_holds_another_amount() -> None:
    cluster = HeldCluster(SMALL_NODE, there := on("a", HALF, "there"), filters=(NodeResourcesFit(),))
    assert cluster.fits(HALF) == []

    cluster.sees(replace(there, requests={"cpu": 100}))
    assert cluster.fits(HALF) == ["a"]

    cluster.sees(replace(there, requests={"cpu": 500}))
    assert cluster.fits(HALF) == []


def test_hole_7_a_bound_pod_that_is_relabelled_is_another_for_all_terms() -> None:
    pod = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    cluster = affinity()
    cluster.sees(there := on("a", pod_of(DB)))
    assert cluster.fits(pod) == ["c"]

    cluster.sees(replace(there, labels={"app": "other"}))
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(there)
    assert cluster.fits(pod) == ["c"]


# 8. A composite key invalidated but not its parts. An unknown key must fail loudly, not pass.


def test_hole_8_every_part_of_general_predicates_is_invalid_by_itself() -> None:
    pod = pod_of(WEB.requests(cpu="600m").host_port(80).node_selector({"disk": "ssd"}))
    node = replace(SMALL_NODE, labels={"disk": "ssd"})
    parts = (NodeResourcesFit(), NodeName(), NodePorts(), NodeAffinity())
    cluster = HeldCluster(node, filters=parts)
    assert cluster.fits(pod) == ["a"]

    cluster.sees(replace(node, labels={}))
    assert cluster.answers(pod)["a"] == ("node(s) didn't match Pod's node affinity/selector",)

    cluster.sees(there := on("a", pod_of(DB.host_port(80))))
    assert len(cluster.answers(pod)["a"]) == 2

    cluster.sees(replace(there, requests={"cpu": 500}))
    assert len(cluster.answers(pod)["a"]) == 3

    cluster.sees(node)
    cluster.loses(there)
    assert cluster.fits(pod) == ["a"]


def test_hole_8_an_unknown_predicate_fails_loudly() -> None:
    cluster = HeldCluster(A, filters=(NodeName(),))
    evaluation = cluster.cache.evaluation(pod_of(WEB))

    with pytest.raises(KeyError, match="TaintToleration"):
        statuses(evaluation, TaintToleration(), whole(cluster.mirror))


# 9. A node deleted and created again under the same name while a computation runs.


@pytest.mark.parametrize("asked_before", [["a"], ["a", "b"], []], ids=["in-part", "whole", "not-at-all"])
def test_hole_9_a_node_that_is_made_again_is_another_node(asked_before: list[str]) -> None:
    pod = pod_of(WEB.node_selector({"disk": "ssd"}))
    first, again = Node("a", {"disk": "ssd"}, uid="1"), Node("a", {"disk": "hdd"}, uid="2")
    cluster = HeldCluster(first, Node("b", {"disk": "ssd"}), filters=(NodeAffinity(),))
    early = cluster.cache.evaluation(pod)
    statuses(early, cluster.filters[0], cluster.mirror.batch(asked_before))

    cluster.loses(first, Node("b"))  # so that the slots change hands
    cluster.sees(again, Node("b", {"disk": "ssd"}))
    statuses(early, cluster.filters[0], whole(cluster.mirror))
    assert cluster.fits(pod) == ["b"]


def test_hole_9_pods_of_the_node_that_was_are_not_on_the_one_that_is() -> None:
    cluster = HeldCluster(SMALL_NODE, there := on("a", HALF, "there"), filters=(NodeResourcesFit(),))
    assert cluster.fits(HALF) == []

    cluster.loses(SMALL_NODE)
    cluster.loses(there)
    cluster.sees(SMALL_NODE)
    assert cluster.fits(HALF) == ["a"]


# 10. Error results are never cached. Reasons of a hit are those of a fresh run, and the caller's own.


def test_hole_10_an_error_is_gone_when_its_cause_is() -> None:
    nameless = replace(_WAITING, volume_binding_mode=None)
    cluster = HeldCluster(A, _UNBOUND, nameless, filters=(VolumeBinding(),))
    for _ in range(2):
        (status,) = statuses(cluster.cache.evaluation(_CLAIMING), cluster.filters[0], whole(cluster.mirror))
        assert status.code is Code.ERROR
    assert cluster.cache.statistics.hits == 0

    cluster.sees(_WAITING)
    assert cluster.fits(_CLAIMING) == ["a"]


def test_hole_10_reasons_of_a_hit_are_those_of_a_fresh_run_and_the_callers_own() -> None:
    tainted = node_of(make_node("a").taint("first", "1", "NoSchedule").taint("second", "2", "NoExecute"))
    starved = node_of(make_node("b").allocatable(pods=0))
    pod = pod_of(WEB.requests(cpu="1", memory="1Gi"))
    cluster = HeldCluster(tainted, starved, filters=(TaintToleration(), NodeResourcesFit()))
    lacking = ("Too many pods", "Insufficient cpu", "Insufficient memory")
    expected = {"a": ("node(s) had untolerated taint {first: 1}", *lacking), "b": lacking}
    for _ in range(3):
        assert cluster.answers(pod) == expected
        for plugin in cluster.filters:
            verdicts = cluster.cache.evaluation(pod).verdicts(plugin, whole(cluster.mirror))
            assert verdicts is not None
            verdicts.codes[:] = 0
            verdicts.statuses = ()
    assert cluster.misses() == 4


# 11. Unbounded growth: many one-off classes (a label per pod), node churn. Bounded by bytes.


def test_hole_11_a_label_per_pod_does_not_let_the_cache_grow() -> None:
    cluster = HeldCluster(A, B, C, filters=(InterPodAffinity(), NodeResourcesFit()), max_bytes=20 * ENTRY_BYTES)
    for number in range(200):
        cluster.answers(pod_of(make_pod(f"db-{number}").label("pod-name", f"db-{number}")))
        assert cluster.cache.nbytes <= 20 * ENTRY_BYTES

    assert 0 < len(cluster.cache) < 20
    assert cluster.cache.statistics.evictions == 200 - len(cluster.cache)


def test_hole_11_nodes_that_come_and_go_do_not_let_the_cache_grow() -> None:
    cluster = HeldCluster(A, filters=(TaintToleration(),))
    cluster.answers(pod_of(WEB))
    before = cluster.cache.nbytes
    for number in range(300):
        cluster.sees(short_lived := node_of(make_node(f"spot-{number}").taint("spot", str(number), "NoSchedule")))
        assert cluster.fits(pod_of(WEB)) == ["a"]
        cluster.loses(short_lived)
        cluster.answers(pod_of(WEB))

    assert cluster.cache.nbytes < before + 300 * 1024
    assert len(cluster.cache) == 1


def test_hole_11_a_taint_that_says_the_time_does_not_let_the_reasons_grow() -> None:
    cluster = HeldCluster(A, filters=(TaintToleration(),))
    longest = 0
    for number in range(2500):
        cluster.sees(node_of(make_node("a").taint("seen", str(number), "NoSchedule")))
        assert cluster.fits(pod_of(WEB)) == []
        (entry,) = cluster.cache
        longest = max(longest, len(entry.filters["TaintToleration"].statuses))

    assert longest < 2000
