"""v1 pods to the core's values: what is read, and which field is at fault."""

import json

import pytest
from msgspec.structs import replace

from app.objects.decode_pod import decode_pod
from core.objects.affinity import NO_AFFINITY, NO_NODE_AFFINITY, NodeAffinity
from core.objects.kinds import ControllerRef
from core.objects.labels import Operator, Requirement, Selector
from core.objects.pod import NOT_WAITING, HostPort, Pod, PodClaim, SpreadConstraint, Toleration, Waiting
from core.objects.pod_requests import PodLoad
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.builders import Object, make_pod


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
        non_zero_requests=(260, 64 * 2**20),
        scored_requests=(510, 128 * 2**20),
        tolerations=frozenset({Toleration("gpu", "Exists")}),
        node_affinity=NodeAffinity(Selector((Requirement("disk", Operator.IN, ("ssd",)),))),
        host_ports=frozenset({HostPort(80)}),
        images=(":latest", "i:latest"),
        volumes=(PodClaim("data"),),
        spread=(SpreadConstraint(1, "zone"),),
        load=PodLoad(limited_cpu=1500, overhead_cpu=10, limits=(1510, 10**8)),
    )
    read = decode_pod(encoded(FULL_OBJECTS[Pod]))
    assert expected == replace(read, affinity=NO_AFFINITY, resources=None)  # which have files of their own


def test_a_hand_written_manifest_needs_only_a_name() -> None:
    assert Pod(uid="default/p", namespace="default", name="p") == decode_pod(b'{"metadata":{"name":"p"}}')


def test_without_a_uid_the_namespace_and_name_identify_a_pod() -> None:
    assert decode_pod(b'{"metadata":{"name":"p","namespace":"x","uid":""}}').uid == "x/p"


def test_a_pod_that_has_no_name_yet_goes_by_the_name_that_will_be_generated() -> None:
    assert decode_pod(b'{"metadata":{"generateName":"web-"}}').name == "web-"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"], ids=str.lower)
def test_a_finished_pod_occupies_no_node(phase: str) -> None:
    assert not decode_pod(make_pod("p").on("n1").phase(phase).json()).assigned


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Unknown"], ids=lambda phase: phase.lower() or "none")
def test_an_unfinished_pod_with_a_node_occupies_it(phase: str) -> None:
    assert decode_pod(make_pod("p").on("n1").phase(phase).json()).assigned


def test_a_terminating_pod_still_occupies_its_node() -> None:
    assert decode_pod(make_pod("p").on("n1").phase("Running").terminating().json()).assigned


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
    for member in ("tolerations", "host_ports", "images", "volumes", "spread", "affinity", "node_affinity"):
        assert getattr(pod, member) is getattr(default, member), member


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({}, False, id="absent"),
        pytest.param({"deletionTimestamp": None}, False, id="null"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True, id="given"),
    ],
)
def test_a_pod_with_a_deletion_timestamp_is_terminating(
    metadata: Object,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is decode_pod(encoded({"metadata": {"name": "p", **metadata}})).terminating


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


@pytest.mark.parametrize("spelling", [b"null", b" null ", b"\n\tnull\r\n"], ids=["bare", "spaces", "lines"])
def test_a_null_affinity_is_none_however_it_is_spaced(spelling: bytes) -> None:
    assert decode_pod(b'{"metadata":{"name":"p"},"spec":{"affinity":%s}}' % spelling).affinity is NO_AFFINITY


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param({}, id="empty"),
        pytest.param({"nodeAffinity": {"anything": [1]}}, id="node-affinity-only"),
        pytest.param({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}, id="no-node-terms"),
        pytest.param({"podAffinity": {}, "podAntiAffinity": {}}, id="no-lists"),
        pytest.param({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}, id="empty-list"),
    ],
)
def test_an_affinity_without_terms_is_the_one_value_of_none(affinity: Object) -> None:
    pod = decode_pod(encoded({**make_pod("p").obj(), "spec": {"affinity": affinity}}))
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
        .unschedulable("0/3 nodes", "2026-01-02T00:00:00Z")
    )
    assert decode_pod(pod.json()).waiting == Waiting(
        "2026-01-01T00:00:00Z", ("a.example/x", "b"), "Unschedulable", "0/3 nodes", "2026-01-02T00:00:00Z"
    )
    assert decode_pod(pod.on("n1").json()).waiting is NOT_WAITING
    assert decode_pod(make_pod("p").json()).waiting is NOT_WAITING


def test_a_thousand_characters_are_kept_of_why_a_pod_waits() -> None:
    assert decode_pod(make_pod("p").unschedulable("x" * 1001).json()).waiting.message == "x" * 1000


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
