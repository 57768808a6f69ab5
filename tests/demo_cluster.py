"""The demo cluster: sixty nodes and the pods of a small shop, made the same way every time.

`python -m tests.demo_cluster` prints app/demo/cluster.json, and with the name of a request app/demo/requests/NAME.json.
Change the demo here and print the files again. A test compares them.
"""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal

Object = dict[str, Any]
Labels = dict[str, str]
Kind = Literal["Deployment", "StatefulSet", "DaemonSet", "Job", "Pod"]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

REGION = "eu-west-1"
ZONES = "abc"  # zones of the region: twenty nodes each, in four racks of five
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # characters of generated names: no vowels, no 0, 1 or 3
NAMESPACES = ("batch", "data", "default", "dev", "kube-system", "monitoring", "shop")
PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000, "shop-high": 100000}


@dataclass(frozen=True, slots=True)
class Place:
    """A node. Its number determines its name, zone and address."""

    number: int

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def zone(self) -> str:
        return ZONES[(self.number - 1) // 20]

    @property
    def address(self) -> str:
        return f"10.0.{(self.number - 1) // 20}.{10 + self.number}"


# The order of kube-scheduler: one node of each zone in turn.
ROUND = tuple(Place(zone * 20 + position + 1) for position in range(20) for zone in range(len(ZONES)))


def term(key: str, labels: Labels, **scope: object) -> Object:
    """Return a pod affinity term: pods with these labels, in this scope, with the same value of the key."""
    return {"labelSelector": {"matchLabels": labels}, **scope, "topologyKey": key}


def weighted(weight: int, wanted: Object) -> Object:
    """Return a term as a preference with a weight."""
    return {"podAffinityTerm": wanted, "weight": weight}


def near(wanted: Object) -> Object:
    """Return a required affinity to the term's pods."""
    return {"podAffinity": {REQUIRED: [wanted]}}


def far(wanted: Object) -> Object:
    """Return a required anti-affinity to the term's pods."""
    return {"podAntiAffinity": {REQUIRED: [wanted]}}


@dataclass(frozen=True, slots=True)
class Workload:
    """A controller and its pods. Kind Pod: one pod without a controller."""

    namespace: str
    name: str
    kind: Kind
    replicas: int
    image: str
    requests: tuple[str, str] | None = ("100m", "128Mi")  # CPU and memory
    labels: Labels | None = None  # default: app: NAME
    affinity: Object = field(default_factory=dict)
    first: int = 0  # index of the first replica's node in ROUND
    zones: str = ZONES  # the zones that its rules allow
    priority: str = ""  # name of a priority class
    succeeded: int = 0  # number of replicas, from the first on, that succeeded
    failed: int = 0  # number of the next replicas that failed
    waiting: str = ""  # why the last replica has no node


WEB_AFFINITY: Object = {
    "podAffinity": {PREFERRED: [weighted(30, term(ZONE, {"app": "cache"}, namespaces=["data"]))]},
    "podAntiAffinity": {
        PREFERRED: [weighted(100, term(HOSTNAME, {"app": "web"})), weighted(50, term(ZONE, {"app": "web"}))],
    },
}
DATA = {"matchLabels": {"kubernetes.io/metadata.name": "data"}}
PRIMARY = {"statefulset.kubernetes.io/pod-name": "database-0"}  # a label that only one pod has
NEAR_PRIMARY = near(term(ZONE, PRIMARY, namespaceSelector=DATA))
FORGOTTEN_NAMESPACE = near(term(ZONE, {"app": "database"}))  # selects in its own namespace, which has no database

NO_FREE_ZONE = "0/60 nodes are available: 60 node(s) didn't match pod anti-affinity rules."
NO_SUCH_POD = "0/60 nodes are available: 60 node(s) didn't match pod affinity rules."

# The formatter would put each of these arguments on its own line.
# fmt: off
WEB = Workload("shop", "web", "Deployment", 47, "registry.example.com/shop/web:4.7.2", ("250m", "256Mi"),
               affinity=WEB_AFFINITY)
WORKLOADS = (
    Workload("kube-system", "kube-proxy", "DaemonSet", 60, "registry.k8s.io/kube-proxy:v1.34.1",
             labels={"k8s-app": "kube-proxy"}, priority="system-node-critical"),
    Workload("monitoring", "node-exporter", "DaemonSet", 60, "quay.io/prometheus/node-exporter:v1.9.1"),
    Workload("kube-system", "coredns", "Deployment", 3, "registry.k8s.io/coredns/coredns:v1.12.1",
             labels={"k8s-app": "kube-dns"}, first=5, priority="system-cluster-critical"),
    WEB,
    Workload("shop", "api", "Deployment", 30, "registry.example.com/shop/api:12.3.0", ("500m", "512Mi"),
             affinity=far(term(HOSTNAME, {"app": "api"})), first=2),
    Workload("shop", "checkout", "Deployment", 14, "registry.example.com/shop/checkout:8.0.1", first=11),
    Workload("shop", "mailer", "Deployment", 16, "registry.example.com/shop/mailer:2.2.0", first=20),
    Workload("data", "cache", "StatefulSet", 10, "docker.io/library/redis:7.4.5", ("500m", "4Gi"),
             affinity=far(term(HOSTNAME, {"app": "cache"})), first=42, priority="shop-high"),
    Workload("data", "database", "StatefulSet", 3, "docker.io/library/postgres:17.6", ("2", "8Gi"),
             affinity=far(term(ZONE, {"app": "database"})), first=43, priority="shop-high"),
    Workload("data", "queue", "StatefulSet", 4, "docker.io/library/rabbitmq:4.1.4", ("1", "2Gi"),
             affinity=far(term(ZONE, {"app": "queue"})), first=45, waiting=NO_FREE_ZONE),
    Workload("batch", "nightly-report-29328610", "Job", 12, "registry.example.com/shop/report:2.9.0",
             affinity=NEAR_PRIMARY, zones="b", first=3, succeeded=4),
    Workload("batch", "cache-warmer-29328611", "Job", 12, "registry.example.com/shop/warmer:1.4.4",
             affinity=near(term(ZONE, {"app": "cache"}, namespaces=["data"])), first=25),
    Workload("batch", "image-resize-29328612", "Job", 24, "registry.example.com/shop/resize:3.1.0",
             ("1", "1Gi"), first=51, succeeded=10, failed=1),
    Workload("monitoring", "prometheus", "StatefulSet", 2, "quay.io/prometheus/prometheus:v3.6.0",
             ("1", "4Gi"), affinity=far(term(HOSTNAME, {"app": "prometheus"})), first=46),
    # The same label as the shop's web, in another namespace, so that it never counts for it.
    Workload("dev", "web", "Deployment", 6, "registry.example.com/shop/web:4.8.0-rc.1", first=13),
    Workload("dev", "integration-test", "Job", 1, "registry.example.com/shop/integration:0.9.3",
             affinity=FORGOTTEN_NAMESPACE, waiting=NO_SUCH_POD),
    Workload("dev", "pod-podaffinity-target", "Pod", 1, "nginx:1.17.1", None, {"podenv": "pro"}),
    Workload("default", "debug-shell", "Pod", 1, "docker.io/library/busybox:1.37", None, first=38),
)
# fmt: on


def uid(kind: str, namespace: str, name: str) -> str:
    """Return the unique UUID of an object."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.{namespace}.{kind}.demo.example.com".lower()))


def suffix(text: str, length: int) -> str:
    """Return a name suffix that looks generated. It is always the same for the same text."""
    digest = uuid.uuid5(uuid.NAMESPACE_DNS, text).bytes
    return "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest[:length])


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of a workload, with its name and its node."""

    workload: Workload
    ordinal: int

    @property
    def index(self) -> int:
        return WORKLOADS.index(self.workload) if self.workload in WORKLOADS else len(WORKLOADS)

    @property
    def made_at(self) -> str:
        return f"2025-10-06T02:{self.index:02}:{self.ordinal % 60:02}Z"

    @property
    def place(self) -> Place | None:
        """Return the replica's node. Replicas take every seventh node of ROUND, so zones alternate and nodes differ."""
        if self.ordinal >= self.workload.replicas - bool(self.workload.waiting):
            return None
        nodes = [place for place in ROUND if place.zone in self.workload.zones]
        return nodes[(self.workload.first + 7 * self.ordinal) % len(nodes)]

    @property
    def phase(self) -> str:
        if self.place is None:
            return "Pending"
        if self.ordinal < self.workload.succeeded:
            return "Succeeded"
        return "Failed" if self.ordinal < self.workload.succeeded + self.workload.failed else "Running"

    @property
    def owner(self) -> tuple[str, str]:
        """Return kind and name of the controller. A Deployment's pods belong to a ReplicaSet."""
        kind, name = self.workload.kind, self.workload.name
        if kind != "Deployment":
            return kind, name
        return "ReplicaSet", f"{name}-{suffix(self.workload.namespace + name, 10)}"

    @property
    def name(self) -> str:
        """Return the pod's name in the form of its controller."""
        kind, name = self.owner
        if kind in {"Pod", "StatefulSet"}:
            return name if kind == "Pod" else f"{name}-{self.ordinal}"
        return f"{name}-{suffix(f'{self.workload.namespace}/{name}/{self.ordinal}', 5)}"


def labels(replica: Replica) -> Labels:
    """Return the workload's own labels, and the labels that its controller adds."""
    workload, (kind, owner) = replica.workload, replica.owner
    own = {"app": workload.name.rstrip("-0123456789")} if workload.labels is None else workload.labels
    controller = uid(kind, workload.namespace, owner)
    added: dict[Kind, Labels] = {
        "Pod": {},
        "Deployment": {"pod-template-hash": owner.rpartition("-")[2]},
        "DaemonSet": {"controller-revision-hash": suffix(owner, 10), "pod-template-generation": "1"},
        "StatefulSet": {
            "apps.kubernetes.io/pod-index": str(replica.ordinal),
            "statefulset.kubernetes.io/pod-name": replica.name,
        },
        "Job": {"batch.kubernetes.io/controller-uid": controller, "batch.kubernetes.io/job-name": owner},
    }
    return own | added[workload.kind]


def metadata(replica: Replica) -> Object:
    """Return the pod's metadata. A pod without a controller has no owner references."""
    namespace, (kind, owner) = replica.workload.namespace, replica.owner
    version = "batch/v1" if kind == "Job" else "apps/v1"
    owned = {"apiVersion": version, "kind": kind, "name": owner, "uid": uid(kind, namespace, owner)}
    reference = owned | {"blockOwnerDeletion": True, "controller": True}
    return {
        "creationTimestamp": replica.made_at,
        "labels": labels(replica),
        "name": replica.name,
        "namespace": namespace,
        **({"ownerReferences": [reference]} if kind != "Pod" else {}),
        "uid": uid("pod", namespace, replica.name),
    }


def container(workload: Workload) -> Object:
    """Return the pod's only container, named after its image."""
    resources = {}
    if workload.requests is not None:
        resources["requests"] = dict(zip(("cpu", "memory"), workload.requests, strict=True))
    name = workload.image.rpartition("/")[2].partition(":")[0]
    return {"image": workload.image, "imagePullPolicy": "IfNotPresent", "name": name, "resources": resources}


def spec(replica: Replica) -> Object:
    """Return the pod's spec, with the fields that the API server adds to each pod."""
    workload, place = replica.workload, replica.place
    made: Object = {
        "containers": [container(workload)],
        "priority": PRIORITIES.get(workload.priority, 0),
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "tolerations": [
            {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
    }
    if workload.affinity:
        made["affinity"] = workload.affinity
    if workload.priority:
        made["priorityClassName"] = workload.priority
    if place is not None:
        made["nodeName"] = place.name
    if place is not None and workload.kind == "DaemonSet":
        only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [place.name]}]}
        made["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [only]}}}
        made["tolerations"] = [{"operator": "Exists"}]
    return made


def status(replica: Replica) -> Object:
    """Return the pod's addresses on its node, or why it has no node."""
    workload, place = replica.workload, replica.place
    made: Object = {"phase": replica.phase, "qosClass": "Burstable" if workload.requests else "BestEffort"}
    if place is not None:
        address = f"10.244.{place.number}.{replica.index + 2}"
        return made | {"hostIP": place.address, "podIP": address, "startTime": replica.made_at}
    if workload.waiting:
        why = {"message": workload.waiting, "reason": "Unschedulable", "type": "PodScheduled"}
        made["conditions"] = [why | {"lastTransitionTime": replica.made_at, "status": "False"}]
    return made


def stored(kind: str, metadata: Object, spec: Object, status: Object) -> Object:
    """Return an object of the core API group."""
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def pod(replica: Replica) -> Object:
    """Return the pod. A replica past the workload's number is a new pod without a node."""
    return stored("Pod", metadata(replica), spec(replica), status(replica))


def node_labels(place: Place) -> Labels:
    """Return a node's labels. Each zone has 14 general machines, 3 with much memory, 3 for computing."""
    position = (place.number - 1) % 20
    family = "m6i" if position < 14 else "r6i" if position < 17 else "c6i"
    return {
        "example.com/rack": f"rack-{place.zone}{position // 5 + 1}",
        HOSTNAME: place.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"{family}.2xlarge",
        "topology.kubernetes.io/region": REGION,
        ZONE: REGION + place.zone,
    }


def node_status(place: Place) -> Object:
    """Return a node's status: capacity, allocatable resources, and the condition Ready."""
    family = node_labels(place)["node.kubernetes.io/instance-type"].partition(".")[0]
    gibibytes = {"m6i": 32, "r6i": 64, "c6i": 16}[family]
    addresses = {"InternalIP": place.address, "Hostname": place.name}
    shared = {"ephemeral-storage": "104857600Ki", "pods": "110"}
    ready = {"lastTransitionTime": "2025-10-06T01:01:00Z", "reason": "KubeletReady", "type": "Ready"}
    system = {"architecture": "amd64", "operatingSystem": "linux", "osImage": "Ubuntu 24.04.3 LTS"}
    versions = {"containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.34.1"}
    machine = {f"{part}ID": uid(part, "", place.name) for part in ("boot", "machine")}
    return {
        "addresses": [{"address": address, "type": kind} for kind, address in addresses.items()],
        "allocatable": {"cpu": "7910m", "memory": f"{(gibibytes - 2) * 2**20}Ki", **shared},
        "capacity": {"cpu": "8", "memory": f"{gibibytes * 2**20}Ki", **shared},
        "conditions": [ready | {"status": "True"}],
        "nodeInfo": {**system, **versions, **machine, "kernelVersion": "6.8.0-85-generic"},
    }


def node(place: Place) -> Object:
    """Return the node."""
    subnet = f"10.244.{place.number}.0/24"
    about: Object = {"creationTimestamp": "2025-10-06T01:00:00Z", "uid": uid("node", "", place.name)}
    about |= {"labels": node_labels(place), "name": place.name}
    return stored("Node", about, {"podCIDR": subnet, "podCIDRs": [subnet]}, node_status(place))


def namespace(name: str) -> Object:
    """Return the namespace, with the label that the API server adds."""
    ours = {"environment": "production"} if name == "dev" else {}
    about: Object = {"labels": {"kubernetes.io/metadata.name": name, **ours}, "name": name}
    about |= {"creationTimestamp": "2025-10-06T00:30:00Z", "uid": uid("namespace", "", name)}
    return stored("Namespace", about, {"finalizers": ["kubernetes"]}, {"phase": "Active"})


def cluster() -> Object:
    """Return the output of `kubectl get nodes,pods,namespaces -A -o json`, in its order."""
    nodes = sorted(ROUND, key=lambda place: place.name)
    pods = [Replica(workload, ordinal) for workload in WORKLOADS for ordinal in range(workload.replicas)]
    pods.sort(key=lambda replica: (replica.workload.namespace, replica.name))
    items = [*map(node, nodes), *map(pod, pods), *map(namespace, NAMESPACES)]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def example(name: str, labels: Labels, affinity: Object | None = None) -> Replica:
    """Return a new pod of the inter-pod affinity example, without a node."""
    return Replica(Workload("dev", name, "Pod", 0, "nginx:1.17.1", None, labels, affinity or {}), 0)


def request(replica: Replica) -> Object:
    """Return the ExtenderArgs of kube-scheduler for the pod and two nodes of each zone."""
    arriving = pod(replica)
    arriving["metadata"]["uid"] = uid("arriving-pod", replica.workload.namespace, replica.name)
    arriving["spec"] |= {"dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "restartPolicy": "Always"}
    arriving["spec"] |= {"preemptionPolicy": "PreemptLowerPriority", "terminationGracePeriodSeconds": 30}
    parts = {key: arriving[key] for key in ("metadata", "spec", "status")}  # no kind: informers drop it
    return {"Pod": parts, "Nodes": None, "NodeNames": [place.name for place in ROUND[:6]]}


def requests() -> dict[str, Object]:
    """Return the requests by name: the example's three pods, and a further replica of the shop's web."""
    selector = {"matchExpressions": [{"key": "podenv", "operator": "In", "values": ["pro"]}]}
    scope = {"namespaceSelector": {"matchLabels": {"environment": "production"}}, "namespaces": ["dev"]}
    on_target = {"labelSelector": selector, **scope, "topologyKey": HOSTNAME}
    arriving = {
        "target": example("pod-podaffinity-target", {"podenv": "pro"}),
        "required-affinity": example("pod-podaffinity-required", {}, near(on_target)),
        "required-anti-affinity": example("pod-podantiaffinity-required", {}, far(on_target)),
        "web": Replica(WEB, WEB.replicas),
    }
    return {name: request(replica) for name, replica in arriving.items()}


def cluster_text() -> str:
    """Return the cluster as JSON with one object per line, which is small and has readable diffs."""
    whole = cluster()
    lines = ",\n".join(json.dumps(item, sort_keys=True, separators=(",", ":")) for item in whole["items"])
    return json.dumps(whole | {"items": []}, sort_keys=True).replace("[]", f"[\n{lines}\n]") + "\n"


def request_text(name: str) -> str:
    """Return a request as JSON for people to read."""
    return json.dumps(requests()[name], indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(request_text(sys.argv[1]) if sys.argv[1:] else cluster_text())
