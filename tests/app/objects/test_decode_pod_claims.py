"""The resources of a node that the resource claims of a pod allocate, in the forms of 1.36 and 1.37."""

from collections.abc import Mapping
from typing import Final

import msgspec
import pytest

from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from core.objects.pod import Pod, counted
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import Object

GIB: Final = 2**30
MIB: Final = 2**20
GATE: Final = "DRANodeAllocatableResources"
ON_1_36: Final = rules_of(Release(1, 36), {GATE: True}).request_counting
ON_1_37: Final = rules_of(Release(1, 37), {GATE: True}).request_counting
FIELD: Final = r"^status\.nodeAllocatableResourceClaimStatuses"


def container(name: str, **requests: str) -> Object:
    return {"name": name, "resources": {"requests": requests}}


def pod_of(spec: Object, *claims: Object, node: str = "n", **status: object) -> Pod:
    status |= {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "claim", **each} for each in claims]}
    wire = {"metadata": {"name": "p"}, "spec": {**spec, "nodeName": node}, "status": status}
    return decode_pod(msgspec.json.encode(wire))


def containers(*listed: Object, **spec: object) -> Object:
    return {"containers": [*listed], **spec}


def using(*names: str, mapping: Mapping[str, str] | None = None, **overhead: Object) -> Object:
    """Return the status of a claim that containers use, with the overhead of each resource."""
    mapped = mapping or {}
    return {
        "containers": [*names],
        "resources": mapped,
        "mapping": [{"name": name, "quantity": quantity} for name, quantity in mapped.items()],
        "overhead": [{"name": name, **each} for name, each in overhead.items()],
    }


SMALL: Final = container("c1", cpu="100m", memory="1Gi")
OF_MEMORY: Final = {"perPod": "1Gi", "perContainer": "500Mi"}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            pod_of(
                containers(container("c1", **{"cpu": "100m", "memory": "1Gi", "hugepages-1Gi": "2"})),
                using("c1", mapping={"cpu": "50m", "hugepages-1Gi": "1"}),
            ),
            {"cpu": 150, "memory": GIB, "hugepages-1Gi": 3},
            id="single-claim-on-one-container",
        ),
        pytest.param(
            pod_of(
                containers(SMALL),
                using("c1", mapping={"cpu": "50m"}),
                using("c1", mapping={"cpu": "25m", "memory": "512Mi"}),
            ),
            {"cpu": 175, "memory": 1536 * MIB},
            id="multiple-claims-on-one-container",
        ),
        pytest.param(
            pod_of(
                containers(container("c1", cpu="100m"), container("c2", cpu="200m")),
                using("c1", "c2", mapping={"cpu": "50m"}),
            ),
            {"cpu": 350},
            id="same-claim-referenced-in-multiple-containers",
        ),
        pytest.param(
            pod_of(
                containers(container("c1", cpu="50m"), initContainers=[container("ic1", cpu="100m")]),
                using("ic1", mapping={"cpu": "25m"}),
            ),
            {"cpu": 125},
            id="claim-on-init-container",
        ),
        pytest.param(
            pod_of(
                containers(container("c1", cpu="1", memory="1Gi"), resources={"requests": {"cpu": "2"}}),
                using("c1", mapping={"cpu": "3"}),
            ),
            {"cpu": 2000, "memory": GIB},
            id="pod-level-resources-override-the-claim-request",
        ),
    ],
)
def test_upstreams_table_of_1_36_and_1_37(pod: Pod, expected: Mapping[str, int]) -> None:
    """Source: component-helpers resource/helpers_test.go, with its expected values.

    v0.36.3 TestPodResourceRequestsWithDRANodeAllocatableClaims, v0.37.1 TestPodRequestsAndLimitsWithDRA.
    """
    assert counted(pod, ON_1_36).requests == counted(pod, ON_1_37).requests == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            pod_of(
                containers(SMALL, container("c2", cpu="100m", memory="1Gi")),
                using("c1", "c2", memory=OF_MEMORY),
            ),
            {"cpu": 200, "memory": 4072 * MIB},
            id="overhead",
        ),
        pytest.param(
            pod_of(
                containers(container("c1", memory="1Gi"), container("c2", memory="1Gi")),
                using("c1", "c2", mapping={"memory": "2Gi"}, memory=OF_MEMORY),
            ),
            {"memory": 6120 * MIB},
            id="both-mapping-and-overhead",
        ),
        pytest.param(
            pod_of(containers(container("c1", memory="1Gi")), using(memory=OF_MEMORY)),
            {"memory": 2 * GIB},
            id="unreferenced-claim-overhead",
        ),
        pytest.param(
            pod_of(
                containers(container("c1", memory="4Gi"), container("c2", memory="2Gi")),
                using("c1", "c2", memory={"perContainer": "1Gi"}),
                containerStatuses=[
                    {**container("c1", memory="2Gi"), "allocatedResources": {"memory": "4Gi"}},
                    {**container("c2", memory="2Gi"), "allocatedResources": {"memory": "2Gi"}},
                ],
            ),
            {"memory": 8 * GIB},
            id="container-level-memory-resize",
        ),
        pytest.param(
            pod_of(
                containers(container("c1", memory="1Gi"), container("c2", memory="2Gi")),
                using("c1", "c2", memory={"perContainer": "1Gi"}),
                resources={"requests": {"memory": "6Gi"}},
                allocatedResources={"memory": "5Gi"},
            ),
            {"memory": 6 * GIB},
            id="memory-resize-with-the-status-of-the-pod",
        ),
    ],
)
def test_upstreams_table_of_1_37(pod: Pod, expected: Mapping[str, int]) -> None:
    """Source: component-helpers v0.37.1 resource/helpers_test.go TestPodRequestsAndLimitsWithDRA, with its values."""
    assert counted(pod, ON_1_37).requests == expected


