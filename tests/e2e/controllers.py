"""What controllers and kubelets do, done by a test, because none of them is here.

Makes the objects of a random cluster, and then acts as the controllers of workloads, of disruption and of the lifecycle
of nodes. A pod leaves its node at once: its grace period is 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import httpx

from tests.e2e.api import NAMESPACES, NODES, Api, Manifest, pods_path
from tests.e2e.random_clusters import DATA, DRIVER, PRIORITIES, RandomCluster, Workload
from tests.e2e.shapes import HOSTNAME, ZONE, on

_APPS: Final = "/apis/apps/v1/namespaces"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_HASH: Final = {"pod-template-hash": "5d4f"}
_MODE: Final = "ReadWriteOncePod"
_READY: Final = ("False", "True")
_RUNNING: Final = "Running"
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def create_priorities(api: Api) -> None:
    """Make the priority classes of the workloads."""
    for name, value in PRIORITIES.items():
        api.create_priority({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"})


class Controllers:
    """A random cluster in a namespace of its own, and what its controllers do."""

    def __init__(self, api: Api, made: RandomCluster, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._pods_path = pods_path(namespace)
        self._names = count(1)
        self._random = made.random
        self.owners: dict[tuple[str, str], Manifest] = {}
        self._budgets: dict[str, int] = {}  # app -> desired number of healthy pods
        self.running: dict[str, Manifest] = {}
        """Name -> the pod as it was at first."""
        api.create(NAMESPACES, {"metadata": {"name": namespace}})
        api.create_all(NODES, made.nodes)
        api.create_all(_CSI_NODES, [_csi_node(name, number) for name, number in made.volumes_a_node.items()])
        pods = [each for workload in made.workloads for each in self._made(workload)]
        pods += self._of_nodes(made.nodes)
        self.running = {each["metadata"]["name"]: each for each in api.create_all(self._pods_path, pods)}
        self._budget_all(made.workloads)

    # Making

    def _made(self, workload: Workload) -> list[Manifest]:
        """Make the owner of a workload, and return its pods."""
        owner = self._owner(workload)
        self.owners[owner["kind"], owner["metadata"]["name"]] = owner
        pods: list[Manifest] = []
        for index, (node, ready) in enumerate(zip(workload.places, self._ready(workload), strict=True)):
            name = f"{owner['metadata']['name']}-{index}"
            made = self._pod(owner, name, index)
            (container,) = made["spec"]["containers"]
            requests = {**container["resources"]["requests"], "cpu": workload.running_cpu}
            made["spec"]["containers"] = [{**container, "resources": {"requests": requests}}]
            if workload.volume_zones:
                self._volume(f"{DATA}-{name}", workload.volume_zones[index])
            pods.append({**on(made, node), "status": _status(is_ready=ready)})
        return pods

    @staticmethod
    def _ready(workload: Workload) -> list[bool]:
        return [index >= workload.unready for index in range(len(workload.places))]

    def _owner(self, workload: Workload) -> Manifest:
        labels = {"app": workload.name}
        spec: dict[str, Any] = {"replicas": len(workload.places), "selector": {"matchLabels": labels}}
        template = {each: workload.template[each] for each in ("metadata", "spec")}
        template["metadata"] = {"labels": labels}
        spec["template"] = template
        metadata: dict[str, Any] = {"name": workload.name}
        if workload.kind == "Job":
            made = {"metadata": metadata, "spec": {"parallelism": len(workload.places), "template": template}}
            return self._created("/apis/batch/v1/namespaces", "Job", made)
        if workload.kind == "StatefulSet":
            claims = [{"metadata": {"name": DATA}, "spec": _claim_spec()}] if workload.volume_zones else []
            stateful = {**spec, "serviceName": workload.name, "volumeClaimTemplates": claims}
            return self._created(_APPS, "StatefulSet", {"metadata": metadata, "spec": stateful})
        if workload.kind == "Deployment":
            above = self._created(_APPS, "Deployment", {"metadata": metadata, "spec": spec})
            labels = {**labels, **_HASH}
            template["metadata"] = {"labels": labels}
            spec = {**spec, "selector": {"matchLabels": labels}, "template": template}
            named = f"{workload.name}-{_HASH['pod-template-hash']}"
            annotations = {"deployment.kubernetes.io/revision": "1"}
            metadata = {"name": named, "labels": labels, "annotations": annotations, "ownerReferences": [_owns(above)]}
        return self._created(_APPS, "ReplicaSet", {"metadata": metadata, "spec": spec})

    def _created(self, root: str, kind: str, manifest: Manifest) -> Manifest:
        return {**self._api.create(f"{root}/{self._namespace}/{kind.lower()}s", manifest), "kind": kind}

    def _pod(self, owner: Manifest, name: str, index: int) -> dict[str, Any]:
        """Return the pod that a controller makes of the template that counts now."""
        template, kind = owner["spec"]["template"], owner["kind"]
        labels, spec = {**template["metadata"]["labels"]}, {**template["spec"]}
        if kind == "StatefulSet":
            labels |= {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(index)}
            for each in owner["spec"].get("volumeClaimTemplates", ()):
                volume = each["metadata"]["name"]
                claim = {"claimName": f"{volume}-{name}"}
                spec["volumes"] = [*spec.get("volumes", ()), {"name": volume, "persistentVolumeClaim": claim}]
        return {"metadata": {"name": name, "labels": labels, "ownerReferences": [_owns(owner)]}, "spec": spec}

    def _of_nodes(self, nodes: Sequence[Manifest]) -> list[Manifest]:
        """Return a pod of a DaemonSet on each node, and one that no controller makes again."""
        labels = {"app": "agent"}
        spec = {"containers": [{"name": "main", "image": "registry.invalid/none"}], "terminationGracePeriodSeconds": 0}
        template = {"metadata": {"labels": labels}, "spec": spec}
        selector = {"matchLabels": labels}
        owner = self._created(
            _APPS, "DaemonSet", {"metadata": {"name": "agent"}, "spec": {"selector": selector, "template": template}}
        )
        names = [each["metadata"]["name"] for each in nodes]
        agents = [on(self._pod(owner, f"agent-{name}", 0), name) for name in names]
        bare = on({"metadata": {"name": "bare"}, "spec": spec}, self._random.choice(names))
        return [{**each, "status": _status(is_ready=True)} for each in (*agents, bare)]

    def _volume(self, claim: str, zone: str) -> None:
        """Make a claim and its volume, which only a zone reaches, as the provisioner and the controller leave them."""
        claims = f"{NAMESPACES}/{self._namespace}/persistentvolumeclaims"
        name = f"{self._namespace}-{claim}"
        made = self._api.create(
            claims,
            {
                "metadata": {"name": claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {**_claim_spec(), "volumeName": name},
                "status": {
                    "phase": "Bound",
                    "accessModes": [_MODE],
                    "capacity": {"storage": "1Gi"},
                },
            },
        )
        reference = {"kind": "PersistentVolumeClaim", "namespace": self._namespace, "name": claim}
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        spec = {
            "accessModes": [_MODE],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "zonal",
            "claimRef": {**reference, "uid": made["metadata"]["uid"]},
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        }
        self._api.create(_VOLUMES, {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Bound"}})

    # Disruption

    def _budget_all(self, workloads: Iterable[Workload]) -> None:
        for each in workloads:
            if each.disruptions is None:
                continue
            spec = {"maxUnavailable": each.disruptions, "selector": {"matchLabels": {"app": each.name}}}
            self._api.create(self._budgets_path, {"metadata": {"name": each.name}, "spec": spec})
            self._budgets[each.name] = max(len(each.places) - each.disruptions, 0)
        self.count_disruptions()

    @property
    def _budgets_path(self) -> str:
        return f"/apis/policy/v1/namespaces/{self._namespace}/poddisruptionbudgets"

    def count_disruptions(self) -> None:
        """Write the statuses of the budgets (pkg/controller/disruption/disruption.go, updatePdbStatus)."""
        healthy_ones = Counter(each["metadata"].get("labels", {}).get("app") for each in self.pods if _is_ready(each))
        for app, desired in self._budgets.items():
            healthy = healthy_ones[app]
            status = {
                "observedGeneration": 1,
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "expectedPods": healthy,
                "disruptionsAllowed": max(healthy - desired, 0),
                "disruptedPods": None,
            }
            self._api.patch(f"{self._budgets_path}/{app}/status", {"status": status})

    def evict(self, names: Sequence[str]) -> list[str]:
        """Evict pods at once, as kubectl does. Return those that their budgets let go."""
        gone = self._api.at_once(self._is_evicted, names)
        return [name for name, is_gone in zip(names, gone, strict=True) if is_gone]

    def _is_evicted(self, name: str) -> bool:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            self._api.request("POST", f"{self._pods_path}/{name}/eviction", eviction)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        return True

    def cordon(self, names: Iterable[str]) -> None:
        """Cordon nodes, with the taint that the node lifecycle controller adds."""
        for name in names:
            taints = [*self._api.get(f"{NODES}/{name}")["spec"].get("taints", ()), _UNSCHEDULABLE]
            self._api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True, "taints": taints}})

    def lose(self, names: Sequence[str], *, removed: bool) -> None:
        """Take nodes for dead, as the node lifecycle controller does, or delete them, and delete their pods."""
        gone = self.names_on(names)
        for name in names:
            if removed:
                self._api.delete(f"{NODES}/{name}")
                continue
            conditions = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
            self._api.patch(f"{NODES}/{name}/status", {"status": {"conditions": conditions}})
            taints = self._api.get(f"{NODES}/{name}")["spec"].get("taints", [])
            taints += [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
            self._api.patch(f"{NODES}/{name}", {"spec": {"taints": taints}})
        self._api.at_once(self._api.delete, [f"{self._pods_path}/{each}" for each in gone])

    # Workloads

    def names_on(self, nodes: Sequence[str]) -> list[str]:
        """Return the names of the pods that are on nodes, but for those of DaemonSets."""
        return [
            each["metadata"]["name"]
            for each in self._api.items(self._pods_path)
            if each["spec"].get("nodeName") in nodes and owner_of(each)[0] != "DaemonSet"
        ]

    def make_again(self, gone: Iterable[str]) -> None:
        """Make the pods that owners make instead of some that are gone, in any order."""
        made = [each for name in gone if (each := self._again(name)) is not None]
        self._random.shuffle(made)
        self._api.create_all(self._pods_path, made)

    def _again(self, name: str) -> Manifest | None:
        owner = self.owners.get(owner_of(self.running[name]))
        if owner is None:
            return None
        stem, _, index = name.rpartition("-")
        keeps_name = owner["kind"] == "StatefulSet"
        return self._pod(owner, name if keeps_name else f"{stem}-new{next(self._names)}", int(index))

    def start_pods(self) -> None:
        """Let the pods run that a scheduler has bound, as kubelets do."""
        for each in self.pods:
            if each["spec"].get("nodeName") and each["status"].get("phase") != _RUNNING:
                named = f"{self._pods_path}/{each['metadata']['name']}/status"
                self._api.patch(named, {"status": _status(is_ready=True)})

    @property
    def pods(self) -> list[dict[str, Any]]:
        """The pods as the API server has them."""
        return self._api.items(self._pods_path)

    def tidy(self) -> None:
        """Delete pods and nodes."""
        self._api.delete_all(self._pods_path)
        self._api.delete_all(NODES)
        self._api.delete_all(_CSI_NODES)


def owner_of(pod: Manifest) -> tuple[str, str]:
    """Return the kind and the name of a pod's controller, empty for none."""
    (owner,) = pod["metadata"].get("ownerReferences") or [{"kind": "", "name": ""}]
    return owner["kind"], owner["name"]


def _owns(owner: Manifest) -> dict[str, Any]:
    version = "batch/v1" if owner.get("kind") == "Job" else "apps/v1"
    named = {
        "kind": owner.get("kind") or "Deployment",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {"apiVersion": version, **named, "controller": True}


def _claim_spec() -> dict[str, Any]:
    return {
        "accessModes": [_MODE],
        "storageClassName": "zonal",
        "resources": {"requests": {"storage": "1Gi"}},
    }


def _csi_node(name: str, number: int) -> Manifest:
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": number}, "topologyKeys": [HOSTNAME]}
    return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}


def _status(*, is_ready: bool) -> dict[str, Any]:
    return {"phase": _RUNNING, "conditions": [{"type": "Ready", "status": _READY[is_ready]}]}


def _is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
