"""The bench cluster with data for every predicate and score, added here because `cluster.py` must not change."""

from collections.abc import Iterator
from typing import Final

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
