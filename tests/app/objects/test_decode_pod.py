"""v1 pods and their groups to the core's values: what is read, and of which form."""

import json
from operator import attrgetter
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from app.objects.decode_groups import decode_pod_group, decode_scheduling_group
from app.objects.decode_pod import decode_pod
from core.objects.affinity import NO_AFFINITY, NO_NODE_AFFINITY, NodeAffinity
from core.objects.groups import SPREAD, Packing, PackingWay, SchedulingGroup
from core.objects.kinds import ControllerRef
from core.objects.labels import Operator, Requirement, Selector
from core.objects.pod import (
    NOT_WAITING,
    Demand,
    HostPort,
    InlineDisk,
    Pod,
    PodClaim,
    PodVolume,
    RBDImage,
    SpreadConstraint,
    Toleration,
    Waiting,
)
from core.objects.pod_requests import PodLoad
from core.objects.volumes import VolumeSource
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.builders import Object, make_pod
from tests.core.decoded import demanding, pod_of


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_pod_is_reduced_to_what_scheduling_reads() -> None:
    expected = Pod(
        uid="uid-web-1",
        namespace="shop",
        name="web-1",
        labels={"app": "web"},
        node_name="n1",
        requests={"cpu": 260, "memory": 64 * 2**20},
        best_effort=False,
        controller=ControllerRef("Owner", "c", "uid-c", "v1"),
        resource_version="42",
        demand=Demand(
            non_zero_requests=(260, 64 * 2**20),
            scored_requests=(510, 128 * 2**20),
            load=PodLoad(limited_cpu=1500, overhead_cpu=10, limits=(1510, 10**8)),
            origins=(("cpu", "spec.resources of the pod, with overhead"), ("memory", "spec.resources of the pod")),
            overhead=(("cpu", 10),),
            host_ports=frozenset({HostPort(80)}),
            images=(":latest", "i:latest"),
        ),
        tolerations=frozenset({Toleration("gpu", "Exists")}),
        node_affinity=NodeAffinity(Selector((Requirement("disk", Operator.IN, ("ssd",)),))),
        volumes=(PodClaim("data"),),
        spread=(SpreadConstraint(1, "zone"),),
    )
    read = decode_pod(encoded(FULL_OBJECTS[Pod]))
    assert expected == demanding(replace(read, affinity=NO_AFFINITY), resources=None)  # which have files of their own


def test_a_hand_written_manifest_needs_only_a_name() -> None:
    assert Pod(uid="default/p", namespace="default", name="p") == decode_pod(b'{"metadata":{"name":"p"}}')
    assert decode_pod(b'{"metadata":{"generateName":"web-","namespace":"x","uid":""}}').uid == "x/web-"


def test_pods_of_one_controller_share_all_but_their_names() -> None:
    pods = []
    for number in "12":
        wire = json.loads(json.dumps(FULL_OBJECTS[Pod]))
        wire["metadata"] |= {"name": f"web-{number}", "uid": number}
        wire["status"]["containerStatuses"][0] |= {"containerID": number, "restartCount": int(number)}
        pods.append(decode_pod(encoded(wire)))
    one, other = pods
    assert (one.name, other.name) == ("web-1", "web-2")
    for member in set(Pod.__struct_fields__) - {"name", "uid", "resource_version"}:
        assert getattr(one, member) is getattr(other, member), member


def test_pods_that_ask_nothing_of_their_nodes_share_the_values_of_none() -> None:
    pod, default = decode_pod(b'{"metadata":{"name":"p"},"spec":{}}'), Pod("u", "default", "p")
    for member in (
        "tolerations",
        "demand.host_ports",
        "demand.images",
        "volumes",
        "spread",
        "affinity",
        "node_affinity",
    ):
        assert attrgetter(member)(pod) is attrgetter(member)(default), member


