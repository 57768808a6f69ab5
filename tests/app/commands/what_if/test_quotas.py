"""`kindred capacity`: what ResourceQuotas leave for more pods."""

from pathlib import Path

import pytest

from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import NODES, deployment, dump, manifest, node, replica, response
from tests.builders import NodeBuilder, Object, PodBuilder


def quota(hard: Object, used: Object, **spec: object) -> Object:
    metadata = {"name": "q", "namespace": "shop"}
    return {
        "kind": "ResourceQuota",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": spec,
        "status": {"hard": hard, "used": used},
    }


@pytest.mark.parametrize(
    ("hard", "used", "placed"),
    [
        ({"requests.cpu": "5"}, {"requests.cpu": "1500m"}, 3),
        ({"cpu": "2"}, {}, 2),
        ({"pods": "4"}, {"pods": "2"}, 2),
        ({"count/pods": "4"}, {"count/pods": "4"}, 0),
        ({"requests.cpu": "900m"}, {"requests.cpu": "1"}, 0),
        ({"services": "0", "requests.nvidia.com/gpu": "0"}, {}, 8),
    ],
)
def test_a_quota_may_allow_fewer(tmp_path: Path, hard: Object, used: Object, placed: int) -> None:
    path = dump(tmp_path, *NODES, deployment(), quota(hard, used))
    _, found = response("capacity", "deploy/web", "--snapshot", path)
    assert found["capacity"]["placed"] == placed
    assert bool(found["capacity"]["quota"]) == (placed < 8)


def test_the_quota_that_stops_the_next_one_is_named(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, deployment(), quota({"requests.cpu": "5"}, {"requests.cpu": "1500m"}))
    text = " ".join(kindred("capacity", "deploy/web", "--snapshot", path).stdout.split())
    quoted = "ResourceQuota shop/q leaves requests.cpu: 5, of which 1500m are used"
    assert f"The next one of Deployment shop/web is not allowed: {quoted}." in text


def test_a_manifest_without_a_namespace_has_the_quota_of_that_of_the_option(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, quota({"pods": "2"}, {}))
    new = deployment("new")
    del new["metadata"]["namespace"]
    found = response("capacity", "-f", manifest(tmp_path, new), "-n", "shop", "--snapshot", path)[1]
    assert (found["of"], found["capacity"]["placed"]) == (["Deployment shop/new"], 2)


def test_a_quota_counts_over_all_that_are_placed_in_turns(tmp_path: Path) -> None:
    """Two of one and one of the other in turn: of five, the second turn ends with its first two."""
    path = dump(tmp_path, *NODES, deployment(), deployment("api"), quota({"pods": "5"}, {}))
    _, found = response("capacity", "deploy/web", "deploy/api", "--mix", "2,1", "--snapshot", path)
    assert (found["capacity"]["by_template"], found["capacity"]["stopped_at"]) == ([4, 1], 1)
    assert found["capacity"]["quota"] == "ResourceQuota shop/q leaves pods: 5, of which 0 are used"


GPU = {"limits": {"nvidia.com/gpu": "1"}}
LIMITED = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
DEADLINE = {"activeDeadlineSeconds": 600}
ELSEWHERE = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone", "namespaceSelector": {}}
PREFERS = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": ELSEWHERE}]
    }
}
IMPORTANT = {"priorityClassName": "high"}


def container(resources: Object, name: str = "c") -> Object:
    return {"name": name, "image": "x", "resources": resources}


def scoped(name: str, operator: str = "Exists", *values: str) -> Object:
    found = {"scopeName": name, "operator": operator, **({"values": [*values]} if values else {})}
    return {"scopeSelector": {"matchExpressions": [found]}}


