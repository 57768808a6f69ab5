"""Nodes, volumes and other objects that change: cached answers follow, also those of an evaluation from before."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.interface import AnyFilter
from core.objects.labels import Operator, Requirement
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.node_selector import NodeSelector, NodeSelectorTerm
from core.objects.pod import Pod
from core.objects.pod_volumes import PodClaim
from core.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeSource
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.nodename import NodeName
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumezone import VolumeZone
from tests.builders import expressed, labelled, term
from tests.core.decoded import pod_of
from tests.core.equivalence.held_cluster import DB, HALF, SMALL_NODE, WEB, A, B, C, HeldCluster, affinity, on
from tests.core.equivalence.said_plugin import statuses, whole

ZONE: Final = "topology.kubernetes.io/zone"
EBS: Final = "ebs.csi.aws.com"
_CLAIMING: Final = replace(pod_of(WEB), volumes=(PodClaim("c"),))
_CLAIM: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", volume="pv", bind_completed=True)
_UNBOUND: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", storage_class="s")
_WAITING: Final = StorageClass(name="s", provisioner=EBS, volume_binding_mode="WaitForFirstConsumer")
_IN_X: Final = NodeSelector((NodeSelectorTerm((Requirement("zone", Operator.IN, ("x",)),)),))
_VOLUME: Final = PersistentVolume(name="pv", source=VolumeSource(EBS, "vol-1"), node_affinity=_IN_X)
_SELECTED: Final = pod_of(
    WEB.required_anti_affinity(term("zone", labelled(app="db"), namespace_selector=labelled(team="red")))
)


@pytest.mark.parametrize(
    ("plugin", "pod", "before", "then", "expected"),
    [
        pytest.param(
            VolumeBinding(),
            _CLAIMING,
            (_CLAIM, _VOLUME),
            replace(_VOLUME, node_affinity=None),
            ["a", "b", "c"],
            id="PV",
        ),
        pytest.param(VolumeBinding(), _CLAIMING, (_CLAIM, _VOLUME), replace(_CLAIM, phase="Lost"), [], id="PVC"),
        pytest.param(
            VolumeBinding(),
            _CLAIMING,
            (_UNBOUND, _WAITING),
            replace(_WAITING, allowed_topologies=_IN_X),
            ["a", "b"],
            id="StorageClass",
        ),
        pytest.param(
            InterPodAffinity(),
            _SELECTED,
            (Namespace("other"), replace(on("a", pod_of(DB)), namespace="other")),
            Namespace("other", {"team": "red"}),
            ["c"],
            id="Namespace-labels",
        ),
        pytest.param(
            NodeAffinity(),
            pod_of(WEB.node_selector({"disk": "ssd"})),
            (),
            replace(A, labels={**A.labels, "disk": "ssd"}),
            ["a"],
            id="Node-negative",
        ),
        pytest.param(
            InterPodAffinity(),
            pod_of(WEB.required_affinity(term("zone", labelled(app="db")))),
            (),
            on("c", pod_of(DB)),
            ["c"],
            id="Pod-negative",
        ),
    ],
)
def test_nothing_from_before_an_event_is_written_after_it(
    plugin: AnyFilter, pod: Pod, before: tuple[Object, ...], then: Object, expected: list[str]
) -> None:
    cluster = HeldCluster(A, B, C, *before, filters=(plugin,))
    early = cluster.cache.evaluation(pod)
    statuses(early, plugin, cluster.mirror.batch(["a"]))  # of which the others' cells are still missing
    cluster.sees(then)
    statuses(early, plugin, whole(cluster.mirror))

    assert cluster.fits(pod) == expected


@pytest.mark.parametrize(
    ("operator", "bare", "labelled_as"),
    [
        pytest.param("Exists", [], ["a"], id="exists"),
        pytest.param("DoesNotExist", ["a"], [], id="does-not-exist"),
        pytest.param("In", [], ["a"], id="in"),
        pytest.param("NotIn", ["a"], [], id="not-in"),
    ],
)
def test_a_node_label_counts_when_it_comes_and_when_it_goes(
    operator: str, bare: list[str], labelled_as: list[str]
) -> None:
    values = ("ssd",) if operator in ("In", "NotIn") else ()
    pod = pod_of(WEB.required_node_affinity(expressed("disk", operator, *values)))
    cluster = HeldCluster(unlabelled := Node("a"), filters=(NodeAffinity(),))
    assert cluster.fits(pod) == bare

    cluster.sees(replace(unlabelled, labels={"disk": "ssd"}))
    assert cluster.fits(pod) == labelled_as

    cluster.sees(unlabelled)
    assert cluster.fits(pod) == bare


def test_a_topology_label_that_is_added_brings_a_node_into_a_domain() -> None:
    pod = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    cluster = affinity(A, Node("b"))
    cluster.sees(on("a", pod_of(DB)))
    assert cluster.fits(pod) == ["b"]

    cluster.sees(B)
    assert cluster.fits(pod) == []

    cluster.sees(Node("b"))
    assert cluster.fits(pod) == ["b"]


def test_a_zone_label_of_a_volume_counts_when_it_comes_and_when_it_goes() -> None:
    bare = PersistentVolume(name="pv")
    cluster = HeldCluster(Node("a", {ZONE: "x"}), Node("c", {ZONE: "y"}), _CLAIM, bare, filters=(VolumeZone(),))
    assert cluster.fits(_CLAIMING) == ["a", "c"]

    for zone in ("x", "y"):
        cluster.sees(replace(bare, labels={ZONE: zone}))
        assert cluster.fits(_CLAIMING) == [{"x": "a", "y": "c"}[zone]]

    cluster.sees(bare)
    assert cluster.fits(_CLAIMING) == ["a", "c"]


def test_a_cordon_changes_no_condition() -> None:
    cluster = HeldCluster(A, filters=(NodeUnschedulable(),))
    assert cluster.fits(pod_of(WEB)) == ["a"]

    cluster.sees(replace(A, unschedulable=True))
    assert cluster.fits(pod_of(WEB)) == []

    cluster.sees(A)
    assert cluster.fits(pod_of(WEB)) == ["a"]


def test_limits_of_attachable_volumes() -> None:
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
def test_a_storage_class_comes_changes_and_goes(plugin: AnyFilter) -> None:
    cluster = HeldCluster(A, _UNBOUND, filters=(plugin,))
    assert cluster.fits(_CLAIMING) == []

    cluster.sees(_WAITING)
    assert cluster.fits(_CLAIMING) == ["a"]

    cluster.sees(replace(_WAITING, volume_binding_mode="Immediate"))
    assert cluster.fits(_CLAIMING) == []

    cluster.sees(_WAITING)
    cluster.loses(_WAITING)
    assert cluster.fits(_CLAIMING) == []


def test_every_part_of_general_predicates_is_invalid_by_itself() -> None:
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


@pytest.mark.parametrize("asked_before", [["a"], ["a", "b"], []], ids=["in-part", "whole", "not-at-all"])
def test_a_node_that_is_made_again_is_another_node(asked_before: list[str]) -> None:
    pod = pod_of(WEB.node_selector({"disk": "ssd"}))
    first, again = Node("a", {"disk": "ssd"}, uid="1"), Node("a", {"disk": "hdd"}, uid="2")
    cluster = HeldCluster(first, Node("b", {"disk": "ssd"}), filters=(NodeAffinity(),))
    early = cluster.cache.evaluation(pod)
    statuses(early, cluster.filters[0], cluster.mirror.batch(asked_before))

    cluster.loses(first, Node("b"))  # so that the slots change hands
    cluster.sees(again, Node("b", {"disk": "ssd"}))
    statuses(early, cluster.filters[0], whole(cluster.mirror))
    assert cluster.fits(pod) == ["b"]


def test_pods_of_the_node_that_was_are_not_on_the_one_that_is() -> None:
    cluster = HeldCluster(SMALL_NODE, there := on("a", HALF, "there"), filters=(NodeResourcesFit(),))
    assert cluster.fits(HALF) == []

    cluster.loses(SMALL_NODE)
    cluster.loses(there)
    cluster.sees(SMALL_NODE)
    assert cluster.fits(HALF) == ["a"]