CONDITION: Object = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(None, False, id="none"),
        pytest.param([CONDITION], True, id="by-the-scheduler"),
        pytest.param([{"type": "Ready", "status": "False"}, CONDITION], True, id="among-others"),
        pytest.param([{**CONDITION, "reason": "EvictionByEvictionAPI"}], False, id="for-another-reason"),
        pytest.param([{**CONDITION, "status": "False"}], False, id="not-any-more"),
        pytest.param([{**CONDITION, "status": "False"}, CONDITION], False, id="the-first-one-tells"),
        pytest.param([{"type": None, "status": None, "reason": None}], False, id="null"),
    ],
)
def test_a_terminating_pod_tells_whether_a_scheduler_preempted_it(
    conditions: list[Object] | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    wire: Object = {"metadata": {"name": "p"}, "status": {"conditions": conditions}}
    assert not decode_pod(encoded(wire)).preempted
    wire["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert decode_pod(encoded(wire)).preempted is expected


def test_what_preemption_reads_of_a_pod() -> None:
    pod = make_pod("p").priority(-5).preemption_policy("Never").started("2026-01-01T00:00:00Z").nominated("n1")
    expected = Pod(
        uid="default/p",
        namespace="default",
        name="p",
        priority=-5,
        preemption_policy="Never",
        start_time="2026-01-01T00:00:00Z",
        nominated_node_name="n1",
    )
    assert decode_pod(pod.json()) == expected


@pytest.mark.parametrize(
    "affinity",
    [b"null", b"\n\tnull\r\n", b'{"nodeAffinity":{"anything":[1]}}', b'{"podAffinity":{},"podAntiAffinity":{}}'],
    ids=["null", "null-in-lines", "node-affinity-of-nothing", "no-lists"],
)
def test_an_affinity_without_terms_is_the_one_value_of_none(affinity: bytes) -> None:
    pod = decode_pod(b'{"metadata":{"name":"p"},"spec":{"affinity":%s}}' % affinity)
    assert pod.affinity is NO_AFFINITY
    assert pod.node_affinity is NO_NODE_AFFINITY


@pytest.mark.parametrize(
    ("conditions", "node", "expected"),
    [
        pytest.param(None, "", "", id="none"),
        pytest.param(
            [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}], "", "Unschedulable", id="false"
        ),
        pytest.param([{"type": "PodScheduled", "status": "True", "reason": "x"}], "", "", id="true"),
        pytest.param([{"type": "Ready", "status": "False", "reason": "x"}], "", "", id="another"),
        pytest.param([{"type": "PodScheduled", "status": "False"}], "", "", id="no-reason"),
        pytest.param([{"type": "PodScheduled", "status": "False", "reason": "x"}], "n1", "", id="bound-since"),
    ],
)
def test_a_pod_without_a_node_tells_why_its_last_attempt_failed(
    conditions: list[Object] | None, node: str, expected: str
) -> None:
    wire: Object = {"metadata": {"name": "p"}, "spec": {"nodeName": node}, "status": {"conditions": conditions}}
    assert expected == decode_pod(encoded(wire)).failure


def test_a_pod_without_a_node_tells_how_it_waits() -> None:
    pod = (
        make_pod("p")
        .created("2026-01-01T00:00:00Z")
        .gated("a.example/x", "b")
        .unschedulable("x" * 1001, "2026-01-02T00:00:00Z")
    )
    assert decode_pod(pod.json()).waiting == Waiting(
        "2026-01-01T00:00:00Z", ("a.example/x", "b"), "Unschedulable", "x" * 1000, "2026-01-02T00:00:00Z"
    )
    assert decode_pod(pod.on("n1").json()).waiting is NOT_WAITING
    assert decode_pod(make_pod("p").json()).waiting is NOT_WAITING


@pytest.mark.parametrize(
    ("spec", "group", "claims_resources"),
    [
        pytest.param({}, "", False, id="absent"),
        pytest.param({"schedulingGroup": None, "resourceClaims": None}, "", False, id="null"),
        pytest.param({"schedulingGroup": {}, "resourceClaims": []}, "", False, id="empty"),
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, "default/g", False, id="group"),
        pytest.param({"workloadRef": None}, "", False, id="null-workload"),
        pytest.param({"workloadRef": {"name": "w", "podGroup": "g"}}, "default/w/g", False, id="workload-of-1.35"),
        pytest.param(
            {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}},
            "default/w/g/0",
            False,
            id="replica-key",
        ),
        pytest.param({"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]}, "", True, id="claim"),
        pytest.param(
            # A claim of a PodGroup: an entry equal to that of the group (resourceclaim.BindTo of v1.36 and v1.37).
            {
                "schedulingGroup": {"podGroupName": "g"},
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            },
            "default/g",
            True,
            id="claim-of-a-pod-group",
        ),
    ],
)
def test_what_a_decision_reads_of_a_pod(spec: Object, group: str, claims_resources: bool) -> None:  # noqa: FBT001 - columns of the table
    pod = decode_pod(encoded({"metadata": {"name": "p"}, "spec": spec}))
    assert (group, claims_resources) == (pod.scheduling_group, pod.claims_resources)
    assert pod.in_scheduling_group is bool(group)


@pytest.mark.parametrize("label", ["kindred.dev/group", "scheduling.x-k8s.io/pod-group"])
def test_a_pod_of_a_group_that_kube_scheduler_places_is_in_no_group_of_kindred(label: str) -> None:
    """Else Kindred would refuse all nodes for it, as its other members are placed by kube-scheduler."""
    pod = make_pod("p").label(label, "g")
    assert decode_pod(pod.json()).group_name == "default/g"
    decoded = decode_pod(pod.in_scheduling_group("h").json())
    assert (decoded.group, decoded.scheduling_group) == (None, "default/h")


# Volumes.


def volumes_of(*wires: object) -> tuple[PodVolume, ...]:
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": {"volumes": wires}}).encode()).volumes


def disk(plugin: str, volume: str, *, read_only: bool = False, kind: str | None = None) -> InlineDisk:
    return InlineDisk("v", VolumeSource(f"kubernetes.io/{plugin}", volume, in_tree=True, kind=kind), read_only)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}, PodClaim("c"), id="claim-to-read"
        ),
        pytest.param({"persistentVolumeClaim": {"claimName": None}}, PodClaim(""), id="claim-without-a-name"),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, PodClaim("p-v", ephemeral=True), id="ephemeral"
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, disk("gce-pd", "d", read_only=True), id="gce"
        ),
        pytest.param({"gcePersistentDisk": {"pdName": "d", "fsType": "ext4"}}, disk("gce-pd", "d"), id="gce-to-write"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}},
            disk("aws-ebs", "vol-1"),
            id="ebs-is-the-same-read-only",
        ),
        pytest.param(
            {"azureDisk": {"diskURI": "u", "kind": "Dedicated"}}, disk("azure-disk", "u", kind="Dedicated"), id="azure"
        ),
        pytest.param({"cinder": {"volumeID": "c"}}, disk("cinder", "c"), id="cinder"),
        pytest.param({"portworxVolume": {"volumeID": "x"}}, disk("portworx-volume", "x"), id="portworx"),
        pytest.param(
            {"iscsi": {"iqn": "iqn.a", "targetPortal": "t", "readOnly": True}},
            disk("iscsi", "iqn.a", read_only=True),
            id="iscsi",
        ),
        pytest.param(
            {"rbd": {"monitors": ["b", "a"], "pool": "rbd", "image": "i", "readOnly": True}},
            RBDImage(frozenset({"a", "b"}), "rbd", "i", read_only=True),
            id="rbd",
        ),
        pytest.param(
            {"rbd": {"monitors": None, "pool": None, "image": None, "readOnly": None}},
            RBDImage(frozenset(), "", ""),
            id="rbd-of-nulls",
        ),
    ],
)
def test_of_a_volume_is_read_what_plugins_read_and_pods_share_it(source: Object, expected: PodVolume) -> None:
    volumes = volumes_of({"name": "x", "emptyDir": {}}, {"name": "v", **source}, {"name": "x", "nfs": {"server": "s"}})
    assert volumes == (expected,)
    assert volumes is volumes_of({"name": "v", **source}) or "ephemeral" in source


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param({"name": "v", "persistentVolumeClaim": {"claimName": "c" * 2000}}, id="claim"),
        pytest.param({"name": "v", "awsElasticBlockStore": {"volumeID": "d" * 2000}}, id="disk"),
        pytest.param({"name": "v", "rbd": {"monitors": [f"m{n}" for n in range(1000)], "image": "i"}}, id="monitors"),
    ],
)
def test_large_volumes_are_not_kept_for_other_pods(volume: Object) -> None:
    assert volumes_of(volume) == volumes_of(volume)
    assert volumes_of(volume) is not volumes_of(volume)