@pytest.mark.parametrize(
    ("hard", "spec", "placed"),
    [
        pytest.param({"limits.cpu": "5"}, {"containers": [container(LIMITED)]}, 2, id="limits"),
        pytest.param(
            {"limits.memory": "5Gi"},
            {
                "containers": [container(LIMITED), container({"limits": {"memory": "1Gi"}}, "d")],
                "initContainers": [container({"limits": {"memory": "2560Mi"}}, "i")],
            },
            2,
            id="limits of the largest phase",
        ),
        pytest.param(
            {"limits.memory": "5Gi"},
            {"containers": [container(LIMITED)], "overhead": {"memory": "1536Mi", "cpu": "10m"}},
            2,
            id="limits with overhead",
        ),
        pytest.param(
            {"limits.cpu": "5"},
            {"containers": [container({})], "resources": {"limits": {"cpu": "1"}}},
            5,
            id="limits of the pod",
        ),
        pytest.param({"requests.nvidia.com/gpu": "3"}, {"containers": [container(GPU)]}, 3, id="devices"),
        pytest.param({"limits.nvidia.com/gpu": "0"}, {"containers": [container(GPU)]}, 8, id="no such limit"),
        pytest.param(
            {"requests.hugepages-2Mi": "6Mi"},
            {"containers": [container({"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}})]},
            3,
            id="huge pages",
        ),
        pytest.param(
            {"requests.ephemeral-storage": "3Gi", "limits.ephemeral-storage": "9Gi"},
            {
                "containers": [
                    container({"requests": {"ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": "4Gi"}})
                ]
            },
            2,
            id="storage of nodes",
        ),
    ],
)
def test_what_a_quota_counts_of_a_pod(tmp_path: Path, hard: Object, spec: Object, placed: int) -> None:
    """Source: podComputeUsageHelper in pkg/quota/v1/evaluator/core/pods.go."""
    storage = {"nvidia.com/gpu": "4", "hugepages-2Mi": "1Gi", "ephemeral-storage": "99Gi"}
    nodes = [node(name, pods=4).allocatable(cpu="4", memory="8Gi", pods=4, **storage) for name in ("n1", "n2")]
    path = dump(tmp_path, *nodes, deployment(**spec), quota(hard, {}))
    _, found = response("capacity", "deploy/web", "--snapshot", path)
    assert found["capacity"]["placed"] == placed
    assert bool(found["capacity"]["quota"]) == (placed < 8)
    assert "ResourceQuota" not in str(found["assumed"]["lacks"])


@pytest.mark.parametrize(
    ("scope", "pod", "placed"),
    [
        ({"scopes": ["BestEffort"]}, {"containers": [container({})]}, 2),
        ({"scopes": ["BestEffort"]}, {}, 4),
        ({"scopes": ["NotBestEffort"]}, {}, 2),
        ({"scopes": ["NotBestEffort"]}, {"containers": [container({})]}, 4),
        ({"scopes": ["Terminating"]}, DEADLINE, 2),
        ({"scopes": ["Terminating"]}, {}, 4),
        ({"scopes": ["NotTerminating"]}, {}, 2),
        ({"scopes": ["NotTerminating"]}, DEADLINE, 4),
        ({"scopes": ["NotTerminating", "BestEffort"]}, {}, 4),
        (scoped("CrossNamespacePodAffinity"), {"affinity": PREFERS}, 2),
        (scoped("CrossNamespacePodAffinity"), {}, 4),
        (scoped("PriorityClass", "In", "high", "low"), IMPORTANT, 2),
        (scoped("PriorityClass", "In", "low"), IMPORTANT, 4),
        (scoped("PriorityClass", "NotIn", "low"), IMPORTANT, 2),
        (scoped("PriorityClass", "NotIn", "high"), IMPORTANT, 4),
        (scoped("PriorityClass"), IMPORTANT, 2),
        (scoped("PriorityClass", "DoesNotExist"), IMPORTANT, 4),
        (scoped("PriorityClass", "In", "usual"), {}, 2),
        (scoped("PriorityClass", "DoesNotExist"), {}, 4),
        (scoped("VolumeAttributesClass"), {}, 4),
        (scoped("Unheard"), {}, 4),
    ],
)
def test_a_quota_with_scopes_counts_only_pods_in_all_of_them(
    tmp_path: Path, scope: Object, pod: Object, placed: int
) -> None:
    """Source: podMatchesScopeFunc in pods.go. A pod without a class has the default one when it is counted."""
    classes = [
        {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}, **members}
        for name, members in (("high", {"value": 9}), ("usual", {"value": 1, "globalDefault": True}))
    ]
    path = dump(tmp_path, node("n1", pods=4), deployment(**pod), *classes, quota({"pods": "2"}, {}, **scope))
    _, found = response("capacity", "deploy/web", "--snapshot", path)
    assert found["capacity"]["placed"] == placed
    assert "ResourceQuota" not in str(found["assumed"]["lacks"])


@pytest.mark.parametrize(
    ("hard", "pod", "lacks"),
    [
        ({"requests.memory": "1Gi", "cpu": "9"}, {}, "requests.memory for: c"),
        ({"memory": "1Gi"}, {"resources": {"requests": {"cpu": "1"}}}, ""),
        (
            {"limits.cpu": "9", "requests.cpu": "9"},
            {"containers": [container({"requests": {"cpu": "1"}}), container({}, "d")]},
            "limits.cpu for: c,d; requests.cpu for: d",
        ),
        ({"limits.memory": "1Gi"}, {"initContainers": [container(LIMITED, "i")]}, "limits.memory for: c"),
        ({"requests.ephemeral-storage": "1Gi"}, {}, ""),
    ],
)
def test_a_quota_on_cpu_or_memory_refuses_pods_that_do_not_specify_it(
    tmp_path: Path, hard: Object, pod: Object, lacks: str
) -> None:
    """Source: Constraints in pods.go."""
    path = dump(tmp_path, node("n1", pods=4), deployment(**pod), quota(hard, {}))
    _, found = response("capacity", "deploy/web", "--snapshot", path)
    assert found["capacity"]["placed"] == (0 if lacks else 4)
    assert found["capacity"]["quota"] == (f"ResourceQuota shop/q: must specify {lacks}" if lacks else "")


@pytest.mark.parametrize(
    ("hard", "scope", "placed"),
    [
        ({"persistentvolumeclaims": "5"}, {}, 2),
        ({"count/persistentvolumeclaims": "5"}, {}, 2),
        ({"requests.storage": "10Gi"}, {}, 3),
        ({"fast.storageclass.storage.k8s.io/requests.storage": "4Gi"}, {}, 4),
        ({"fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}, {}, 1),
        ({"slow.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}, {}, 8),
        ({"persistentvolumeclaims": "5"}, {"scopes": ["NotTerminating"]}, 8),
        ({"persistentvolumeclaims": "5"}, scoped("VolumeAttributesClass", "In", "gold"), 5),
        ({"persistentvolumeclaims": "5"}, scoped("VolumeAttributesClass", "DoesNotExist"), 5),
    ],
)
def test_what_a_quota_counts_of_the_claims_of_a_replica(
    tmp_path: Path, hard: Object, scope: Object, placed: int
) -> None:
    """Source: Usage in pkg/quota/v1/evaluator/core/persistent_volume_claims.go."""
    late = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    classes = [
        {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}, **late}
        for name in ("fast", "bulk")
    ]
    claims = [
        {"metadata": {"name": name}, "spec": {"storageClassName": of, "accessModes": ["ReadWriteOnce"], **more}}
        for name, of, more in (
            ("wal", "fast", {"resources": {"requests": {"storage": "1Gi"}}, "volumeAttributesClassName": "gold"}),
            ("data", "bulk", {"resources": {"requests": {"storage": "2Gi"}}}),
        )
    ]
    found = deployment("db")
    found |= {"kind": "StatefulSet", "spec": {**found["spec"], "volumeClaimTemplates": claims}}
    path = dump(tmp_path, *NODES, *classes, found, quota(hard, {}, **scope))
    assert response("capacity", "sts/db", "--snapshot", path)[1]["capacity"]["placed"] == placed


@pytest.mark.parametrize(
    ("hard", "spec", "reported"),
    [
        ({"limits.cpu": "5"}, {}, "ResourceQuota shop/q: limits.cpu"),
        ({"pods": "1"}, {"scopes": ["Terminating"]}, "the scopes of ResourceQuota shop/q"),
    ],
)
def test_what_is_not_known_of_a_running_pod_is_said(tmp_path: Path, hard: Object, spec: Object, reported: str) -> None:
    """The mirror has no limits of pods; its owner has."""
    objects: list[NodeBuilder | PodBuilder | Object] = [*NODES, replica("web-1a-x", "n1"), quota(hard, {}, **spec)]
    result = kindred("capacity", "web-1a-x", "-n", "shop", "--snapshot", dump(tmp_path, *objects))
    text = " ".join(result.stdout.split())
    assert f"Not judged: {reported} of Pod shop/web-1a-x, without its owner's object" in text
    assert "7 more fit" in text
    known = kindred("capacity", "web-1a-x", "-n", "shop", "--snapshot", dump(tmp_path, *objects, deployment()))
    assert reported not in known.stdout


def test_a_dump_without_quotas_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "of a cluster"
    folder.mkdir()
    path = dump(folder, *NODES, deployment())
    result = kindred("capacity", "deploy/web", "--snapshot", path)
    assert "Not judged: the dump has no resourcequotas. This adds them:" in result.stdout
    assert f"  kubectl get -A -o json quota >> '{path}'" in result.stdout
