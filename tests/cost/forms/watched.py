"""Forms of objects from an API server: odd objects of every kind, and very many pods with one oddity each.

The documents are lists of v1 objects. Cluster-wide objects have no namespace.
"""

from collections.abc import Callable
from typing import Any, Final

from tests.bench.cluster import HOST, PREFERRED, REQUIRED, ZONE, app_name, node_name
from tests.cost.attack import ROOM, Object, grown, grown_map, longest
from tests.cost.forms.form import Form, expression, pod

_CROWD: Final = 32 * 1024 * 1024
"""Bytes of about 100,000 small pods."""


def v1(kind: str, name: str, api: str = "v1", namespace: str = "", **more: Any) -> Object:  # noqa: ANN401 - JSON
    """Return an object of a kind."""
    metadata = {"name": name, "uid": f"{kind}-{name}", **({"namespace": namespace} if namespace else {})}
    metadata |= more.pop("metadata", {})
    return {"kind": kind, "apiVersion": api, "metadata": metadata, **more}


def _one(name: str, area: str, make: Callable[[int], Object]) -> Form:
    return Form(name, area, "objects", lambda size: [make(size - ROOM // 2)])


def _many(name: str, area: str, make: Callable[[int], Object], sizes: tuple[int, ...] = ()) -> Form:
    return Form(name, area, "objects", lambda size: grown(size, make), sizes=sizes)


def _node(index: int = 0, **more: Any) -> Object:  # noqa: ANN401 - JSON
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    metadata = {"labels": {HOST: f"odd-{index}", ZONE: "zone-0", **more.pop("labels", {})}}
    status = {"allocatable": {**resources, **more.pop("resources", {})}, **more.pop("status", {})}
    return v1("Node", f"odd-{index}", metadata=metadata, spec=more, status=status)


def _bound(index: int, spec: Object | None = None, **metadata: Any) -> Object:  # noqa: ANN401 - JSON
    name = f"crowd-{index}"
    return pod(
        {"nodeName": node_name(index % 5000), "containers": [], **(spec or {})}, {"name": name, "uid": name, **metadata}
    )


def _preferring(index: int) -> Object:
    everything: Object = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOST}
    return {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1 + index % 100, "podAffinityTerm": everything}]}}}


def _odd_term(index: int) -> Object:
    """Return a term that matches no pod, in a way that no index of labels can use."""
    selector = {"matchExpressions": [expression(f"k-{index}", "Exists")]}
    return _required({"labelSelector": selector, "topologyKey": HOST})


def _term_of_everything(index: int) -> Object:
    selector = {"matchExpressions": [expression("app", "NotIn", [f"v-{index}"])]}
    return _required({"labelSelector": selector, "namespaceSelector": {}, "topologyKey": "nowhere"})


def _own_key(index: int) -> Object:
    return _required({"labelSelector": {"matchLabels": {"app": app_name(index)}}, "topologyKey": f"k-{index}"})


def _required(term: Object) -> Object:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def _spread(index: int) -> Object:
    selector = {"matchLabels": {"app": app_name(index)}}
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": f"k-{index}", "labelSelector": selector,
                                           "whenUnsatisfiable": "DoNotSchedule"}]}  # fmt: skip


def _budget(index: int, selector: Object) -> Object:
    return v1("PodDisruptionBudget", f"b-{index}", "policy/v1", "ns-000", spec={"selector": selector})


def _volume(index: int, terms: list[Object]) -> Object:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "slow",
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    return v1("PersistentVolume", f"pv-{index}", spec=spec)


def _claim(index: int, **spec: Any) -> Object:  # noqa: ANN401 - JSON
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return v1("PersistentVolumeClaim", f"claim-{index}", namespace="ns-000", spec=spec)


def _capacity(index: int, topology: Object) -> Object:
    return v1("CSIStorageCapacity", f"c-{index}", "storage.k8s.io/v1", "ns-000", storageClassName="slow",
              nodeTopology=topology, capacity="1Gi")  # fmt: skip


def _exists(index: int) -> Object:
    return expression(f"k-{index}", "Exists")


def _storage_class(size: int) -> Object:
    terms = grown(size, lambda index: {"matchLabelExpressions": [{"key": f"k-{index}", "values": ["v"]}]})
    return v1("StorageClass", "slow", "storage.k8s.io/v1", provisioner="p", allowedTopologies=terms)


def _csi_node(size: int) -> Object:
    drivers = grown(size, lambda index: {"name": f"d-{index}", "nodeID": "n", "allocatable": {"count": 1}})
    return v1("CSINode", "odd-0", "storage.k8s.io/v1", spec={"drivers": drivers})


_BIND: Final = "VolumeBinding"
_POD: Final = "InterPodAffinity"
_NODE: Final = "nodes"