# PodGroups of the coscheduling plugin.


PACKING = "kindred.dev/group-packing"
KEY = "kindred.dev/group-topology-key"
RACK = "example.com/rack"
PACKINGS = [
    pytest.param({PACKING: "spread"}, SPREAD, id="spread"),
    pytest.param({PACKING: "pack"}, Packing(PackingWay.PACK), id="pack"),
    pytest.param({PACKING: "near", KEY: RACK}, Packing(PackingWay.NEAR, RACK), id="near"),
    pytest.param(
        {PACKING: "Pack"},
        Packing(problem=f"metadata.annotations[{PACKING}]: expected spread, pack or near, got 'Pack'"),
        id="unknown-way",
    ),
    pytest.param(
        {PACKING: "near"},
        Packing(problem=f"metadata.annotations[{KEY}]: missing, and near needs the key of a node label"),
        id="near-without-key",
    ),
    pytest.param(
        {PACKING: "near", KEY: "/rack"},
        Packing(problem=f"metadata.annotations[{KEY}]: prefix part must be non-empty, got '/rack'"),
        id="no-label-key",
    ),
    pytest.param(
        {PACKING: "pack", KEY: RACK},
        Packing(problem=f"metadata.annotations[{KEY}]: is read with near alone, not with pack"),
        id="key-without-near",
    ),
    pytest.param({KEY: RACK}, Packing(problem=f"metadata.annotations[{PACKING}]: missing beside {KEY}"), id="key"),
]


