"""The bench cluster as a store: the objects of `tests.bench.cluster`, in the size of real objects, and their churn.

A pod has about 3 KB of JSON, filled into an encoded template. The fields for scheduling come from
`tests.bench.cluster`. The rest is like the fields that a kubelet, a ReplicaSet and kubectl write into a pod of a small
web service.
"""

import asyncio
import random
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec

from tests.bench import cluster
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
from tests.fake_apiserver.store import Object, Store, Stored, encode

# Pods.

Stage: TypeAlias = Literal["pending", "bound", "running", "ready"]

_TIME: Final = "2026-01-05T08:00:00Z"
_PLACEHOLDER: Final = re.compile(rb"@(\w+)@")
_PHASES: Final[Mapping[Stage, str]] = {
    "pending": "Pending",
    "bound": "Pending",
    "running": "Running",
    "ready": "Running",
}
_POD_CONDITIONS: Final[Mapping[Stage, tuple[str, ...]]] = {
    "pending": (),
    "bound": ("PodScheduled",),
    "running": ("PodReadyToStartContainers", "Initialized", "PodScheduled"),
    "ready": ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"),
}


class PodFacts:
    """The fields that differ between pods of one template."""

    __slots__ = ("app", "name", "namespace", "node_name", "number", "uid")

    def __init__(self, number: int, app: tuple[int, int], name: str, namespace: str, node_name: str) -> None:
        """`app` is one of how many."""
        self.number = number
        self.app = app
        self.name = name
        self.namespace = namespace
        self.node_name = node_name
        self.uid = f"{number:08x}-7b1d-4c6e-9a53-{app[0]:012x}"

    def stored(self, version: int, stage: Stage, label: int) -> Stored:
        """Make the pod in a stage. `label` is the number in its label `version`."""
        pieces, names = _template(*self.app, stage)
        values = {
            b"NAME": self.name.encode(),
            b"UID": self.uid.encode(),
            b"RV": b"%d" % version,
            b"LABEL": b"v%d" % label,
            b"NODE": self.node_name.encode(),
            b"IP": b"10.%d.%d.%d" % (self.number >> 16 & 255, self.number >> 8 & 255, self.number & 255),
        }
        parts = [pieces[0]]
        for name, piece in zip(names, pieces[1:], strict=True):
            parts += (values[name], piece)
        stored = Stored(self.namespace, self.name, self.uid, version, b"".join(parts))
        stored.phase = _PHASES[stage]
        stored.node_name = self.node_name if stage != "pending" else ""
        return stored


def base_pod(index: int, pods: int, nodes: int) -> tuple[PodFacts, int]:
    """Return a pod of the bench cluster, and the number in its label `version`."""
    apps = cluster.app_count(pods)
    made = cluster.pod(index, apps, nodes)
    metadata = made["metadata"]
    facts = PodFacts(index, (index % apps, apps), metadata["name"], metadata["namespace"], made["spec"]["nodeName"])
    return facts, int(metadata["labels"]["version"].removeprefix("v"))


def encode_templates(apps: int) -> None:
    """Encode all templates now, so that a later measurement includes only filling them."""
    for app in range(apps):
        for stage in _PHASES:
            _template(app, apps, stage)


@cache
def _template(app: int, apps: int, stage: Stage) -> tuple[list[bytes], list[bytes]]:
    """Encode a pod of an app. Return the text around the placeholders, and the placeholders in their order."""
    encoded = msgspec.json.encode(_pod(app, apps, stage))[1:]
    found = _PLACEHOLDER.split(encoded)
    return found[::2], found[1::2]


