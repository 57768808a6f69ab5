"""The bench cluster as a store: the objects of `tests.bench.cluster`, in the size of real objects."""

from collections.abc import Iterable, Iterator
from typing import Final

from tests.bench import cluster
from tests.fake_apiserver.pod_bytes import base_pod, replica_set_uid
from tests.fake_apiserver.resources import (
    CSI_NODES,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STORAGE_CLASSES,
)
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.stored import Object, Stored, encode

_TIME: Final = "2026-01-05T08:00:00Z"
_IMAGES: Final = 25  # images in a node's status; a kubelet reports up to 50
_CONDITIONS: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


def bench_store(nodes: int, pods: int, history: int) -> Store:
    """Make a cluster with these numbers of nodes and pods, without events."""
    store = Store(history)
    apps = range(cluster.app_count(pods))
    _load(store, NAMESPACES.path, cluster.namespaces())
    _load(store, NODES.path, map(_node, range(nodes)))
    _load(store, CSI_NODES.path, ({"metadata": {"name": cluster.node_name(index)}} for index in range(nodes)))
    _load(store, STORAGE_CLASSES.path, [{"metadata": {"name": "fast"}, "provisioner": "disk.csi.example.com"}])
    _load(store, REPLICA_SETS.path, map(_replica_set, apps))
    _load(store, SERVICES.path, map(_service, apps))
    _load(store, POD_DISRUPTION_BUDGETS.path, map(_disruption_budget, apps[::10]))
    store.load(PODS.path, _pods(store.version + 1, pods, nodes))
    return store


def _load(store: Store, path: str, objects: Iterable[Object]) -> None:
    first = store.version + 1
    store.load(path, [_stored(body, version) for version, body in enumerate(objects, start=first)])


def _stored(body: Object, version: int) -> Stored:
    metadata = body["metadata"]
    uid = metadata.get("uid") or f"{version:08x}-3c5f-4d2a-b1e0-0000000000bb"
    metadata = {**metadata, "uid": uid, "resourceVersion": str(version), "creationTimestamp": _TIME}
    return Stored(metadata.get("namespace", ""), metadata["name"], uid, version, encode(body, metadata))


def _pods(first_version: int, pods: int, nodes: int) -> Iterator[Stored]:
    for index in range(pods):
        facts, label = base_pod(index, pods, nodes)
        yield facts.stored(first_version + index, "ready", label)


def _node(index: int) -> Object:
    node = cluster.node(index)
    node["metadata"]["annotations"] = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    node["spec"] = {"podCIDR": f"10.{index >> 8}.{index & 255}.0/24", "providerID": f"example:///{index:08x}"}
    node["status"] |= {
        "conditions": [
            {
                "type": each,
                "status": "True" if each == "Ready" else "False",
                "lastHeartbeatTime": _TIME,
                "lastTransitionTime": _TIME,
                "reason": f"KubeletHas{each}",
                "message": f"kubelet tells {each}",
            }
            for each in _CONDITIONS
        ],
        "addresses": [
            {"type": "InternalIP", "address": f"192.168.{index >> 8}.{index & 255}"},
            {"type": "Hostname", "address": cluster.node_name(index)},
        ],
        "nodeInfo": {"kernelVersion": "6.12.0", "kubeletVersion": "v1.34.1", "operatingSystem": "linux"},
        "images": [_image(number) for number in range(_IMAGES)],
    }
    return node


def _image(number: int) -> Object:
    digest = f"{number * 2654435761:064x}"
    name = f"registry.example.com/shop/app-{number:04d}"
    return {"names": [f"{name}@sha256:{digest}", f"{name}:1.42.0"], "sizeBytes": 100_000_000 + number}


def _replica_set(app: int) -> Object:
    pod = cluster.pod(app, app + cluster.NAMESPACES + 1, 1)
    labels = pod["metadata"]["labels"]
    selected = {key: labels[key] for key in ("app", "pod-template-hash")}
    return {
        "metadata": {
            "name": f"{labels['app']}-{labels['pod-template-hash']}",
            "namespace": pod["metadata"]["namespace"],
            "uid": replica_set_uid(app),
            "labels": labels,
        },
        "spec": {
            "replicas": cluster.PODS_PER_APP,
            "selector": {"matchLabels": selected},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": pod["spec"]["containers"]}},
        },
    }


def _service(app: int) -> Object:
    return {"metadata": _named_after(app), "spec": {"selector": {"app": cluster.app_name(app)}, "type": "ClusterIP"}}


def _disruption_budget(app: int) -> Object:
    selector = {"matchLabels": {"app": cluster.app_name(app)}}
    return {
        "metadata": _named_after(app),
        "spec": {"maxUnavailable": 1, "selector": selector},
        "status": {"disruptionsAllowed": 1},
    }


def _named_after(app: int) -> Object:
    return {"name": cluster.app_name(app), "namespace": f"ns-{app % cluster.NAMESPACES:03d}"}