@pytest.mark.parametrize("release", [Release(1, 34), Release(1, 36), Release(1, 37)], ids=str)
def test_without_the_gate_claims_do_not_count(release: Release) -> None:
    pod = pod_of(containers(SMALL), using("c1", mapping={"cpu": "50m"}))
    assert pod.requests == counted(pod, rules_of(release).request_counting).requests == {"cpu": 100, "memory": GIB}


def test_each_release_counts_its_own_form_only() -> None:
    older = pod_of(containers(SMALL), {"resources": {"cpu": "1"}})
    newer = pod_of(containers(SMALL), {"mapping": [{"name": "cpu", "quantity": "2"}]})
    assert [counted(older, counting).requests["cpu"] for counting in (ON_1_36, ON_1_37)] == [1100, 100]
    assert [counted(newer, counting).requests["cpu"] for counting in (ON_1_36, ON_1_37)] == [100, 2100]


def test_a_pod_without_a_node_counts_by_its_spec() -> None:
    pod = pod_of(containers(SMALL), using("c1", mapping={"cpu": "50m"}), node="")
    assert pod.requests == {"cpu": 100, "memory": GIB}
    assert pod.demand.resources is None


def test_scoring_assumes_claims_beside_the_defaults_of_a_container() -> None:
    """Source: k8s.io/kubernetes pkg/scheduler/framework/types.go (CalculateResource)."""
    pod = pod_of(containers(container("c1")), using("c1", mapping={"cpu": "50m"}))
    assert (
        counted(pod, ON_1_37).demand.non_zero_requests
        == counted(pod, ON_1_36).demand.non_zero_requests
        == (150, 200 * MIB)
    )
    assert counted(pod, ON_1_37).demand.scored_requests == (100, 200 * MIB)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"resources": {}, "mapping": [], "overhead": []}, id="empty"),
        pytest.param({"containers": None, "resources": None, "mapping": None, "overhead": None}, id="null"),
        pytest.param({"mapping": [{"name": "cpu", "quantity": None}]}, id="no-quantity"),
    ],
)
def test_a_claim_without_amounts_leaves_nothing_to_count(claim: Object) -> None:
    assert pod_of(containers(SMALL), claim).demand.resources is None


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        pytest.param({"resources": {"cpu": "x"}}, r"\[1\]\.resources\.cpu", id="resources"),
        pytest.param({"mapping": [{"name": "cpu", "quantity": "x"}]}, r"\[1\]\.mapping\[0\]\.quantity", id="mapping"),
        pytest.param({"overhead": [{"perPod": "x"}]}, r"\[1\]\.overhead\[0\]\.perPod", id="per-pod"),
        pytest.param({"overhead": [{"perContainer": "x"}]}, r"\[1\]\.overhead\[0\]\.perContainer", id="per-container"),
        pytest.param({"containers": [1]}, r"\[1\]\.containers\[0\]", id="containers"),
    ],
)
def test_a_broken_value_is_refused_with_the_field(claim: Object, place: str) -> None:
    with pytest.raises(DecodeError, match=FIELD + place):
        pod_of(containers(SMALL), using("c1"), claim)