FORMS: Final = [
    _one("node-labels", _NODE, lambda size: _node(labels=grown_map(size, lambda i: (f"k-{i}", "v")))),
    _one(
        "node-taints",
        _NODE,
        lambda size: _node(taints=grown(size, lambda i: {"key": f"k-{i}", "effect": "NoSchedule"})),
    ),
    _one("node-images", _NODE, lambda size: _node(status={"images": grown(size, lambda i: {"names": [f"i-{i}"]})})),
    _one(
        "node-image-names",
        _NODE,
        lambda size: _node(status={"images": [{"names": grown(size, lambda i: f"i-{i}"), "sizeBytes": 2**62}]}),
    ),
    _one(
        "node-conditions", _NODE, lambda size: _node(status={"conditions": grown(size, lambda i: {"type": f"t-{i}"})})
    ),
    _one("node-resources", _NODE, lambda size: _node(resources=grown_map(size, lambda i: (f"e.com/{i}", "1")))),
    _one("node-label-long", _NODE, lambda size: _node(labels={"app": longest(size)})),
    _one("node-name-long", _NODE, lambda size: v1("Node", longest(size // 2))),
    _many("nodes-labels", _NODE, lambda index: _node(index, labels={f"k-{index}": "v"})),
    _many("nodes-taints", _NODE, lambda index: _node(index, taints=[{"key": f"k-{index}", "effect": "NoSchedule"}])),
    _many("nodes-resources", _NODE, lambda index: _node(index, resources={f"example.com/r-{index}": "1"})),
    _many("nodes-images", _NODE, lambda index: _node(index, status={"images": [{"names": [f"i-{index}"]}]})),
    _one(
        "namespace-labels",
        _POD,
        lambda size: v1("Namespace", "odd", metadata={"labels": grown_map(size, lambda i: (f"k-{i}", "v"))}),
    ),
    _many("namespaces", _POD, lambda index: v1("Namespace", f"n-{index}", metadata={"labels": {f"k-{index}": "v"}})),
    _one(
        "service-selector",
        "services",
        lambda size: v1(
            "Service", "s", namespace="ns-000", spec={"selector": grown_map(size, lambda i: (f"k-{i}", "v"))}
        ),
    ),
    _many(
        "services",
        "services",
        lambda i: v1("Service", f"s-{i}", namespace="ns-000", spec={"selector": {"app": "app-0000"}}),
    ),
    _one(
        "budget-values",
        "preemption",
        lambda size: _budget(0, {"matchExpressions": [expression("app", "NotIn", grown(size, lambda i: f"v-{i}"))]}),
    ),
    _many("budgets", "preemption", lambda i: _budget(i, {"matchExpressions": [_exists(i)]})),
    _one("volume-terms", _BIND, lambda size: _volume(0, grown(size, lambda i: {"matchExpressions": [_exists(i)]}))),
    _one("volume-requirements", _BIND, lambda size: _volume(0, [{"matchExpressions": grown(size, _exists)}])),
    _one(
        "volume-hosts",
        _BIND,
        lambda size: _volume(0, [{"matchExpressions": [expression(HOST, "In", grown(size, node_name))]}]),
    ),
    _many("volumes", _BIND, lambda i: _volume(i, [{"matchExpressions": [_exists(i)]}])),
    _many(
        "volumes-hosts", _BIND, lambda i: _volume(i, [{"matchExpressions": [expression(HOST, "In", [node_name(i)])]}])
    ),
    _many("bound-claims", _BIND, lambda i: _claim(i, storageClassName="slow", volumeName=f"pv-{i}")),
    _one("claim-selector", _BIND, lambda size: _claim(0, selector={"matchExpressions": grown(size, _exists)})),
    _one("storage-class-topologies", _BIND, _storage_class),
    _one("csi-node-drivers", "NodeVolumeLimits", _csi_node),
    _many("csi-capacities", _BIND, lambda i: _capacity(i, {"matchExpressions": [_exists(i)]})),
    _one("csi-capacity-topology", _BIND, lambda size: _capacity(0, {"matchExpressions": grown(size, _exists)})),
    _many(
        "attachments",
        "NodeVolumeLimits",
        lambda i: v1(
            "VolumeAttachment",
            f"a-{i}",
            "storage.k8s.io/v1",
            spec={"attacher": f"d-{i}", "nodeName": node_name(i % 5000), "source": {"persistentVolumeName": f"pv-{i}"}},
        ),
    ),
    _one(
        "replica-set-selector",
        "PodTopologySpread",
        lambda size: v1(
            "ReplicaSet", "r", "apps/v1", "ns-000", spec={"selector": {"matchExpressions": grown(size, _exists)}}
        ),
    ),
    _many(
        "replica-sets",
        "PodTopologySpread",
        lambda i: v1(
            "ReplicaSet", f"r-{i}", "apps/v1", "ns-000", spec={"selector": {"matchLabels": {"app": app_name(i)}}}
        ),
    ),
    _many(
        "stateful-sets",
        "PodTopologySpread",
        lambda i: v1(
            "StatefulSet", f"s-{i}", "apps/v1", "ns-000", spec={"selector": {"matchLabels": {"app": "app-0000"}}}
        ),
    ),
    _many("crowd-odd-terms", _POD, lambda i: _bound(i, _odd_term(i)), (1 << 20, _CROWD)),
    _many("crowd-terms-of-everything", _POD, lambda i: _bound(i, _term_of_everything(i))),
    _many("crowd-preferring", _POD, lambda i: _bound(i, _preferring(i))),
    _many("crowd-own-keys", _POD, lambda i: _bound(i, _own_key(i))),
    _many("crowd-spread", "PodTopologySpread", lambda i: _bound(i, _spread(i))),
    _many("crowd-labels", _POD, lambda i: _bound(i, labels={f"k-{i}": "v"})),
    _many("crowd-namespaces", _POD, lambda i: _bound(i, namespace=f"n-{i}")),
    _many("crowd-unknown-nodes", "mirror", lambda i: _bound(i, {"nodeName": f"gone-{i}"})),
    _many("crowd-one-node", "mirror", lambda i: _bound(i, {"nodeName": node_name(0)})),
    _many("crowd-ports", "NodePorts", lambda i: _bound(i, {"containers": [{"ports": [{"hostPort": 1 + i % 65535}]}]})),
    _many(
        "crowd-resources",
        "NodeResourcesFit",
        lambda i: _bound(i, {"containers": [{"resources": {"requests": {f"example.com/r-{i}": "1"}}}]}),
    ),
    _many(
        "crowd-disks",
        "VolumeRestrictions",
        lambda i: _bound(i, {"volumes": [{"gcePersistentDisk": {"pdName": f"{i}"}}]}),
    ),
]
