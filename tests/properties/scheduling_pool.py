"""Pools of small v1 objects in which everything that any plugin reads occurs, decoded once, the simple ones first.

Drawing an index is cheap, so that a stream of events may be long. Names, labels and values are few, so that pods,
terms, ports, claims and domains meet often.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from app.objects.decode_devices import decode_device_class
from app.objects.decode_node import (
    decode_namespace,
    decode_node,
    decode_replica_set,
    decode_service,
)
from app.objects.decode_pod import decode_pod
from app.objects.decode_storage import (
    decode_csi_driver,
    decode_csi_node,
    decode_csi_storage_capacity,
    decode_persistent_volume,
    decode_persistent_volume_claim,
    decode_storage_class,
    decode_volume_attachment,
)
from core.events import Object
from core.objects.node import NodeMetrics, Usage
from core.objects.pod import Pod

V1: TypeAlias = dict[str, Any]
Made = TypeVar("Made")

NODE_NAMES: Final = ("n0", "n1", "n2", "n3")
FOREIGN: Final = "s0"
NAMESPACES: Final = ("a", "b")
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
DRIVER: Final = "ebs.csi.aws.com"
DEVICE_SCHEDULER: Final = "dra"
"""The scheduler that allocates devices, if not every one does."""
STARTS: Final = ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z")
_SIMPLE: Final = 4  # objects at the head of a pool that have next to nothing


def _node(random: Random, number: int) -> V1:
    name = (*NODE_NAMES, FOREIGN)[number % 5]
    simple = number < _SIMPLE
    labels = {HOST: name}
    if random.random() < 0.9:
        labels[ZONE] = random.choice("ab")
    if random.random() < 0.5:
        labels["disk"] = random.choice(("ssd", "hdd"))
    if random.random() < 0.2:
        labels["cores"] = random.choice(("4", "8", "x"))
    spec: V1 = {}
    if not simple and random.random() < 0.4:
        effect = random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        spec["taints"] = [{"key": random.choice(("dedicated", "gpu")), "value": "x", "effect": effect}]
    if not simple and random.random() < 0.15:
        spec["unschedulable"] = True
    allocatable = {"cpu": random.choice(("1", "2", "4")), "memory": random.choice(("1Gi", "2Gi")), "pods": "4"}
    if random.random() < 0.3:
        allocatable["example.com/gpu"] = "1"
    status: V1 = {"allocatable": allocatable}
    if random.random() < 0.5:
        status["images"] = [{"names": [f"image-{random.choice('xy')}:latest"], "sizeBytes": 300_000_000}]
    if random.random() < 0.6:
        kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
        status["conditions"] = [{"type": kind, "status": random.choice(("True", "False"))} for kind in kinds]
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _selector(random: Random) -> V1:
    if random.random() < 0.7:
        return {"matchLabels": {"app": random.choice("xy")}}
    return {"matchExpressions": [{"key": "app", "operator": random.choice(("Exists", "DoesNotExist"))}]}


def _term(random: Random) -> V1:
    made: V1 = {"topologyKey": random.choice((ZONE, HOST)), "labelSelector": _selector(random)}
    if random.random() < 0.3:
        made["namespaceSelector"] = random.choice(({}, {"matchLabels": {"team": "red"}}))
    return made


def _pod_affinity(random: Random) -> V1:
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    found: V1 = {}
    for member in ("podAffinity", "podAntiAffinity"):
        lists: V1 = {}
        if random.random() < 0.4:
            lists[required] = [_term(random) for _ in range(random.randint(1, 2))]
        if random.random() < 0.4:
            lists[preferred] = [{"weight": random.randint(1, 100), "podAffinityTerm": _term(random)}]
        if lists:
            found[member] = lists
    return found


def _node_affinity(random: Random) -> V1:
    expressions = (
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": ZONE, "operator": "NotIn", "values": ["b"]},
        {"key": "cores", "operator": "Gt", "values": ["4"]},
        {"key": "disk", "operator": "Exists"},
    )
    terms: list[V1] = [{"matchExpressions": [random.choice(expressions)]}]
    if random.random() < 0.3:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [random.choice(NODE_NAMES)]}]}]
    preferred = [{"weight": random.randint(1, 9), "preference": {"matchExpressions": [random.choice(expressions)]}}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            **({"preferredDuringSchedulingIgnoredDuringExecution": preferred} if random.random() < 0.5 else {}),
        }
    }


def _volumes(random: Random) -> list[V1]:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": random.choice(("c0", "c1"))}}
    kinds: Sequence[V1] = (
        *[claim] * 4,
        {"name": "v", "awsElasticBlockStore": {"volumeID": random.choice(("vol-1", "vol-2"))}},
        {"name": "v", "gcePersistentDisk": {"pdName": "disk", "readOnly": random.random() < 0.5}},
    )
    return [random.choice(kinds)]


def _spread(random: Random) -> V1:
    made: V1 = {
        "maxSkew": random.randint(1, 2),
        "topologyKey": random.choice((ZONE, HOST)),
        "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selector(random),
    }
    if random.random() < 0.3:
        made["nodeTaintsPolicy"] = "Honor"
    return made


def _container(random: Random) -> V1:
    requests = {}
    if random.random() < 0.6:
        requests["cpu"] = random.choice(("100m", "1", "1500m"))
    if random.random() < 0.4:
        requests["memory"] = random.choice(("100Mi", "900Mi"))
    if random.random() < 0.1:
        requests["example.com/gpu"] = "1"
    made: V1 = {"name": "c", "image": f"image-{random.choice('xyz')}", "resources": {"requests": requests}}
    if random.random() < 0.4:
        made["ports"] = [{"hostPort": random.choice((80, 81)), "protocol": random.choice(("TCP", "UDP"))}]
    return made


def _pod(random: Random, number: int) -> V1:
    simple = number < _SIMPLE
    metadata: V1 = {"namespace": random.choice(NAMESPACES), "labels": {"app": random.choice("xy")}}
    spec: V1 = {"containers": [_container(random)]}
    if random.random() < 0.2:
        metadata["labels"]["tier"] = random.choice("12")
    if simple:
        return {"metadata": metadata, "spec": spec}
    affinity = _pod_affinity(random) if random.random() < 0.6 else {}
    if random.random() < 0.25:
        affinity |= _node_affinity(random)
    if affinity:
        spec["affinity"] = affinity
    if random.random() < 0.3:
        spec["tolerations"] = [{"key": random.choice(("dedicated", "gpu")), "operator": "Exists"}]
    if random.random() < 0.15:
        spec["nodeSelector"] = {"disk": "ssd"}
    if random.random() < 0.4:
        spec["volumes"] = _volumes(random)
    if random.random() < 0.3:
        spec["topologySpreadConstraints"] = [_spread(random)]
    return {"metadata": metadata, "spec": spec}


def _newer_pod(random: Random, number: int) -> V1:
    """Return a pod with what releases answer differently: it is resized in place, uses features, has image volumes."""
    pod = _pod(random, number)
    container = pod["spec"]["containers"][0]
    if random.random() < 0.5:
        amounts = [{"cpu": random.choice(("100m", "1", "1500m"))} for _ in range(4)]
        status: V1 = {"name": "c", "resources": {"requests": amounts[0]}, "allocatedResources": amounts[1]}
        pod["status"] = {"containerStatuses": [status]}
        if random.random() < 0.4:
            pod["spec"]["resources"] = {"requests": amounts[2]}
            pod["status"] |= {"resources": {"requests": amounts[3]}, "allocatedResources": amounts[0]}
        if random.random() < 0.3:
            pod["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
        if random.random() < 0.3:
            claimed = [{"name": name, "quantity": quantity} for name, quantity in amounts[1].items()]
            pod["status"]["nodeAllocatableResourceClaimStatuses"] = [{"resources": amounts[2], "mapping": claimed}]
    if random.random() < 0.4:
        container["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    if random.random() < 0.2:
        container["volumeMounts"] = [{"name": "v", "bindMountOptions": ["noexec"]}]
    if random.random() < 0.5:
        image = {"name": "image", "image": {"reference": f"image-{random.choice('xy')}"}}
        pod["spec"]["volumes"] = [*pod["spec"].get("volumes", ()), image]
    if random.random() < 0.4:
        container["resources"]["requests"]["example.com/gpu"] = "2"
    if number % 2:
        pod["spec"]["schedulerName"] = DEVICE_SCHEDULER
    return pod


def _measured_pod(random: Random, number: int) -> V1:
    """Return a pod with what its usage is predicted from, which has started at one of a few times, or not yet."""
    pod = _pod(random, number)
    if random.random() < 0.6:
        limits = {"cpu": random.choice(("500m", "2"))}
        pod["spec"]["containers"][0]["resources"]["limits"] = limits
    if random.random() < 0.5:
        pod["spec"]["containers"].append({"name": "d", "image": "image-x"})
    if random.random() < 0.6:
        pod["status"] = {"startTime": random.choice(STARTS)}
    return pod


def _node_metrics(random: Random, number: int) -> NodeMetrics:
    amounts = [Usage(random.randint(0, 3000), random.choice((None, 200))), Usage(random.randint(0, 2**31)), None]
    return NodeMetrics(
        name=NODE_NAMES[number % 4],
        measured_at=number,
        covers_pods_until=random.choice(STARTS),
        cpu=random.choice(amounts[::2]),
        memory=random.choice(amounts[1:]),
        too_old=random.random() < 0.2,
    )


def _newer_node(random: Random, number: int) -> V1:
    node = _node(random, number)
    features = ("RestartAllContainersOnContainerExits", "VolumeBindMountOptions")
    node["status"]["declaredFeatures"] = random.sample(features, random.randint(1, 2))
    return node


def _device_class(random: Random, number: int) -> V1:
    spec = {"extendedResourceName": "example.com/gpu"} if random.random() < 0.7 else {}
    return {"metadata": {"name": f"gpu{number % 2}"}, "spec": spec}


def _newer_csi_driver(random: Random, number: int) -> V1:
    driver = _csi_driver(random, number)
    return {**driver, "spec": {**driver["spec"], "preventPodSchedulingIfMissing": True}}


def _claim(random: Random, number: int) -> V1:
    name = f"c{number % 2}"
    bound = random.random() < 0.8
    spec: V1 = {
        "storageClassName": random.choice(("fast", "slow")),
        "accessModes": [random.choice(("ReadWriteOnce", "ReadWriteOncePod"))],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    annotations = {}
    if bound:
        spec["volumeName"] = random.choice(("pv0", "pv1"))
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
    uid = f"{name}-{random.randint(0, 1)}"
    metadata = {"name": name, "namespace": random.choice(NAMESPACES), "uid": uid, "annotations": annotations}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Bound" if bound else "Pending"}}


def _volume(random: Random, number: int) -> V1:
    name = f"pv{number % 2}"
    labels = {ZONE: random.choice("ab")} if random.random() < 0.8 else {}
    spec: V1 = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": random.choice(("fast", "slow")),
        "csi": {"driver": DRIVER, "volumeHandle": random.choice(("vol-1", "vol-2"))},
    }
    if random.random() < 0.4:
        expression = {"key": ZONE, "operator": "In", "values": [random.choice("ab")]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": "Available"}}


def _storage_class(random: Random, number: int) -> V1:
    mode = random.choice(("WaitForFirstConsumer", "Immediate"))
    return {"metadata": {"name": ("fast", "slow")[number % 2]}, "provisioner": DRIVER, "volumeBindingMode": mode}


def _csi_node(random: Random, number: int) -> V1:
    driver = {"name": DRIVER, "nodeID": "i", "allocatable": {"count": random.randint(0, 2)}}
    return {"metadata": {"name": NODE_NAMES[number % 4]}, "spec": {"drivers": [driver]}}


def _service(random: Random, number: int) -> V1:
    return {
        "metadata": {"name": f"svc{number % 2}", "namespace": random.choice(NAMESPACES)},
        "spec": {"selector": {"app": random.choice("xy")}},
    }


def _replica_set(random: Random, number: int) -> V1:
    return {
        "metadata": {
            "name": f"rs{number % 2}",
            "namespace": random.choice(NAMESPACES),
            "labels": {"app": random.choice("xy")},
        },
        "spec": {"selector": {"matchLabels": {"app": random.choice("xy")}}},
    }


def _csi_driver(random: Random, _number: int) -> V1:
    return {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": random.random() < 0.5}}


def _capacity(random: Random, number: int) -> V1:
    return {
        "metadata": {"name": f"capacity{number % 2}", "namespace": "a"},
        "storageClassName": random.choice(("fast", "slow")),
        "nodeTopology": {"matchLabels": {ZONE: random.choice("ab")}},
        "capacity": random.choice(("100Mi", "2Gi")),
    }


def _attachment(random: Random, number: int) -> V1:
    spec = {
        "attacher": DRIVER,
        "nodeName": random.choice(NODE_NAMES),
        "source": {"persistentVolumeName": random.choice(("pv0", "pv1"))},
    }
    return {"metadata": {"name": f"attachment{number % 2}"}, "spec": spec}


def _namespace(random: Random, number: int) -> V1:
    labels = {"team": random.choice(("red", "blue"))} if random.random() < 0.7 else {}
    return {"metadata": {"name": NAMESPACES[number % 2], "labels": labels}}


def _pool(seed: int, size: int, make: Callable[[Random, int], Made]) -> list[Made]:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    return [make(random, number) for number in range(size)]


def placed(template: V1, identity: tuple[str, str], node: str, phase: str = "Running") -> Pod:
    """Decode a pod of the pool, of a name and uid, on a node (none: pending); `Terminating` is none of v1."""
    metadata = {**template["metadata"], "name": identity[0], "uid": identity[1]}
    if phase == "Terminating":
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {**template["spec"], **({"nodeName": node} if node else {})}
    status = {**template.get("status", {}), "phase": phase}
    return decode_pod(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


def nominated(template: V1, identity: tuple[str, str], node: str, priority: int, *, terminating: bool = False) -> Pod:
    """Decode a pod of the pool that has no node, and is nominated for one (none: it is not)."""
    metadata = {**template["metadata"], "name": identity[0], "uid": identity[1]}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    wire = {"metadata": metadata, "spec": {**template["spec"], "priority": priority}}
    return decode_pod(json.dumps({**wire, "status": {"nominatedNodeName": node}}).encode())


def incoming(template: V1, name: str, controller: str) -> Pod:
    """Decode a pod of the pool that is to be scheduled, of a controller if one is given."""
    metadata = {**template["metadata"], "name": name, "uid": name}
    if controller:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs0", "uid": controller, "controller": True}
        metadata["ownerReferences"] = [owner]
    return decode_pod(json.dumps({"metadata": metadata, "spec": template["spec"]}).encode())


def _decoded(decode: Callable[[bytes], Object], pool: Sequence[V1]) -> list[Object]:
    return [decode(json.dumps(each).encode()) for each in pool]


PODS: Final = [*_pool(1, 120, _pod), *_pool(13, 40, _newer_pod), *_pool(17, 24, _measured_pod)]
NODES: Final = [decode_node(json.dumps(each).encode()) for each in (*_pool(2, 80, _node), *_pool(14, 20, _newer_node))]
NAMESPACE_STATES: Final = [decode_namespace(json.dumps(each).encode()) for each in _pool(3, 8, _namespace)]
OTHERS: Final[Sequence[Object]] = [
    *_decoded(decode_persistent_volume_claim, _pool(4, 24, _claim)),
    *_decoded(decode_persistent_volume, _pool(5, 16, _volume)),
    *_decoded(decode_storage_class, _pool(6, 6, _storage_class)),
    *_decoded(decode_csi_node, _pool(7, 10, _csi_node)),
    *_decoded(decode_csi_driver, _pool(10, 2, _csi_driver)),
    *_decoded(decode_csi_driver, _pool(15, 2, _newer_csi_driver)),
    *_decoded(decode_device_class, _pool(16, 4, _device_class)),
    *_decoded(decode_csi_storage_capacity, _pool(11, 6, _capacity)),
    *_decoded(decode_volume_attachment, _pool(12, 6, _attachment)),
    *_decoded(decode_service, _pool(8, 6, _service)),
    *_decoded(decode_replica_set, _pool(9, 4, _replica_set)),
    *_pool(18, 24, _node_metrics),
]
"""Objects of the kinds for which the mirror has no rule of its own."""