def _pod(app: int, apps: int, stage: Stage) -> Object:
    given = cluster.pod(app, apps, 1)  # the number of nodes affects only the node's name, which is a placeholder here
    name, hash_label = given["metadata"]["labels"]["app"], given["metadata"]["labels"]["pod-template-hash"]
    node = {"nodeName": "@NODE@"} if stage != "pending" else {}
    affinity = {"affinity": given["spec"]["affinity"]} if "affinity" in given["spec"] else {}
    return {
        "metadata": {
            "name": "@NAME@",
            "generateName": f"{name}-{hash_label}-",
            "namespace": given["metadata"]["namespace"],
            "uid": "@UID@",
            "resourceVersion": "@RV@",
            "generation": 1,
            "creationTimestamp": _TIME,
            "labels": given["metadata"]["labels"]
            | {
                "version": "@LABEL@",
                "app.kubernetes.io/managed-by": "Helm",
                "app.kubernetes.io/part-of": f"shop-{app % 17}",
                "apps.kubernetes.io/pod-index": str(app % 5),
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "8080",
                "checksum/config": f"{app * 2654435761:064x}",
                "kubectl.kubernetes.io/restartedAt": _TIME,
            },
            "ownerReferences": [_owner(app, f"{name}-{hash_label}")],
            "managedFields": [_managed("kube-controller-manager", ""), _managed("kubelet", "status")],
        },
        "spec": _spec(name) | node | affinity,
        "status": _status(name, stage),
    }


def _owner(app: int, name: str) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": name,
        "uid": replica_set_uid(app),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def replica_set_uid(app: int) -> str:
    """Return the uid of the ReplicaSet that owns the pods of an app."""
    return f"{app:08x}-5e7a-4b0c-8d21-0000000000aa"


def _managed(manager: str, subresource: str) -> Object:
    fields = ("f:metadata", "f:labels", "f:spec") if not subresource else ("f:status", "f:conditions")
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": _TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": {field: {".": {}, "f:app": {}} for field in fields},
        **({"subresource": subresource} if subresource else {}),
    }


