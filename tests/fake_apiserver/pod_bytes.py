"""The pods of the bench cluster as JSON bytes of a real pod's size: about 3 KB, each filled into an encoded template.

The fields for scheduling come from `tests.bench.cluster`. The rest is like the fields that a kubelet, a ReplicaSet and
kubectl write into a pod of a small web service.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, TypeAlias

import msgspec

from tests.bench import cluster
from tests.fake_apiserver.stored import Object, Stored

Stage: TypeAlias = Literal["pending", "bound", "running", "ready"]

_TIME: Final = "2026-01-05T08:00:00Z"
_PLACEHOLDER: Final = re.compile(rb"@(\w+)@")
_PHASES: Final[Mapping[Stage, str]] = {
    "pending": "Pending",
    "bound": "Pending",
    "running": "Running",
    "ready": "Running",
}
_CONDITIONS: Final[Mapping[Stage, tuple[str, ...]]] = {
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
        for each in _CONDITIONS[stage]
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
