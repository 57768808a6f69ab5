"""Random cases of many pods one after the other: more replicas, a drain, and the loss of a zone in both states.

The real plugins get the cluster as it is afterwards (`nodes`, `pods`), and the pods to place in their order (`queue`).
The engine gets the cluster `before`, and what is to happen (`what`).
"""

from random import Random
from typing import Final

import msgspec

from app.objects.decode_pod import decode_pod
from core.explaining.remedy import TENTATIVE
from core.simulation.orders import FIRST, arrival
from tests.parity import random_nodes, random_volumes
from tests.parity.random_nodes import HOST, NAMESPACES, V1, ZONE
from tests.parity.random_pods import pod, pods_on

CAPACITY: Final = "capacity"
DRAIN: Final = "drain"
OUT: Final = "loss, out"
REMOVED: Final = "loss, removed"
_WHATS: Final = (CAPACITY, CAPACITY, DRAIN, OUT, REMOVED)
_CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_WORKLOADS: Final = 5


def sequence_case(random: Random) -> V1:
    """Return a case without its `expected`."""
    with_volumes = random.random() < 0.4
    nodes = random_volumes.nodes(random) if with_volumes else random_nodes.nodes(random, 4, 9)
    running = pods_on(random, nodes, random.choice((3, 6)), terms=random.choice((0.15, 0.4)))
    owners = [f"{kind}-{index}" for index, kind in enumerate(random.choices(("rs", "rs", "sts"), k=_WORKLOADS))]
    for each in running:
        each["metadata"]["namespace"] = NAMESPACES[0] if with_volumes else each["metadata"]["namespace"]
        if random.random() < 0.93:
            _own(each, random.choice(owners))
    made: V1 = {"namespaces": random_nodes.namespaces(random), "before": {"nodes": nodes, "pods": running}}
    made["what"] = random.choice(_WHATS)
    _add_queue(random, made, with_volumes=with_volumes)
    if with_volumes:
        users = [*running, *made["queue"]]
        _add_volumes(random, running)
        if made["what"] != CAPACITY:
            _add_queue(random, made, with_volumes=False)
        found = random_volumes.storage(random, nodes, users)
        members = ("pvs", "pvcs", "storageclasses", "csinodes", "csidrivers", "csistoragecapacities")
        _make_free(random, found)
        if random.random() < 0.5:
            _limit_capacity(random, nodes, found)
        made |= {member: found[member] for member in members}
    return made


def consistent(case: V1) -> bool:
    """Return whether both sides have the same cluster, which a part of a case may not."""
    made = {**case}
    names = frozenset(case["lost"])
    _change(made, names)
    queue = case["queue"] if case["what"] == CAPACITY else _again(case["before"]["pods"], names)
    return (made["nodes"], made["pods"], queue) == (case["nodes"], case["pods"], case["queue"])


def _add_queue(random: Random, made: V1, *, with_volumes: bool) -> None:
    nodes = made["before"]["nodes"]
    made["lost"] = []
    if made["what"] == DRAIN:
        # One, because of several nodes the first one is empty before the next one is drained.
        made["lost"] = [random.choice(nodes)["metadata"]["name"]]
    elif made["what"] != CAPACITY:
        zones = {each["metadata"]["labels"].get(ZONE) for each in nodes} - {None}
        made["zone"] = zone = random.choice(sorted(zones)) if zones else ""
        made["lost"] = sorted(
            each["metadata"]["name"] for each in nodes if zone and each["metadata"]["labels"].get(ZONE) == zone
        )
    names = frozenset(made["lost"])
    _change(made, names)
    if made["what"] == CAPACITY:
        made["queue"] = _more(random, with_volumes=with_volumes)
    else:
        made["queue"] = _again(made["before"]["pods"], names)


def _change(made: V1, lost: frozenset[str]) -> None:
    """Set the cluster as it is afterwards."""
    before, what = made["before"], made["what"]
    made["pods"] = [each for each in before["pods"] if each["spec"]["nodeName"] not in lost]
    made["nodes"] = [
        _lost(each, what) if each["metadata"]["name"] in lost else each
        for each in before["nodes"]
        if what != REMOVED or each["metadata"]["name"] not in lost
    ]


def _lost(node: V1, what: str) -> V1:
    spec = node.get("spec") or {}
    taints = spec.get("taints") or []
    if what == DRAIN:
        return {**node, "spec": {**spec, "unschedulable": True, "taints": [*taints, _CORDON]}}
    effects = ("NoSchedule", "NoExecute")
    return {**node, "spec": {**spec, "taints": [*taints, *({"key": _UNREACHABLE, "effect": each} for each in effects)]}}