def _spec(name: str) -> Object:
    token = "kube-api-access-x7k2p"  # noqa: S105 - the name of a volume
    tolerated = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return {
        "volumes": [
            {"name": token, "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607}}]}},
            {"name": "config", "configMap": {"name": f"{name}-config", "defaultMode": 420}},
        ],
        "containers": [
            {
                "name": "c",
                "image": f"registry.example.com/shop/{name}:1.42.0",
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "env": [
                    {"name": "LOG_LEVEL", "value": "info"},
                    {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                    {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": f"{name}-db", "key": "url"}}},
                ],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "volumeMounts": [
                    {"name": "config", "readOnly": True, "mountPath": "/etc/shop"},
                    {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
                ],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": name,
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in tolerated
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status(name: str, stage: Stage) -> Object:
    conditions = [
        {"type": each, "status": "True", "lastProbeTime": None, "lastTransitionTime": _TIME}
        for each in _POD_CONDITIONS[stage]
    ]
    status: Object = {"phase": _PHASES[stage], "conditions": conditions, "qosClass": "Burstable"}
    if stage in {"running", "ready"}:
        status |= {
            "hostIP": "192.168.17.4",
            "podIP": "@IP@",
            "podIPs": [{"ip": "@IP@"}],
            "startTime": _TIME,
            "containerStatuses": [
                {
                    "name": "c",
                    "state": {"running": {"startedAt": _TIME}},
                    "ready": stage == "ready",
                    "restartCount": 0,
                    "image": f"registry.example.com/shop/{name}:1.42.0",
                    "containerID": "containerd://@UID@",
                    "started": True,
                }
            ],
        }
    return status


# The cluster.

_IMAGES: Final = 25  # images in a node's status; a kubelet reports up to 50
_NODE_CONDITIONS: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


def bench_store(nodes: int, pods: int, history: int) -> Store:
    """Make a cluster with these numbers of nodes and pods, without events."""
    store = Store(history)
    apps = range(cluster.app_count(pods))
    _load(store, NAMESPACES.path, cluster.namespaces())
    _load(store, NODES.path, map(_node, range(nodes)))
    _load(store, CSI_NODES.path, ({"metadata": {"name": cluster.node_name(index)}} for index in range(nodes)))
    _load(store, STORAGE_CLASSES.path, [{"metadata": {"name": "fast"}, "provisioner": "disk.csi.example.com"}])
    _load(store, REPLICA_SETS.path, map(_replica_set, apps))
    _load(store, SERVICES.path, map(service, apps))
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
            for each in _NODE_CONDITIONS
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


def service(app: int) -> Object:
    """Make the v1.Service that selects the pods of an app."""
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


# Churn.

TICK: Final = 0.005  # seconds between two batches
_ROLLING: Final = 500  # pods at a time in addition to the bench cluster's
_STAGES: Final[tuple[Stage, ...]] = ("pending", "bound", "running", "ready")
_OF_BASE_PODS: Final = 0.25  # share of events of the bench cluster's pods


class Churn:
    """Steady rollouts and status updates of a bench store's pods. `nodes` and `pods` are the store's numbers.

    It is deterministic for a seed, except for the batches of the events.
    """

    def __init__(self, store: Store, nodes: int, pods: int, seed: int = 1) -> None:
        self._store = store
        self._nodes = nodes
        self._pods = pods
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._starting: deque[tuple[PodFacts, int]] = deque()  # pod, its stage
        self._alive: deque[PodFacts] = deque()  # pods that are ready, the oldest first
        self._made = 0
        self.done = 0  # events so far

    async def run(self, rate: float, seconds: float | None = None) -> None:
        """Make `rate` events a second, for a time or until cancelled. Late events are caught up."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        made, passed = 0, 0.0
        while seconds is None or passed < seconds:
            await asyncio.sleep(TICK)
            passed = loop.time() - began
            due = int(rate * (passed if seconds is None else min(passed, seconds)))
            for _ in range(due - made):
                self.step()
            made = due

    def step(self) -> None:
        """Make one event."""
        self.done += 1
        if self._random.random() < _OF_BASE_PODS:
            self._change_base_pod()
        elif len(self._alive) >= _ROLLING:
            self._delete_oldest()
        elif self._starting and self._random.random() < (len(_STAGES) - 1) / len(_STAGES):
            self._advance()
        else:
            self._create()

    def _change_base_pod(self) -> None:
        """Change the readiness of a pod, as a kubelet does, and a label."""
        index = self._random.randrange(self._pods)
        facts, _ = base_pod(index, self._pods, self._nodes)
        stage: Stage = "ready" if self._random.random() < 0.9 else "running"
        self._put(facts, stage, self._random.randrange(3))

    def _create(self) -> None:
        self._made += 1
        number = self._pods + self._made
        apps = cluster.app_count(self._pods)
        app = self._random.randrange(apps)
        # A random node, so that pods are spread. A real scheduler would choose.
        node = cluster.node_name(self._random.randrange(self._nodes))
        namespace = f"ns-{app % cluster.NAMESPACES:03d}"
        facts = PodFacts(number, (app, apps), f"churn-{self._made:06d}", namespace, node)
        self._starting.append((facts, 0))
        self._put(facts, _STAGES[0], 0)

    def _advance(self) -> None:
        """Move a pod to its next stage: bound, running, ready."""
        facts, reached = self._starting.popleft()
        stage = reached + 1
        self._put(facts, _STAGES[stage], 0)
        if stage + 1 == len(_STAGES):
            self._alive.append(facts)
        else:
            self._starting.append((facts, stage))

    def _delete_oldest(self) -> None:
        facts = self._alive.popleft()
        self._store.remove(PODS.path, self._store.collections[PODS.path].objects[f"{facts.namespace}/{facts.name}"])

    def _put(self, facts: PodFacts, stage: Stage, label: int) -> None:
        before = self._store.collections[PODS.path].objects.get(f"{facts.namespace}/{facts.name}")
        self._store.put(PODS.path, before, facts.stored(self._store.version + 1, stage, label))
