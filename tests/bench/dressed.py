"""The bench cluster with data for every predicate and score, added here because `cluster.py` must not change."""

from collections.abc import Iterator
from typing import Final

import msgspec

from tests.bench import cluster
from tests.bench.cluster import Object

POOLS: Final = ("general", "batch", "memory")
_MIB: Final = 2**20


def nodes(count: int) -> Iterator[Object]:
    """Make nodes of three pools, a tenth of them tainted, with the images of some apps."""
    for index, node in enumerate(cluster.nodes(count)):
        pool = POOLS[index % len(POOLS)]
        node["metadata"]["labels"]["pool"] = pool
        if index % 10 == 0:
            node["spec"]["taints"] = [{"key": "dedicated", "value": pool, "effect": "NoSchedule"}]
        elif index % 10 == 1:
            node["spec"]["taints"] = [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]
        names = [[f"registry.example.com/app-{(index + step) % 20}:v1"] for step in range(5)]
        node["status"]["images"] = [{"names": each, "sizeBytes": 200 * _MIB} for each in names]
        yield node


def incoming(kind: str, iteration: int, apps: int) -> Object:
    """Make a pod of a kind with work for every plugin: pool, taints, a preferred pool, an image, spreading."""
    pod = cluster.incoming(kind, iteration, apps)
    app = int(pod["metadata"]["labels"]["app"].removeprefix("app-"))
    spec = pod["spec"]
    spec["containers"][0]["image"] = f"registry.example.com/app-{app % 20}:v1"
    spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": POOLS[app % 3], "effect": "NoSchedule"}]
    not_memory = {"key": "pool", "operator": "NotIn", "values": ["memory"]}
    general = {"key": "pool", "operator": "In", "values": ["general"]}
    spec.setdefault("affinity", {})["nodeAffinity"] = {
        cluster.REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [not_memory]}]},
        cluster.PREFERRED: [{"weight": 10, "preference": {"matchExpressions": [general]}}],
    }
    spec["topologySpreadConstraints"] = [
        {
            "maxSkew": 50,
            "topologyKey": cluster.ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}},
        }
    ]
    return pod


def of_deployment(pod: Object, number: int, replica: int) -> Object:
    """Make a pod a replica of a Deployment's ReplicaSet."""
    name = f"deployment-{number:04d}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    metadata = {**pod["metadata"], "name": f"{name}-{replica}", "uid": f"{name}-{replica}", "ownerReferences": [owner]}
    return {**pod, "metadata": metadata}


# Nodes as kube-scheduler sends them to an extender that is not `nodeCacheCapable`: 6.4 KB each, 32 MB for 5,000.
#
# The sizes are from a cloud's nodes with some images. The scheduler's informer strips only managedFields.

_TIME: Final = "2026-01-05T08:00:00Z"
_IMAGES: Final = 21
_CONDITIONS: Final = {
    "FrequentKubeletRestart": "NoFrequentKubeletRestart",
    "KernelDeadlock": "KernelHasNoDeadlock",
    "ReadonlyFilesystem": "FilesystemIsNotReadOnly",
    "NetworkUnavailable": "RouteCreated",
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
    "Ready": "KubeletReady",
}


def whole_node(index: int) -> bytes:
    """Encode a node of the bench cluster with all fields that a kubelet and a cloud write."""
    node = cluster.node(index)
    node["metadata"] |= {
        "uid": f"{index:08x}-3c5f-4d2a-b1e0-0000000000bb",
        "resourceVersion": str(1_000_000 + index),
        "creationTimestamp": _TIME,
        "annotations": _annotations(index),
    }
    node["spec"] = {
        "podCIDR": f"10.{index >> 8}.{index & 255}.0/24",
        "podCIDRs": [f"10.{index >> 8}.{index & 255}.0/24"],
        "providerID": f"example:///zone-{index % cluster.ZONES}/i-{index:017x}",
    }
    node["status"] |= _status(index)
    return msgspec.json.encode(node)


def _annotations(index: int) -> dict[str, str]:
    return {
        "csi.volume.kubernetes.io/nodeid": f'{{"disk.csi.example.com":"i-{index:017x}"}}',
        "node.alpha.kubernetes.io/ttl": "0",
        "projectcalico.org/IPv4Address": f"192.168.{index >> 8}.{index & 255}/20",
        "projectcalico.org/IPv4IPIPTunnelAddr": f"10.{index >> 8}.{index & 255}.1",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }


def _status(index: int) -> Object:
    return {
        "conditions": [_condition(kind, reason) for kind, reason in _CONDITIONS.items()],
        "addresses": [
            {"type": "InternalIP", "address": f"192.168.{index >> 8}.{index & 255}"},
            {"type": "Hostname", "address": cluster.node_name(index)},
            {"type": "InternalDNS", "address": f"{cluster.node_name(index)}.compute.example.com"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": f"{index:032x}",
            "systemUUID": f"{index:08x}-3c5f-4d2a-b1e0-0000000000cc",
            "bootID": f"{index:08x}-3c5f-4d2a-b1e0-0000000000dd",
            "kernelVersion": "6.12.0-cloud-amd64",
            "osImage": "Example Linux 12 (cloud)",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": "v1.34.1",
            "kubeProxyVersion": "v1.34.1",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
        "images": [_image(index + number) for number in range(_IMAGES)],
    }


def _condition(kind: str, reason: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": "True" if kind == "Ready" else "False",
        "lastHeartbeatTime": _TIME,
        "lastTransitionTime": _TIME,
        "reason": reason,
        "message": f"the kubelet and its problem detector found {reason}",
    }


def _image(number: int) -> Object:
    name = f"registry.example.com/shop/app-{number % 400:04d}"
    return {"names": [f"{name}@sha256:{number * 2654435761:064x}"], "sizeBytes": 100_000_000 + number}