def _own(pod: V1, owner: str) -> None:
    kind = "StatefulSet" if owner.startswith("sts") else "ReplicaSet"
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    pod["metadata"]["ownerReferences"] = [reference]


def _again(running: list[V1], lost: frozenset[str]) -> list[V1]:
    """Return the pods that come instead of those on lost nodes: copies, in the order of a scheduler."""
    coming = {}
    for each in running:
        owners = each["metadata"].get("ownerReferences")
        terminates = "deletionTimestamp" in each["metadata"]
        if each["spec"]["nodeName"] not in lost or not owners or (terminates and owners[0]["kind"] != "StatefulSet"):
            continue
        metadata = {name: value for name, value in each["metadata"].items() if name != "deletionTimestamp"}
        metadata["uid"] = f"{TENTATIVE}/{metadata['uid']}"
        spec = {name: value for name, value in each["spec"].items() if name != "nodeName"}
        coming[metadata["uid"]] = {"metadata": metadata, "spec": spec, "status": {}}
    ordered = arrival((decode_pod(msgspec.json.encode(each)) for each in coming.values()), FIRST)
    return [coming[each.uid] for each in ordered]


def _more(random: Random, *, with_volumes: bool) -> list[V1]:
    """Return replicas of some templates, one after the other or in turns."""
    found: list[V1] = []
    for index in range(random.randint(1, 3)):
        template = pod(random, f"t{index}", terms=random.choice((0.2, 0.5)))
        template["spec"].pop("priority", None)
        has_own = random.random() < 0.7  # a claim of each replica's own
        if with_volumes:
            template["metadata"]["namespace"] = NAMESPACES[0]
            _give_volumes(random, template)
        for number in range(random.randint(1, 8)):
            name = f"t{index}-{number}"
            made = {**template, "metadata": {**template["metadata"], "name": name, "uid": f"uid-{name}"}}
            if with_volumes and has_own:
                claim = {"name": "own", "persistentVolumeClaim": {"claimName": f"claim{number % 5}"}}
                made["spec"] = {**made["spec"], "volumes": [claim]}
            found.append(made)
    if random.random() < 0.3:
        random.shuffle(found)
    return found


def _make_free(random: Random, found: dict[str, list[V1]]) -> None:
    """Let several claims want the same few volumes, or volumes that are made for a node."""
    for volume in found["pvs"]:
        if random.random() < 0.5:
            volume["spec"] |= {"storageClassName": "static", "capacity": {"storage": "10Gi"}}
            volume["spec"].pop("claimRef", None)
            volume["status"] = {"phase": "Available"}
    for claim in found["pvcs"]:
        if random.random() < 0.6:
            _free(claim, random.choice(("static", "static", "late")))


def _free(claim: V1, storage_class: str) -> None:
    claim["spec"] |= {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"]}
    for member in ("volumeName", "selector", "volumeMode"):
        claim["spec"].pop(member, None)
    claim["metadata"]["annotations"] = {}
    claim["status"] = {"phase": "Pending"}


def _limit_capacity(random: Random, nodes: list[V1], found: dict[str, list[V1]]) -> None:
    """Let volumes be made of few capacities, each for a zone or a node, and now and then for all nodes."""
    found["csidrivers"] = [{"metadata": {"name": random_volumes.CSI}, "spec": {"storageCapacity": True}}]
    found["csistoragecapacities"] = []
    for claim in found["pvcs"]:
        if random.random() < 0.8:
            _free(claim, "capacity")
    for index, node in enumerate(random.sample(nodes, random.randint(1, len(nodes)))):
        key = random.choice((ZONE, HOST, HOST))
        labels = {key: node["metadata"]["labels"].get(key, "none")} if random.random() < 0.9 else {}
        made: V1 = {"metadata": {"name": f"room{index}", "namespace": "default"}, "storageClassName": "capacity"}
        made |= {"nodeTopology": {"matchLabels": labels}, "capacity": random.choice(("3Gi", "5Gi", "6Gi", "9Gi"))}
        if random.random() < 0.3:
            made["maximumVolumeSize"] = random.choice(("3Gi", "5Gi"))
        found["csistoragecapacities"].append(made)


def _add_volumes(random: Random, pods: list[V1]) -> None:
    for each in pods:
        if random.random() < 0.5:
            _give_volumes(random, each)


def _give_volumes(random: Random, pod: V1) -> None:
    """Add up to two volumes, of different claims. For a claim twice the plugin takes two, and its controller one."""
    volumes = [random_volumes.pod_volume(random, f"v{index}") for index in range(random.randint(1, 2))]
    once = {str(each.get("persistentVolumeClaim", each["name"])): each for each in volumes}
    pod["spec"]["volumes"] = [each for each in once.values() if "ephemeral" not in each]