@pytest.mark.parametrize(("annotations", "packing"), PACKINGS)
def test_a_member_and_a_pod_group_say_it_in_the_same_annotations(annotations: dict[str, str], packing: Packing) -> None:
    member = pod_of(make_pod("p").of_group("g").packed(annotations.get(PACKING, ""), annotations.get(KEY, ""))).group
    assert member is not None
    assert member.packing == packing
    wire = {"metadata": {"namespace": "shop", "name": "train", "annotations": annotations}}
    assert decode_pod_group(msgspec.json.encode(wire)).packing == packing


def test_without_annotations_a_pod_group_is_spread_and_a_member_says_nothing() -> None:
    member = pod_of(make_pod("p").of_group("g", 2)).group
    assert member is not None
    assert member.packing is None
    assert decode_pod_group(b'{"metadata": {"name": "train"}}').packing == SPREAD


# PodGroups of scheduling.k8s.io.


def group_of(spec: dict[str, Any]) -> SchedulingGroup:
    return decode_scheduling_group(json.dumps({"metadata": {"name": "g", "namespace": "ns"}, "spec": spec}).encode())


@pytest.mark.parametrize(
    ("policy", "minimum"), [({"gang": {"minCount": 3}}, 3), ({"basic": {}}, 1), ({"gang": {"minCount": 0}}, 1)]
)
def test_the_minimum_is_that_of_a_gang_and_else_one(policy: dict[str, Any], minimum: int) -> None:
    group = group_of({"schedulingPolicy": policy})
    assert (group.minimum, group.full_name) == (minimum, "ns/g")


@pytest.mark.parametrize(
    ("mode", "whole"),
    [
        pytest.param("PodGroup", True, id="v1alpha2"),
        pytest.param("Pod", False, id="v1alpha2-each"),
        pytest.param({"all": {}}, True, id="v1beta1"),
        pytest.param({"single": {}}, False, id="v1beta1-each"),
    ],
)
def test_whether_members_are_disrupted_together(mode: object, whole: bool) -> None:  # noqa: FBT001 - a column of the table
    assert group_of({"disruptionMode": mode}).disrupted_whole is whole


def test_fields_with_which_kube_scheduler_tries_placements() -> None:
    assert group_of({"schedulingConstraints": {"topology": []}}).unsupported == ""
    parent = group_of({"parentCompositePodGroupName": "p"})
    assert parent.unsupported == "spec.parentCompositePodGroupName"
